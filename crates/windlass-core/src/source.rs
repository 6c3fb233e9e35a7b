//! The part of a store that workers use: leases, claims, settlements, duties and hints.

#[doc(hidden)]
pub mod hints;

use std::{collections::HashSet, pin::Pin, sync::Arc};

use async_trait::async_trait;

use crate::{
    affinity::Prefers,
    error::{Error, Result},
    gate::Gate,
    id::{LaneId, TaskId, WorkerId},
    name::Name,
    rules::Rules,
    settlement::Settlement,
    task::{Claimed, Lane},
    time::Timestamp,
    worker::{NewWorker, WorkerReport},
};

/// What one worker asks for in a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demand {
    /// The worker that asks.
    pub worker: WorkerId,
    /// The number of this claim; rises by at least one with each claim of the worker.
    pub claim_no: u64,
    /// Lanes that it handles.
    pub lanes: Arc<[LaneId]>,
    /// How many tasks can start now.
    pub n: u32,
    /// The workflows whose steps it prefers. Among the tasks of one claim for several workers, each step goes
    /// to the worker that prefers its workflow, if that worker has room. The preference does not change what
    /// is claimed.
    pub prefers: Prefers,
    /// Whether the caller waits for a hint and then claims again. A store may lease such a caller a task in
    /// the meantime. The caller gets that task with its next claim, under the number of this one.
    pub waits: bool,
}

impl Demand {
    /// A demand without preferences.
    pub fn new(worker: WorkerId, claim_no: u64, lanes: Arc<[LaneId]>, n: u32) -> Self {
        Self { worker, claim_no, lanes, n, prefers: Prefers::Nothing, waits: false }
    }
}

/// Why a claim brought less than it asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// There may be more: the demand was met in full, or the store brought something and has not looked
    /// further.
    More,
    /// Nothing else is ready in these lanes; after a claim that brought something, as far as the store has looked.
    Nothing,
    /// A task is ready but may not be taken now: its queue is paused, or it is a suspect of crashes and this
    /// worker runs another group of suspects.
    Blocked,
}

/// The answer to a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimAnswer {
    /// What was taken; each names its worker.
    pub tasks: Vec<Claimed>,
    /// Why the claim did not bring more.
    pub rest: Rest,
    /// When the next scheduled task (of any lane) is due, if there is one. After a claim that brought
    /// something, a store may leave this look to the next claim.
    pub next_due: Option<Timestamp>,
    /// The store's clock.
    pub now: Timestamp,
}

/// The fence of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeaseRef {
    /// The task.
    pub id: TaskId,
    /// Its lease number at the claim.
    pub lease: u32,
}

/// The end of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettleItem {
    /// The attempt.
    pub lease: LeaseRef,
    /// The new state of the task and what to keep with it.
    pub settlement: Settlement,
    /// The gates that the task passed, as its claim said. Workers send items with and without a gate in
    /// batches of their own, because the lock of a job must not delay plain tasks.
    pub gate: Gate,
}

impl SettleItem {
    /// The settlement of a claimed attempt.
    pub fn new(claimed: &Claimed, settlement: Settlement) -> Self {
        let lease = LeaseRef { id: claimed.id, lease: claimed.lease };
        Self { lease, settlement, gate: claimed.gate() }
    }
}

/// A numbered batch of settlements of one worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettleBatch {
    /// The worker that holds the leases.
    pub worker: WorkerId,
    /// Which settler of the worker sends it; each numbers its own batches.
    pub settler_no: u32,
    /// Rises by one with each new batch; sent again unchanged while its answer is in doubt.
    pub batch_no: u64,
    /// The ends of attempts, each task at most once.
    pub items: Vec<SettleItem>,
}

impl SettleBatch {
    /// Checks a batch that a worker sent to a server, and cuts texts and outputs to what the rules allow: the
    /// worker may have other rules, or none.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a task is named twice, or a number is too large to be kept.
    pub fn from_outside(mut self, rules: &Rules) -> Result<Self> {
        let mut seen = HashSet::with_capacity(self.items.len());
        if let Some(item) = self.items.iter().find(|item| !seen.insert(item.lease.id)) {
            return Err(Error::invalid(format!("a batch names task {} twice", item.lease.id)));
        }
        if i64::try_from(self.batch_no).is_err() {
            return Err(Error::invalid("batch_no is too large"));
        }
        for item in &mut self.items {
            item.settlement = std::mem::replace(&mut item.settlement, Settlement::Release).within(rules);
        }
        Ok(self)
    }
}

