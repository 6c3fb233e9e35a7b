//! The state of the model: what is committed, who holds which row, and how far every transaction is.

use crate::{
    db::{Db, JOBS, Locks, Mode, Row, TaskState, WORKERS, Write},
    protocol::{Protocol, Scenario},
};

/// Connections. The first two belong to the workers.
pub const GHOST: usize = 2;
/// Admissions: two processes may be at it.
pub const ADMISSIONS: [usize; 2] = [3, 4];
/// The sweep.
pub const SWEEP: usize = 5;
/// The operator.
pub const OPERATOR: usize = 6;
/// The leader, which looks at the lanes now and then.
pub const LEADER: usize = 7;
/// How many there are.
pub const CONNECTIONS: usize = 8;

/// What a transaction is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[expect(missing_docs, reason = "each is named after the call that it is")]
pub enum Kind {
    #[default]
    None,
    Claim,
    Settle,
    Unclaim,
    Sweep,
    Admit,
    MakeJobs,
    SetLimit,
    Remove,
    Cancel,
    Unpark,
    ParkDead,
}

/// The statement that comes next; most are named after their files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[expect(missing_docs, reason = "each is named after its file in the store")]
pub enum Statement {
    #[default]
    None,
    Claim,
    SettleDone,
    SettleReceipt,
    SettleLeave,
    LockWorker,
    Held,
    /// `settle_stay.sql` with releases, or `crash.sql`.
    EndLeases,
    WorkflowMake,
    WorkflowLock,
    WorkflowPlace,
    WorkflowPass,
    WorkflowForget,
    WorkflowSteps,
    JobMake,
    JobLock,
    JobCount,
    JobDemote,
    JobPromote,
    CancelUnstarted,
    Unpark,
    ParkDead,
    Commit,
}

/// A transaction.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Txn {
    /// What it is for.
    pub kind: Kind,
    /// What it does next.
    pub next: Statement,
    /// For which worker.
    pub worker: usize,
    /// For which task: the one to claim, or to settle.
    pub task: usize,
    /// The lease to settle.
    pub lease: u8,
    /// Which claim of its worker it is.
    pub claim_no: u8,
    /// Whether the attempt failed for good.
    pub has_failed: bool,
    /// What the settlement came to.
    pub is_written: bool,
    /// A copy of a batch whose answer somebody has: its number is an old one.
    pub is_stale: bool,
    /// Rows of `gate_todo` that it deleted.
    pub took: u8,
    /// Places in rows of kind 3 that it deleted, by job.
    pub freed: [u8; JOBS],
    /// Jobs to count: bits.
    pub jobs: u8,
    /// Jobs whose places it passes on: bits.
    pub passes: u8,
    /// What it counted last, by job: all that is taken, and how much of that is about to be passed on.
    pub taken: [Option<(u8, u8)>; JOBS],
    /// Leases to end: bits of tasks.
    pub leases: u8,
    /// How many to promote, or, if negative, to demote.
    pub plan: [i8; JOBS],
    /// Whether it put tasks of lanes that nobody serves aside.
    pub has_parked: bool,
    /// What it wrote.
    pub writes: Vec<Write>,
    /// The snapshot of a statement that waits.
    pub snapshot: Option<Box<Db>>,
    /// What that waits for.
    pub waits_for: Option<(Row, Mode)>,
}

/// What a worker's process is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[expect(missing_docs, reason = "the words of the protocol")]
pub enum Process {
    #[default]
    Idle,
    /// Asked for a task.
    Claiming,
    /// A claim was lost and must be taken back first.
    InDoubt,
    Unclaiming,
    Running {
        task: usize,
        lease: u8,
    },
    /// An attempt ended; its batch is on its way, or lost and to be sent again.
    Settling {
        task: usize,
        lease: u8,
        has_failed: bool,
    },
    /// Registers, and looks at what waits for its lanes.
    Unregistered,
    Registering,
    Gone,
}

/// A promise that a commit or an answer broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names of the promises")]
pub enum Broken {
    Limit,
    Order,
    Answer,
}

/// Everything.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    /// What is committed.
    pub db: Db,
    /// Who holds what.
    pub locks: Locks,
    /// By connection.
    pub txns: [Txn; CONNECTIONS],
    /// By worker.
    pub processes: [Process; WORKERS],
    /// Whether the slow transaction is still open.
    pub is_late_open: bool,
    /// Whether the operator has not begun yet.
    pub is_operator_idle: bool,
    /// How many attempts may still fail for good.
    pub failures: u8,
    /// How many requests may still lose their answer.
    pub losses: u8,
    /// The first promise that was broken.
    pub broken: Option<Broken>,
    /// Somebody may come between two rows that one statement locks.
    pub yields_at_rows: bool,
}

/// A statement that has to wait.
pub struct Wait;

