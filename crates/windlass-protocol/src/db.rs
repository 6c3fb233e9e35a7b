//! Rows, snapshots and row locks: the parts of a database under READ COMMITTED that the protocol depends on.

/// Most tasks of a scenario.
pub const TASKS: usize = 5;
/// Jobs of a scenario.
pub const JOBS: usize = 2;
/// Workers of a scenario.
pub const WORKERS: usize = 2;

/// The bits of `gate_todo`: one for each job, one for the workflow.
pub const TODO_WORKFLOW: u8 = 1 << JOBS;

/// The bit of a job in `gate_todo`.
pub fn todo_job(job: usize) -> u8 {
    1 << job
}

/// The state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TaskState {
    /// Not appended yet, or its transaction is not committed.
    #[default]
    Absent,
    /// Ready to be claimed.
    Ready,
    /// Leased.
    Running,
    /// Waits for room in its job.
    Held,
    /// Waits for its turn in the workflow.
    Waiting,
    /// Failed for good; the row stays.
    Dead,
    /// Done or cancelled: the row is gone.
    Gone,
}

/// A row of `task`. Columns that never change are in the scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Task {
    /// Its state.
    pub state: TaskState,
    /// Its position in the workflow; 0 while it has none.
    pub step: u8,
    /// How often it was claimed.
    pub lease: u8,
    /// The worker that claimed it last.
    pub worker: u8,
    /// The number of that claim.
    pub claim_no: u8,
    /// Held, and no live worker serves its lane.
    pub parked: bool,
}

impl Task {
    /// Whether it uses room of its job.
    pub fn has_room(&self) -> bool {
        matches!(self.state, TaskState::Ready | TaskState::Running)
    }

    /// Whether it is an unfinished step or task.
    pub fn is_unfinished(&self) -> bool {
        !matches!(self.state, TaskState::Absent | TaskState::Dead | TaskState::Gone)
    }
}

/// A row of `job`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a column")]
pub struct Job {
    /// Whether the row exists.
    pub exists: bool,
    /// Its limit.
    pub limit: u8,
    /// Places must be counted, not passed on: more are taken than the limit allows, or they were never
    /// counted.
    pub recount: bool,
    /// All of its limit was taken at the last count.
    pub at_limit: bool,
    /// The job is forgotten once its old tasks are gone.
    pub is_removing: bool,
}

/// The row of the workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Workflow {
    /// Whether the row exists.
    pub exists: bool,
    /// The step that blocks it.
    pub blocked_by: Option<u8>,
}

/// A row of `worker`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Worker {
    /// Whether it is registered.
    pub is_registered: bool,
    /// It was swept; the row stays.
    pub has_ended: bool,
    /// Claims below this number are refused.
    pub min_claim_no: u8,
}

impl Worker {
    /// Whether it serves its lanes.
    pub fn is_live(&self) -> bool {
        self.is_registered && !self.has_ended
    }
}

/// What is stored about a worker's last batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Receipt {
    /// Nothing about this batch.
    #[default]
    None,
    /// The end of the attempt was written.
    Written,
    /// The lease was lost.
    Fenced,
}

/// Everything that is committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Db {
    /// In the order in which their ids were drawn.
    pub tasks: [Task; TASKS],
    /// By name.
    pub jobs: [Job; JOBS],
    /// The one workflow.
    pub workflow: Workflow,
    /// By id.
    pub workers: [Worker; WORKERS],
    /// Whether each worker's lease ran out, by the clock of the server.
    pub has_expired: [bool; WORKERS],
    /// By worker: each has one settler.
    pub receipts: [Receipt; WORKERS],
    /// Rows of `gate_todo` that no transaction has taken. A transaction takes all of them, so equal rows are
    /// one.
    pub todo: u8,
    /// Freed places in rows of kind 3, by job. Other transactions see taken ones until the commit.
    pub freed: [u8; JOBS],
}

impl Db {
    /// Applies what a transaction wrote.
    pub fn apply(&mut self, writes: &[Write]) {
        for write in writes {
            match *write {
                Write::Task(id, row) => self.tasks[id] = row,
                Write::Job(id, row) => self.jobs[id] = row,
                Write::Workflow(row) => self.workflow = row,
                Write::Worker(id, row) => self.workers[id] = row,
                Write::Receipt(id, row) => self.receipts[id] = row,
                Write::Todo(bits) => self.todo |= bits,
                Write::Freed(job, n) => self.freed[job] = self.freed[job].saturating_add(n),
                Write::Taken(job, n) => self.freed[job] = self.freed[job].saturating_sub(n),
            }
        }
    }
}

/// A new version of a row, or rows added to `gate_todo` or deleted from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is the row that it is named after")]
pub enum Write {
    Task(usize, Task),
    Job(usize, Job),
    Workflow(Workflow),
    Worker(usize, Worker),
    Receipt(usize, Receipt),
    Todo(u8),
    Freed(usize, u8),
    Taken(usize, u8),
}

/// A row that can be locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each is the row that it is named after")]
pub enum Row {
    Worker(usize),
    Receipt(usize),
    Workflow,
    Job(usize),
    Task(usize),
}

/// The strength of a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mode {
    /// `FOR KEY SHARE`.
    Share,
    /// Every stronger lock: here they all exclude each other.
    Alone,
}

/// Which transaction holds which row, until it ends.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Locks(Vec<(Row, usize, Mode)>);

impl Locks {
    /// Takes a lock unless a lock of another transaction conflicts.
    pub fn take(&mut self, row: Row, who: usize, mode: Mode) -> bool {
        if !self.is_free(row, who, mode) {
            return false;
        }
        let lock = (row, who, mode);
        if let Err(place) = self.0.binary_search(&lock) {
            self.0.insert(place, lock);
        }
        true
    }

    /// Whether the transaction holds the lock already.
    pub fn has(&self, row: Row, who: usize, mode: Mode) -> bool {
        self.0.binary_search(&(row, who, mode)).is_ok()
    }

    /// Whether no lock of another transaction conflicts.
    pub fn is_free(&self, row: Row, who: usize, mode: Mode) -> bool {
        self.in_the_way(row, who, mode).next().is_none()
    }

    /// The transactions whose locks conflict.
    pub fn in_the_way(&self, row: Row, who: usize, mode: Mode) -> impl Iterator<Item = usize> + '_ {
        self.0
            .iter()
            .filter(move |(locked, by, how)| {
                *locked == row && *by != who && (mode == Mode::Alone || *how == Mode::Alone)
            })
            .map(|(_, by, _)| *by)
    }

    /// Releases the locks of a transaction that ends.
    pub fn release(&mut self, who: usize) {
        self.0.retain(|(_, by, _)| *by != who);
    }

    /// Moves the locks to another connection, on which the transaction continues.
    pub fn hand_over(&mut self, from: usize, to: usize) {
        for lock in &mut self.0 {
            if lock.1 == from {
                lock.1 = to;
            }
        }
        self.0.sort_unstable();
    }
}
