//! A store that makes the change and answers that the result is unknown: the answer was lost on the way.

use std::{
    collections::{BTreeMap, VecDeque},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use windlass_core::{
    ClaimAnswer, Demand, Enqueued, Error, Gates, Hints, Lane, LeaseRef, Name, NewTask, NewWorker, Operators,
    Result, Rules, Schedules, SettleBatch, Settled, Source, Store, TaskId, TaskRecord, Tokens, WorkerId,
    WorkerRecord, WorkerReport,
    source::{DutyReport, Reconciled, Renewed},
    store::{Changed, Filter, Finding, LaneRecord, Page, Redrive, Retention, StoreInfo},
    usage::{ReadyLines, Usage},
};

/// Calls whose answer can be lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Call {
    /// [`Store::enqueue`].
    Enqueue,
    /// [`Source::claim`].
    Claim,
    /// [`Source::settle`].
    Settle,
}

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The store executes it and the answer arrives.
    Truth,
    /// The store executes it and the answer is lost.
    LostAnswer,
    /// The store does not execute it, and the caller cannot tell.
    LostCall,
}

/// Wraps a store; every call goes through unless a script says otherwise.
pub struct Lying<S: ?Sized = dyn Store> {
    script: Mutex<BTreeMap<Call, VecDeque<Fate>>>,
    lease_ttl: Option<Duration>,
    inner: Arc<S>,
}

impl<S: Store + ?Sized> Lying<S> {
    /// A wrapper without a script: every call goes through.
    pub fn new(inner: Arc<S>) -> Self {
        Self { inner, script: Mutex::default(), lease_ttl: None }
    }

    /// Lets every lease run out after this long, also if the worker asked for a longer one.
    #[must_use]
    pub fn lease_ttl(self, lease_ttl: Duration) -> Self {
        Self { lease_ttl: Some(lease_ttl), ..self }
    }

    /// Adds to the fates of the next calls of this kind; calls after them go through.
    pub fn script(&self, call: Call, fates: impl IntoIterator<Item = Fate>) {
        self.lock().entry(call).or_default().extend(fates);
    }

    /// Whether every scripted fate was used: a script that did not run to its end shows nothing.
    pub fn is_played(&self) -> bool {
        self.lock().values().all(VecDeque::is_empty)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<Call, VecDeque<Fate>>> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn meet<T>(&self, call: Call, act: impl Future<Output = Result<T>>) -> Result<T> {
        let fate = self.lock().get_mut(&call).and_then(VecDeque::pop_front).unwrap_or(Fate::Truth);
        let lost = || Err(Error::Unknown(format!("{call:?}, by script")));
        match fate {
            Fate::Truth => act.await,
            Fate::LostAnswer => {
                act.await?;
                lost()
            }
            Fate::LostCall => lost(),
        }
    }
}

#[async_trait]
impl<S: Store + ?Sized> Source for Lying<S> {
    async fn register(&self, worker: NewWorker) -> Result<WorkerId> {
        let lease_ttl = self.lease_ttl.unwrap_or(worker.lease_ttl);
        self.inner.register(NewWorker { lease_ttl, ..worker }).await
    }

    async fn renew(&self, worker: WorkerId, report: WorkerReport) -> Result<Renewed> {
        self.inner.renew(worker, report).await
    }

    async fn retire(&self, worker: WorkerId) -> Result<u64> {
        self.inner.retire(worker).await
    }

    async fn lanes(&self, kinds: &[Name], queues: &[Name]) -> Result<Vec<Arc<Lane>>> {
        self.inner.lanes(kinds, queues).await
    }

    async fn claim(&self, demands: &[Demand]) -> Result<ClaimAnswer> {
        self.meet(Call::Claim, self.inner.claim(demands)).await
    }

    async fn unclaim(&self, worker: WorkerId, claim_no: u64) -> Result<u64> {
        self.inner.unclaim(worker, claim_no).await
    }

    async fn settle(&self, batch: Arc<SettleBatch>) -> Result<Settled> {
        self.meet(Call::Settle, self.inner.settle(batch)).await
    }