/// The answer to a batch of settlements.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settled {
    /// Tasks whose lease was no longer held; nothing was changed for them.
    pub fenced: Vec<TaskId>,
    /// Lanes that have ready tasks because of this batch, as far as the store knows when it answers. Of
    /// others it gives a hint.
    pub lanes_ready: Vec<LaneId>,
    /// When the next scheduled task is due, if there is one; always set by a batch that scheduled something.
    pub next_due: Option<Timestamp>,
    /// Whether this is the stored answer of a batch that had already been applied.
    pub replayed: bool,
}

/// The answer to a renewal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Renewed {
    /// Running attempts of this worker that a user asked to end, with the reason.
    pub cancels: Vec<(LeaseRef, String)>,
    /// How many slots it has now: what it registered with, or what an operator has set since.
    pub slots: Option<u32>,
    /// The epoch of the store's leases. If it is not the same as before, the store may have forgotten claims,
    /// and the worker calls [`Source::reconcile`] at once. `None` if the store does not say.
    pub epoch: Option<u32>,
}

/// The answer to [`Source::reconcile`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reconciled {
    /// How many leases the store had that the worker did not name; the store handed those tasks back.
    pub handed_back: u64,
    /// Leases that the worker named and does not have in the store, in order: ended, given to another worker,
    /// or forgotten in a crash. The worker ends these attempts.
    pub lost: Vec<LeaseRef>,
}

impl Reconciled {
    /// The leases of `in_flight` that the store does not give the worker.
    pub fn new(handed_back: u64, in_flight: &[LeaseRef], is_held: impl Fn(LeaseRef) -> bool) -> Self {
        let mut lost: Vec<LeaseRef> = in_flight.iter().copied().filter(|lease| !is_held(*lease)).collect();
        lost.sort_unstable();
        lost.dedup();
        Self { handed_back, lost }
    }
}

/// The result of a duty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DutyReport {
    /// Tasks that it moved.
    pub moved: u64,
    /// Workers that it found dead.
    pub workers: Vec<WorkerId>,
    /// Lanes that have ready tasks because of it.
    pub lanes_ready: Vec<LaneId>,
    /// When the next scheduled task is due, if there is one; always set by a duty that moved something.
    pub next_due: Option<Timestamp>,
    /// Whether it stopped at its limit and has more to do.
    pub more: bool,
}

/// A reason to look at the store. Only a hint: if every hint is lost, everything still happens, one poll
/// later (HINTS-ONLY).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hint {
    /// Tasks became ready, or a queue was resumed.
    Ready,
    /// A task was scheduled for this time.
    Due(Timestamp),
    /// A lane appeared.
    Lanes,
    /// A user asked a running attempt to end.
    Cancel(LeaseRef, String),
    /// The store does not give a lease to its worker, as in [`Reconciled::lost`]. Sent by a source that
    /// compares leases by itself.
    Lost(LeaseRef),
}

/// A subscription to hints; coalesced, so a slow reader costs nothing.
#[async_trait]
pub trait Hints: Send {
    /// Waits for the next hint. Cancel safe. Pends for ever if the store gives none.
    async fn next(&mut self) -> Hint;
}

