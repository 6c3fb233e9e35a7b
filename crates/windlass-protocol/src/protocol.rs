//! What the tests check: the protocol, with a switch for each choice that makes it hold, and the scenarios.

use crate::db::{JOBS, TASKS, WORKERS};

/// The choices of the protocol. [`Protocol::default`] is what the SQL files do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one choice that a test takes back")]
pub struct Protocol {
    /// A claim holds its worker's row, and a transaction that takes leases away locks that row before it
    /// looks for leases.
    pub locks_worker: bool,
    /// A job's room is counted in a later statement than the one that locks the job.
    pub counts_after_lock: bool,
    /// Steps run in the order in which they were placed under the workflow's lock, not in the order of their
    /// ids.
    pub places_steps: bool,
    /// Updates check the state again outside of the subquery.
    pub guards_updates: bool,
    /// Demotion waits for claims that hold a row.
    pub demotion_waits: bool,
    /// Rows of jobs are made in a transaction that holds no other locks; then the admission starts again.
    pub makes_jobs_apart: bool,
    /// A new row of a job is marked to be counted.
    pub marks_new_jobs: bool,
    /// Promotion locks tasks in the order of their ids.
    pub promotes_by_id: bool,
    /// A transaction that parked tasks checks their lanes once more after its commit.
    pub unparks_after_commit: bool,
    /// The leader checks the lanes from time to time.
    pub leader_looks: bool,
    /// A count includes places that another transaction is about to pass on.
    pub counts_freed: bool,
    /// Places of a marked job are counted, not passed on.
    pub counts_if_marked: bool,
    /// A job is marked also because of places that are about to be passed on.
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

/// The columns of a task that never change.
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
    /// Whether the slow transaction appends it; otherwise it exists at the start.
    pub is_late: bool,
    /// The worker that holds it at the start.
    pub runs_on: Option<usize>,
}

/// The one operation of the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Sets the limit of a job, and makes the job if it does not exist.
    SetLimit(usize, u8),
    /// Removes a job with all tasks that are not late.
    Remove(usize),
    /// Cancels tasks that have not started: bits.
    Cancel(u8),
}

/// The tasks, jobs and workers of a run, and the faults that may happen.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each allows one kind of event")]
pub struct Scenario {
    /// Tasks in the order in which their ids were drawn: those of the slow transaction may be first.
    pub tasks: Vec<Spec>,
    /// Limits of jobs that exist at the start.
    pub limits: [Option<u8>; JOBS],
    /// The limit of a job that is made later.
    pub default_limit: u8,
    /// Lanes that each worker serves, as bits.
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
    /// Other transactions run between two statements of a transaction only if it has to wait or is about to
    /// commit. For scenarios that would have too many states otherwise.
    pub is_coarse: bool,
    /// Other transactions may run between two rows that one statement locks.
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
    /// The columns of a task that never change; the default for a task that does not exist.
    pub fn spec(&self, task: usize) -> Spec {
        self.tasks.get(task).copied().unwrap_or_default()
    }

    /// The ids of the tasks.
    pub fn ids(&self) -> std::ops::Range<usize> {
        0..self.tasks.len().min(TASKS)
    }
}