impl State {
    /// What a statement sees: its snapshot and what its transaction wrote.
    pub fn view(&self, who: usize) -> Db {
        let txn = &self.txns[who];
        let mut db = txn.snapshot.as_deref().copied().unwrap_or(self.db);
        db.apply(&txn.writes);
        db
    }

    /// The rows as they are now: what a statement reads again once it has locked them.
    pub fn latest(&self, who: usize) -> Db {
        let mut db = self.db;
        db.apply(&self.txns[who].writes);
        db
    }

    /// Takes a lock, or begins to wait for it with the snapshot that the statement has.
    pub fn lock(&mut self, who: usize, row: Row, mode: Mode) -> Result<(), Wait> {
        let had = self.locks.has(row, who, mode);
        let is_taken = self.locks.take(row, who, mode);
        if is_taken && (had || !self.yields_at_rows) {
            return Ok(());
        }
        let snapshot = self.txns[who].snapshot.take().unwrap_or_else(|| Box::new(self.db));
        self.txns[who].snapshot = Some(snapshot);
        self.txns[who].waits_for = (!is_taken).then_some((row, mode));
        Err(Wait)
    }

    /// Writes a row, or rows of `gate_todo`.
    pub fn write(&mut self, who: usize, write: Write) {
        self.txns[who].writes.push(write);
    }

    /// Places in rows of kind 3 that nobody has taken: what others hold is skipped.
    pub fn untaken(&self, job: usize) -> u8 {
        let taken: u8 = self.txns.iter().map(|txn| txn.freed[job]).sum();
        self.db.freed[job].saturating_sub(taken)
    }

    /// Whether anything is to be taken out of `gate_todo`.
    pub fn has_todo(&self) -> bool {
        self.db.todo != 0 || (0..JOBS).any(|job| self.untaken(job) > 0)
    }

    /// Undoes a transaction.
    pub fn roll_back(&mut self, who: usize) {
        self.db.todo |= self.txns[who].took;
        self.locks.release(who);
        self.txns[who] = Txn::default();
    }

    /// Makes a transaction's writes visible, and looks at what that broke.
    pub fn commit(&mut self, who: usize, protocol: Protocol, scenario: &Scenario) -> Txn {
        let before = self.db;
        let txn = std::mem::take(&mut self.txns[who]);
        self.db.apply(&txn.writes);
        self.locks.release(who);
        if self.broken.is_none() {
            self.broken = raised_above_limit(&before, &self.db, scenario)
                .then_some(Broken::Limit)
                .or_else(|| is_out_of_order(&self.db, scenario, protocol).then_some(Broken::Order));
        }
        txn
    }

    /// Whether somebody waits for a lock whose holder waits, in the end, for the first.
    pub fn has_deadlock(&self) -> bool {
        (0..CONNECTIONS).filter(|start| self.txns[*start].waits_for.is_some()).any(|start| {
            let mut seen = 0_u8;
            let mut open = vec![start];
            while let Some(who) = open.pop() {
                let Some((row, mode)) = self.txns[who].waits_for else { continue };
                for holder in self.locks.in_the_way(row, who, mode) {
                    if holder == start {
                        return true;
                    }
                    if seen & (1 << holder) == 0 {
                        seen |= 1 << holder;
                        open.push(holder);
                    }
                }
            }
            false
        })
    }
}

/// Whether a commit gave more room of a job away, or started more of it, than its limit allows.
fn raised_above_limit(before: &Db, after: &Db, scenario: &Scenario) -> bool {
    let count = |db: &Db, job: usize, is_counted: &dyn Fn(TaskState) -> bool| {
        let tasks = scenario.ids().filter(|id| scenario.spec(*id).job == Some(job));
        tasks.filter(|id| is_counted(db.tasks[*id].state)).count()
    };
    let runs = |state: TaskState| state == TaskState::Running;
    let has_room = |state: TaskState| matches!(state, TaskState::Ready | TaskState::Running);
    (0..after.jobs.len()).any(|job| {
        let limit = usize::from(after.jobs[job].limit);
        let is_raised = |is_counted: &dyn Fn(TaskState) -> bool| {
            let now = count(after, job, is_counted);
            now > limit && now > count(before, job, is_counted)
        };
        is_raised(&runs) || is_raised(&has_room)
    })
}

/// Whether two steps have their turn at once, or one has it too early.
fn is_out_of_order(db: &Db, scenario: &Scenario, protocol: Protocol) -> bool {
    let steps: Vec<usize> = scenario.ids().filter(|id| scenario.spec(*id).is_step).collect();
    let started: Vec<usize> = steps.iter().copied().filter(|id| db.tasks[*id].has_room()).collect();
    let is_early = |id: usize| {
        let own = db.tasks[id].step;
        steps.iter().any(|other| {
            let other = db.tasks[*other];
            protocol.places_steps && other.is_unfinished() && other.step != 0 && other.step < own
        })
    };
    started.len() > 1
        || (!started.is_empty() && db.workflow.blocked_by.is_some())
        || started.iter().any(|id| is_early(*id))
}
