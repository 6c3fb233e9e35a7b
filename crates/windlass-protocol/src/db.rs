//! Rows, snapshots and row locks: as much of a database under READ COMMITTED as the protocol leans on.

/// Most tasks of a scenario.
pub const TASKS: usize = 5;
/// Jobs of a scenario.
pub const JOBS: usize = 2;
/// Workers of a scenario.
pub const WORKERS: usize = 2;

/// What `gate_todo` says: bits for the jobs, one for the workflow.
pub const TODO_WORKFLOW: u8 = 1 << JOBS;

/// The bit of a job in `gate_todo`.
pub fn todo_job(job: usize) -> u8 {
    1 << job
}

/// Where a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TaskState {
    /// Not appended yet, as far as anybody can see.
    #[default]
    Absent,
    /// In the ready line.
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

/// A row of `task`. What never changes stands in the scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Task {
    /// Its state.
    pub state: TaskState,
    /// Its place in the workflow; 0 before it has one.
    pub step: u8,
    /// How often it was claimed.
    pub lease: u8,
    /// Who claimed it last.
    pub worker: u8,
    /// Which claim of that worker it was.
    pub claim_no: u8,
    /// Held, and nobody alive serves its lane.
    pub parked: bool,
}

impl Task {
    /// Whether it takes room of its job.
    pub fn has_room(&self) -> bool {
        matches!(self.state, TaskState::Ready | TaskState::Running)
    }

    /// Whether it counts for its workflow.
    pub fn is_unfinished(&self) -> bool {
        !matches!(self.state, TaskState::Absent | TaskState::Dead | TaskState::Gone)
    }
}

/// A row of `job`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a column")]
pub struct Job {
    /// Whether there is one.
    pub exists: bool,
    /// Its limit.
    pub limit: u8,
    /// More of it is taken than the limit allows, or nobody has counted yet: places are counted, not passed on.
    pub recount: bool,
    /// All of its limit was taken when it was counted last.
    pub at_limit: bool,
    /// It is forgotten once what was there is gone.
    pub is_removing: bool,
}

/// The row of the workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Workflow {
    /// Whether there is one.
    pub exists: bool,
    /// The step that holds it up.
    pub blocked_by: Option<u8>,
}

/// A row of `worker`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Worker {
    /// Whether it is registered.
    pub is_registered: bool,
    /// It was swept: a tombstone.
    pub has_ended: bool,
    /// Claims below this number are refused.
    pub min_claim_no: u8,
}

impl Worker {
    /// Whether its lanes are alive.
    pub fn is_live(&self) -> bool {
        self.is_registered && !self.has_ended
    }
}

/// What is noted of a worker's last batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Receipt {
    /// Not this batch.
    #[default]
    None,
    /// Its end was written.
    Written,
    /// The lease had been lost.
    Fenced,
}

/// Everything that is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Db {
    /// By the order in which their ids were drawn.
    pub tasks: [Task; TASKS],
    /// By name.
    pub jobs: [Job; JOBS],
    /// The one workflow.
    pub workflow: Workflow,
    /// By id.
    pub workers: [Worker; WORKERS],
    /// Whose lease ran out, by the clock of the server.
    pub has_expired: [bool; WORKERS],
    /// One settler per worker.
    pub receipts: [Receipt; WORKERS],
    /// Rows of `gate_todo` that nobody has taken. Whoever takes takes all, so equal rows are one.
    pub todo: u8,
    /// Places in rows of kind 3, by job. Others see those that somebody has taken until that is committed.
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

/// What is locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each is the row that it is named after")]
pub enum Row {
    Worker(usize),
    Receipt(usize),
    Workflow,
    Job(usize),
    Task(usize),
}

/// How.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mode {
    /// `FOR KEY SHARE`.
    Share,
    /// Every other lock here excludes every other.
    Alone,
}

/// Who holds which row, until the transaction ends.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Locks(Vec<(Row, usize, Mode)>);

impl Locks {
    /// Takes a lock unless somebody else's is in the way.
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

    /// Whether a lock is held already.
    pub fn has(&self, row: Row, who: usize, mode: Mode) -> bool {
        self.0.binary_search(&(row, who, mode)).is_ok()
    }

    /// Whether nobody else's lock is in the way.
    pub fn is_free(&self, row: Row, who: usize, mode: Mode) -> bool {
        self.in_the_way(row, who, mode).next().is_none()
    }

    /// Whose locks are in the way.
    pub fn in_the_way(&self, row: Row, who: usize, mode: Mode) -> impl Iterator<Item = usize> + '_ {
        self.0
            .iter()
            .filter(move |(locked, by, how)| {
                *locked == row && *by != who && (mode == Mode::Alone || *how == Mode::Alone)
            })
            .map(|(_, by, _)| *by)
    }

    /// A transaction ends.
    pub fn release(&mut self, who: usize) {
        self.0.retain(|(_, by, _)| *by != who);
    }

    /// A transaction goes on under another name.
    pub fn hand_over(&mut self, from: usize, to: usize) {
        for lock in &mut self.0 {
            if lock.1 == from {
                lock.1 = to;
            }
        }
        self.0.sort_unstable();
    }
}