/// Where a worker's tasks come from, and where their settlements go.
///
/// Every write after a claim names (task, lease, worker) and changes nothing if they no longer match
/// (FENCED). A method that failed with [`crate::Error::Unknown`] may have taken effect.
#[async_trait]
pub trait Source: Send + Sync + 'static {
    /// Registers a worker and starts its lease.
    async fn register(&self, worker: NewWorker) -> Result<WorkerId>;

    /// Registers a worker that runs in another process than a store of a single process. That worker may
    /// outlive the store's process, so it is not dead when that process ends. A server registers its workers
    /// this way, with the caller that owns the registration: it lets no other caller speak for this worker.
    async fn register_remote(&self, worker: NewWorker, owner: Option<&str>) -> Result<WorkerId> {
        let _ = owner;
        self.register(worker).await
    }

    /// Prolongs a worker's lease. [`crate::Error::WorkerExpired`] is final: the worker hands back what it
    /// held and registers under a new id.
    async fn renew(&self, worker: WorkerId, report: WorkerReport) -> Result<Renewed>;

    /// Ends a registration. What the worker still holds is handed back without spending an attempt.
    async fn retire(&self, worker: WorkerId) -> Result<u64>;

    /// The lanes that a worker with these kinds and queues (empty: all) serves. A lane that another process
    /// has just made may be missing; the next claim or hint reports it.
    async fn lanes(&self, kinds: &[Name], queues: &[Name]) -> Result<Vec<Arc<Lane>>>;

    /// Takes ready tasks: by priority (higher first), then in order of entry into ready.
    ///
    /// Refuses with [`crate::Error::WorkerExpired`] if a worker's lease is not in force or its `claim_no` is
    /// below what `unclaim` has set. Suspects of crashes come first, of one group at a time per worker
    /// ([`crate::crash`]). After [`crate::Error::Unknown`] the caller runs [`Source::unclaim`] before its
    /// next claim. Not cancel safe: a dropped call may have claimed.
    async fn claim(&self, demands: &[Demand]) -> Result<ClaimAnswer>;

    /// Hands back every task that claim `claim_no` of the worker took, and refuses that claim if it arrives
    /// later.
    async fn unclaim(&self, worker: WorkerId, claim_no: u64) -> Result<u64>;

    /// Writes the ends of attempts, all in one durable commit, once per batch number: a batch that was
    /// already applied is answered from its receipt. Tasks that it releases become ready in the order of
    /// their ids, not in the order of the batch.
    async fn settle(&self, batch: Arc<SettleBatch>) -> Result<Settled>;

    /// Keeps a short text that says how far an attempt is.
    async fn progress(&self, worker: WorkerId, lease: LeaseRef, progress: String) -> Result<()>;

    /// Compares leases in both directions. Tasks that the store gives to the worker and the worker does not
    /// name are handed back. Tasks of claims above `up_to_claim_no` are left alone, because their answers may
    /// still be on their way. The answer names the leases that the worker named and does not have; one that
    /// was just settled is among them, which is no loss.
    async fn reconcile(
        &self,
        worker: WorkerId,
        up_to_claim_no: u64,
        in_flight: &[LeaseRef],
    ) -> Result<Reconciled>;

    /// Checks jobs and workflows that were appended to or whose time has come, at most `limit` of them. Every
    /// call that enqueues, settles or changes a gate does this for the gates that it touched. This duty finds
    /// appends of a caller's own transaction, work that a crash left undone, and jobs whose delay has passed.
    async fn admit(&self, limit: u32) -> Result<DutyReport>;

    /// Moves on tasks whose time has come, at most `limit`: they become ready, or held if they have a job.
    async fn promote_due(&self, limit: u32) -> Result<DutyReport>;

    /// Takes tasks back from workers whose leases ran out, at most `limit` tasks. Each task counts a crash
    /// and becomes ready, as a suspect from the second crash on. It dies at `max_crashes` if it was alone.
    async fn expire_workers(&self, limit: u32) -> Result<DutyReport>;

    /// Subscribes to hints.
    fn hints(&self) -> Box<dyn Hints>;

    /// Whether hints arrive at present, so that polling may slow down while there is nothing to do.
    fn hears_of_new_tasks(&self) -> bool {
        true
    }

    /// Whether the store sends tasks without a call at present, up to what the last claim asked for.
    fn pushes(&self) -> bool {
        false
    }

    /// Runs a loop that claims on the thread that reads and writes the bytes of claims, if there is such a
    /// thread: no other thread must be woken for an answer. A source without such a thread gives the loop
    /// back.
    fn run_beside(&self, claims: Loop) -> Option<Loop> {
        Some(claims)
    }
}

/// A loop that runs until it ends.
pub type Loop = Pin<Box<dyn Future<Output = ()> + Send>>;
