//! A store that records its tasks, counts queries for the ends of tasks, and fails enqueues on demand.

use std::{
    collections::VecDeque,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use windlass::{
    Error, Name, NewTask, Result, TaskId, TaskRecord,
    store::{
        Changed, ClaimAnswer, Demand, DutyReport, Filter, Finding, Gates, Hints, LaneRecord, LeaseRef,
        NewWorker, Page, Reconciled, Redrive, Renewed, Retention, Rules, Schedules, SettleBatch, Settled,
        Source, Store, StoreInfo, WorkerRecord, WorkerReport,
    },
    task::{Enqueued, Lane, WorkerId},
};
use windlass_conformance::MemoryStore;

pub struct Counting {
    inner: Arc<MemoryStore>,
    asked: AtomicUsize,
    enqueued: Mutex<Vec<NewTask>>,
    failures: Mutex<VecDeque<Failing>>,
}

/// How an enqueue fails.
pub enum Failing {
    /// Nothing is added.
    Before(Error),
    /// The tasks are added and the answer is lost.
    After(Error),
}

impl Counting {
    pub fn new(inner: Arc<MemoryStore>) -> Arc<Self> {
        Arc::new(Self {
            inner,
            asked: AtomicUsize::new(0),
            enqueued: Mutex::default(),
            failures: Mutex::default(),
        })
    }

    /// The next enqueues fail this way, one each.
    pub fn fail(&self, failures: impl IntoIterator<Item = Failing>) {
        self.failures.lock().unwrap().extend(failures);
    }

    /// Failures that no enqueue has used yet.
    pub fn failures_left(&self) -> usize {
        self.failures.lock().unwrap().len()
    }

    /// How often `ended` was called.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    /// The tasks of all enqueues, also of failed ones.
    pub fn enqueued(&self) -> Vec<NewTask> {
        self.enqueued.lock().unwrap().clone()
    }
}

#[async_trait]
impl Source for Counting {
    async fn register(&self, worker: NewWorker) -> Result<WorkerId> {
        self.inner.register(worker).await
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
        self.inner.claim(demands).await
    }

    async fn unclaim(&self, worker: WorkerId, claim_no: u64) -> Result<u64> {
        self.inner.unclaim(worker, claim_no).await
    }

    async fn settle(&self, batch: Arc<SettleBatch>) -> Result<Settled> {
        self.inner.settle(batch).await
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
impl Store for Counting {
    fn rules(&self) -> &Rules {
        self.inner.rules()
    }

    async fn enqueue(&self, tasks: Vec<NewTask>) -> Result<Vec<Enqueued>> {
        self.enqueued.lock().unwrap().extend(tasks.iter().cloned());
        let failing = self.failures.lock().unwrap().pop_front();
        match failing {
            Some(Failing::Before(error)) => Err(error),
            Some(Failing::After(error)) => self.inner.enqueue(tasks).await.and(Err(error)),
            None => self.inner.enqueue(tasks).await,
        }
    }

    async fn task(&self, id: TaskId) -> Result<Option<TaskRecord>> {
        self.inner.task(id).await
    }

    async fn tasks(&self, filter: &Filter, after: Option<TaskId>, limit: u32) -> Result<Page> {
        self.inner.tasks(filter, after, limit).await
    }

    async fn ended(&self, ids: &[TaskId], wait: Duration) -> Result<Vec<(TaskId, Option<TaskRecord>)>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if ids.len() > 10_000 {
            return Err(Error::invalid("too many tasks in one look-up"));
        }
        self.inner.ended(ids, wait).await
    }

    async fn cancel(&self, ids: &[TaskId], reason: &str) -> Result<Vec<Changed>> {
        self.inner.cancel(ids, reason).await
    }

    async fn redrive(&self, tasks: &[Redrive]) -> Result<Vec<Changed>> {
        self.inner.redrive(tasks).await
    }

    async fn remove(&self, ids: &[TaskId]) -> Result<Vec<Changed>> {
        Store::remove(&*self.inner, ids).await
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

    async fn audit(&self) -> Result<Vec<Finding>> {
        self.inner.audit().await
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
