//! What is checked: the protocol, with the choices that make it hold as switches, and the scenarios.

use crate::db::{JOBS, TASKS, WORKERS};

/// The choices of the protocol. [`Protocol::default`] is what the SQL files do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one choice that a test takes back")]
pub struct Protocol {
    /// A claim holds its worker's row, and whoever takes leases away locks it before it looks for them.
    pub locks_worker: bool,
    /// A job's room is counted in a statement after the one that locks it.
    pub counts_after_lock: bool,
    /// Steps have the order in which they were placed under the workflow's lock, not that of their ids.
    pub places_steps: bool,
    /// Updates repeat the guard on the state outside of the subquery.
    pub guards_updates: bool,
    /// Demotion waits for claims that are under way.
    pub demotion_waits: bool,
    /// Rows of jobs are made by a statement of its own that holds no others; then the transaction begins anew.
    pub makes_jobs_apart: bool,
    /// A row of a job is marked to be counted when it is made.
    pub marks_new_jobs: bool,
    /// Promotion locks tasks in the order of their ids.
    pub promotes_by_id: bool,
    /// Whoever parked tasks looks at their lanes once more after the commit.
    pub unparks_after_commit: bool,
    /// The leader looks at the lanes now and then.
    pub leader_looks: bool,
    /// Whoever counts takes places that somebody else is about to pass on as taken.
    pub counts_freed: bool,
    /// Places of a job that is marked are counted, not passed on.
    pub counts_if_marked: bool,
    /// A job is marked also for places that are about to be passed on.
    pub marks_for_freed: bool,
}

impl Default for Protocol {
    fn default() -> Self {
        Self {
            locks_worker: true,
            counts_after_lock: true,
            places_steps: true,
            guards_updates: true,
            demotion_waits: true,
            makes_jobs_apart: true,
            marks_new_jobs: true,
            promotes_by_id: true,
            unparks_after_commit: true,
            leader_looks: true,
            counts_freed: true,
            counts_if_marked: true,
            marks_for_freed: true,
        }
    }
}

/// What never changes about a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spec {
    /// Its job.
    pub job: Option<usize>,
    /// Whether it is a step of the workflow.
    pub is_step: bool,
    /// Its priority, higher first.
    pub priority: u8,
    /// Its lane.
    pub lane: u8,
    /// Appended by the slow transaction, not before the start.
    pub is_late: bool,
    /// Leased by a worker at the start.
    pub runs_on: Option<usize>,
}

/// What the operator does, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Sets the limit of a job, making it if needed.
    SetLimit(usize, u8),
    /// Removes a job with all tasks that are not late.
    Remove(usize),
    /// Cancels tasks that have not started: bits.
    Cancel(u8),
}

/// Who is there and what may go wrong.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each allows something of its own")]
pub struct Scenario {
    /// Tasks in the order in which their ids were drawn: those of the slow transaction may be first.
    pub tasks: Vec<Spec>,
    /// Limits of jobs that exist at the start.
    pub limits: [Option<u8>; JOBS],
    /// The limit of a job that is made.
    pub default_limit: u8,
    /// Lanes that each worker serves: bits.
    pub serves: [u8; WORKERS],
    /// Workers that register later.
    pub comes_later: [bool; WORKERS],
    /// What the operator does.
    pub operation: Option<Operation>,
    /// How many attempts may fail for good.
    pub failures: u8,
    /// Whether the lease of the first worker may run out.
    pub expires: bool,
    /// Whether its process may die, after which the lease runs out.
    pub crashes: bool,
    /// How many requests of the first worker may lose their answer.
    pub losses: u8,
    /// Nobody comes between two statements of a transaction unless it has to wait or is about to commit: for scenarios that would
    /// be too large otherwise.
    pub is_coarse: bool,
    /// Somebody may come between two rows that one statement locks.
    pub yields_at_rows: bool,
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            tasks: Vec::new(),
            limits: [None; JOBS],
            default_limit: 1,
            serves: [1; WORKERS],
            comes_later: [false; WORKERS],
            operation: None,
            failures: 0,
            expires: false,
            crashes: false,
            losses: 0,
            is_coarse: false,
            yields_at_rows: false,
        }
    }
}

impl Scenario {
    /// What never changes about a task; nothing of one that is not there.
    pub fn spec(&self, task: usize) -> Spec {
        self.tasks.get(task).copied().unwrap_or_default()
    }

    /// The ids of the tasks.
    pub fn ids(&self) -> std::ops::Range<usize> {
        0..self.tasks.len().min(TASKS)
    }
}
