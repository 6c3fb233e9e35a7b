//! A store that notes how long each claim takes, and passes everything on.

use std::{
    collections::VecDeque,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use windlass_core::{
    ClaimAnswer, Demand, Enqueued, Gates, Hints, Lane, LeaseRef, Name, NewTask, NewWorker, Result, Rules,
    Schedules, SettleBatch, Settled, Source, Store, TaskId, TaskRecord, WorkerId, WorkerRecord, WorkerReport,
    source::{DutyReport, Renewed},
    store::{Changed, Filter, Finding, LaneRecord, Page, Redrive, Retention, SharedStore, StoreInfo},
};

/// Times that are kept; of a longer run the last ones.
const TIMES_MAX: usize = 100_000;

/// How long claims took, empty ones included.
#[derive(Debug, Default)]
pub(super) struct Claims(Mutex<VecDeque<Duration>>);

impl Claims {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Duration>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, took: Duration) {
        let mut times = self.lock();
        if times.len() == TIMES_MAX {
            times.pop_front();
        }
        times.push_back(took);
    }

    /// Forgets what was noted so far.
    pub(super) fn clear(&self) {
        self.lock().clear();
    }

    /// The time that 99 of 100 claims did not exceed.
    pub(super) fn p99(&self) -> Duration {
        let mut times: Vec<Duration> = self.lock().iter().copied().collect();
        times.sort_unstable();
        let place = (times.len() * 99).div_ceil(100).saturating_sub(1);
        times.get(place).copied().unwrap_or_default()
    }
}

/// The store of the demo's worker.
pub(super) struct Timed {
    inner: SharedStore,
    claims: Arc<Claims>,
}

impl Timed {
    /// Passes on to this store.
    pub(super) fn new(inner: SharedStore, claims: Arc<Claims>) -> Self {
        Self { inner, claims }
    }
}

#[async_trait]
impl Source for Timed {
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
        let start = Instant::now();
        let answer = self.inner.claim(demands).await;
        self.claims.note(start.elapsed());
        answer
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

    async fn reconcile(&self, worker: WorkerId, up_to_claim_no: u64, in_flight: &[LeaseRef]) -> Result<u64> {
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

    fn hears_of_new_tasks(&self) -> bool {
        self.inner.hears_of_new_tasks()
    }
}

#[async_trait]
impl Store for Timed {
    fn rules(&self) -> &Rules {
        self.inner.rules()
    }

    fn schema(&self) -> Option<&str> {
        self.inner.schema()
    }

    async fn enqueue(&self, tasks: Vec<NewTask>) -> Result<Vec<Enqueued>> {
        self.inner.enqueue(tasks).await
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_claim_in_a_hundred_is_not_the_p99_and_two_are() {
        let claims = Claims::default();
        let (fast, slow) = (Duration::from_millis(1), Duration::from_millis(80));
        assert_eq!(claims.p99(), Duration::ZERO);
        for _ in 0..99 {
            claims.note(fast);
        }
        claims.note(slow);
        assert_eq!(claims.p99(), fast);
        claims.note(slow);
        assert_eq!(claims.p99(), slow);
    }
}