    async fn progress(&self, worker: WorkerId, lease: LeaseRef, progress: String) -> Result<()> {
        self.inner.progress(worker, lease, progress).await
    }

    async fn reconcile(
        &self,
        worker: WorkerId,
        up_to_claim_no: u64,
        in_flight: &[LeaseRef],
    ) -> Result<Reconciled> {
        self.inner.reconcile(worker, up_to_claim_no, in_flight).await
    }

    async fn admit(&self, limit: u32) -> Result<DutyReport> {
        self.inner.admit(limit).await
    }

    async fn promote_due(&self, limit: u32) -> Result<DutyReport> {
        self.inner.promote_due(limit).await
    }

    async fn expire_workers(&self, limit: u32) -> Result<DutyReport> {
        self.inner.expire_workers(limit).await
    }

    fn hints(&self) -> Box<dyn Hints> {
        self.inner.hints()
    }
}

#[async_trait]
impl<S: Store + ?Sized> Store for Lying<S> {
    fn rules(&self) -> &Rules {
        self.inner.rules()
    }

    async fn enqueue(&self, tasks: Vec<NewTask>) -> Result<Vec<Enqueued>> {
        self.meet(Call::Enqueue, self.inner.enqueue(tasks)).await
    }

    async fn task(&self, id: TaskId) -> Result<Option<TaskRecord>> {
        self.inner.task(id).await
    }

    async fn tasks(&self, filter: &Filter, after: Option<TaskId>, limit: u32) -> Result<Page> {
        self.inner.tasks(filter, after, limit).await
    }

    async fn ended(&self, ids: &[TaskId], wait: Duration) -> Result<Vec<(TaskId, Option<TaskRecord>)>> {
        self.inner.ended(ids, wait).await
    }

    async fn cancel(&self, ids: &[TaskId], reason: &str) -> Result<Vec<Changed>> {
        self.inner.cancel(ids, reason).await
    }

    async fn redrive(&self, tasks: &[Redrive]) -> Result<Vec<Changed>> {
        self.inner.redrive(tasks).await
    }

    async fn remove(&self, ids: &[TaskId]) -> Result<Vec<Changed>> {
        self.inner.remove(ids).await
    }

    async fn key_holder(&self, queue: &Name, key: &str) -> Result<Option<TaskId>> {
        self.inner.key_holder(queue, key).await
    }

    async fn lane_records(&self) -> Result<Vec<LaneRecord>> {
        self.inner.lane_records().await
    }

    async fn set_queue_paused(&self, queue: &Name, paused: bool) -> Result<bool> {
        self.inner.set_queue_paused(queue, paused).await
    }

    async fn paused_queues(&self) -> Result<Vec<Name>> {
        self.inner.paused_queues().await
    }

    async fn workers(&self) -> Result<Vec<WorkerRecord>> {
        self.inner.workers().await
    }

    async fn set_worker_slots(&self, worker: WorkerId, slots: u32) -> Result<()> {
        self.inner.set_worker_slots(worker, slots).await
    }

    async fn retain(&self, retention: &Retention) -> Result<DutyReport> {
        self.inner.retain(retention).await
    }

    fn gates(&self) -> &dyn Gates {
        self.inner.gates()
    }

    fn schedules(&self) -> &dyn Schedules {
        self.inner.schedules()
    }

    fn tokens(&self) -> &dyn Tokens {
        self.inner.tokens()
    }

    fn operators(&self) -> &dyn Operators {
        self.inner.operators()
    }

    async fn audit(&self) -> Result<Vec<Finding>> {
        self.inner.audit().await
    }

    fn usage(&self) -> Usage {
        self.inner.usage()
    }

    async fn ready_lines(&self) -> Result<ReadyLines> {
        self.inner.ready_lines().await
    }

    async fn info(&self) -> Result<StoreInfo> {
        self.inner.info().await
    }

    async fn backup(&self, to: &Path) -> Result<()> {
        self.inner.backup(to).await
    }

    async fn close(&self) -> Result<()> {
        self.inner.close().await
    }
}
