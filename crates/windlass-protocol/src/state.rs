//! The state of the model: the committed rows, the locks, and the progress of every transaction.

use crate::{
    db::{Db, JOBS, Locks, Mode, Row, TaskState, WORKERS, Write},
    protocol::{Protocol, Scenario},
};

/// Connections. The first two belong to the workers. `GHOST` runs a request whose worker has stopped waiting
/// for it.
pub const GHOST: usize = 2;
/// Admissions: two processes may run one at the same time.
pub const ADMISSIONS: [usize; 2] = [3, 4];
/// The sweep.
pub const SWEEP: usize = 5;
/// The operator.
pub const OPERATOR: usize = 6;
/// The leader, which checks the lanes from time to time.
pub const LEADER: usize = 7;
/// How many connections there are.
pub const CONNECTIONS: usize = 8;

/// The purpose of a transaction.
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
#[expect(clippy::struct_excessive_bools, reason = "each is an independent fact")]
pub struct Txn {
    /// Its purpose.
    pub kind: Kind,
    /// Its next statement.
    pub next: Statement,
    /// The worker that it is for.
    pub worker: usize,
    /// The task to claim or to settle.
    pub task: usize,
    /// The lease to settle.
    pub lease: u8,
    /// The number of its claim.
    pub claim_no: u8,
    /// Whether the attempt failed for good.
    pub has_failed: bool,
    /// Whether the settlement was written.
    pub is_written: bool,
    /// A copy of a batch whose answer has arrived: its number is an old one.
    pub is_stale: bool,
    /// Rows of `gate_todo` that it deleted.
    pub took: u8,
    /// Places in rows of kind 3 that it deleted, by job.
    pub freed: [u8; JOBS],
    /// Jobs to count, as bits.
    pub jobs: u8,
    /// Jobs whose places it passes on, as bits.
    pub passes: u8,
    /// Its last count, by job: all taken places, and how many of them are about to be passed on.
    pub taken: [Option<(u8, u8)>; JOBS],
    /// Tasks whose leases it ends, as bits.
    pub leases: u8,
    /// By job, how many tasks to promote, or, if negative, to demote.
    pub plan: [i8; JOBS],
    /// Whether it parked tasks of lanes that no live worker serves.
    pub has_parked: bool,
    /// Its writes.
    pub writes: Vec<Write>,
    /// The snapshot of a statement that waits.
    pub snapshot: Option<Box<Db>>,
    /// The lock that it waits for.
    pub waits_for: Option<(Row, Mode)>,
}

/// What a worker's process does now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[expect(missing_docs, reason = "the words of the protocol")]
pub enum Process {
    #[default]
    Idle,
    /// It has sent a claim.
    Claiming,
    /// The answer to a claim was lost: the claim must be undone first.
    InDoubt,
    Unclaiming,
    Running {
        task: usize,
        lease: u8,
    },
    /// An attempt ended; its batch is on its way, or its answer was lost and it must be sent again.
    Settling {
        task: usize,
        lease: u8,
        has_failed: bool,
    },
    /// It registers, then looks for tasks that wait for its lanes.
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

/// The whole state.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    /// The committed rows.
    pub db: Db,
    /// The row locks.
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
    /// Other transactions may run between two rows that one statement locks.
    pub yields_at_rows: bool,
}

/// A statement must wait for a lock.
pub struct Wait;

impl State {
    /// What a statement sees: its snapshot and its transaction's own writes.
    pub fn view(&self, who: usize) -> Db {
        let txn = &self.txns[who];
        let mut db = txn.snapshot.as_deref().copied().unwrap_or(self.db);
        db.apply(&txn.writes);
        db
    }

    /// The rows as they are now: what a statement reads again after it has locked them.
    pub fn latest(&self, who: usize) -> Db {
        let mut db = self.db;
        db.apply(&self.txns[who].writes);
        db
    }

    /// Takes a lock, or starts to wait for it with the statement's snapshot.
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

    /// Freed places in rows of kind 3 that no transaction has taken: locked rows are skipped.
    pub fn untaken(&self, job: usize) -> u8 {
        let taken: u8 = self.txns.iter().map(|txn| txn.freed[job]).sum();
        self.db.freed[job].saturating_sub(taken)
    }

    /// Whether `gate_todo` has a row to take.
    pub fn has_todo(&self) -> bool {
        self.db.todo != 0 || (0..JOBS).any(|job| self.untaken(job) > 0)
    }

    /// Rolls a transaction back.
    pub fn roll_back(&mut self, who: usize) {
        self.db.todo |= self.txns[who].took;
        self.locks.release(who);
        self.txns[who] = Txn::default();
    }

    /// Makes a transaction's writes visible, and checks which promise they break.
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

    /// Whether transactions wait for each other in a circle.
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

/// Whether a commit gave away more room of a job, or started more of its tasks, than its limit allows.
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
