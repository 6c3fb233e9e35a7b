//! The model behind the traits of a store: an in-memory store for tests.

mod gates;
mod operators;
mod tokens;

use std::{
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use tokio::sync::{Notify, broadcast};
use windlass_core::{
    ClaimAnswer, Claimed, Clock, Demand, Enqueued, Error, Gates, Hint, Hints, Lane, LeaseRef, Name, NewTask,
    NewWorker, Operators, Result, Rules, Schedules, SettleBatch, Settled, Source, State, Store, TaskId,
    TaskRecord, Tokens, WorkerId, WorkerRecord, WorkerReport,
    source::{DutyReport, Reconciled, Renewed},
    store::{Changed, Filter, Finding, LaneRecord, Page, Redrive, Retention, Safe, StoreInfo},
    usage::{EnqueueMeter, ReadyLines, Usage},
    worker::Registration,
};

use crate::{
    fault::Fault,
    model::{Model, Now},
};

/// After this many missed hints, a slow reader is told to look at everything.
const HINTS_MAX: usize = 256;

/// A store that lives in this process only.
///
/// One lock around the [`Model`], a clock that the caller gives, and nothing else: correct, and as fast as a
/// scan over all tasks.
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    rules: Rules,
    model: Mutex<Model>,
    ended: Notify,
    hints: broadcast::Sender<Hint>,
    enqueues: EnqueueMeter,
    calls: AtomicU64,
    closed: AtomicBool,
}

impl MemoryStore {
    /// An empty store.
    pub fn new(clock: Arc<dyn Clock>, rules: Rules) -> Self {
        Self::from_model(clock, Model::new(rules))
    }

    /// An empty store with a deliberate defect.
    pub fn with_fault(clock: Arc<dyn Clock>, rules: Rules, fault: Fault) -> Self {
        Self::from_model(clock, Model::new(rules).with_fault(Some(fault)))
    }

    /// A store that starts with this model.
    pub fn from_model(clock: Arc<dyn Clock>, model: Model) -> Self {
        let (hints, _) = broadcast::channel(HINTS_MAX);
        let rules = model.rules().clone();
        let closed = AtomicBool::new(false);
        let (model, enqueues) = (Mutex::new(model), EnqueueMeter::default());
        Self { clock, rules, model, ended: Notify::new(), hints, enqueues, calls: AtomicU64::new(0), closed }
    }

    /// The model now.
    pub fn model(&self) -> Model {
        self.lock().clone()
    }

    /// How many calls it has answered.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run<T>(&self, act: impl FnOnce(&mut Model, Now) -> T) -> Result<T> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::Unavailable("the store was closed".to_owned()));
        }
        self.calls.fetch_add(1, Ordering::Relaxed);
        let now = Now { wall: self.clock.wall(), monotonic: self.clock.monotonic() };
        Ok(act(&mut self.lock(), now))
    }

    /// There may be no listener, which is fine: hints are only hints.
    fn hint(&self, hint: Hint) {
        let _ = self.hints.send(hint);
    }

    fn hint_duty(&self, report: &DutyReport) {
        self.ended.notify_waiters();
        if !report.lanes_ready.is_empty() {
            self.hint(Hint::Ready);
        }
    }
}

#[async_trait]
impl Source for MemoryStore {
    async fn register(&self, worker: NewWorker) -> Result<WorkerId> {
        self.register_remote(worker, None).await
    }

    async fn register_remote(&self, worker: NewWorker, owner: Option<&str>) -> Result<WorkerId> {
        let (id, more_ready) = self.run(|model, now| {
            let before = model.last_ready_seq();
            (model.register(now, worker, owner.map(str::to_owned)), model.last_ready_seq() > before)
        })?;
        if more_ready {
            self.hint(Hint::Ready);
        }
        Ok(id)
    }

    async fn renew(&self, worker: WorkerId, report: WorkerReport) -> Result<Renewed> {
        self.run(|model, now| model.renew(now, worker, report))?
    }

    async fn retire(&self, worker: WorkerId) -> Result<u64> {
        let handed_back = self.run(|model, now| model.retire(now, worker))??;
        self.ended.notify_waiters();
        self.hint(Hint::Ready);
        Ok(handed_back)
    }

    async fn lanes(&self, kinds: &[Name], queues: &[Name]) -> Result<Vec<Arc<Lane>>> {
        self.run(|model, _| model.lanes(kinds, queues))
    }

    async fn claim(&self, demands: &[Demand]) -> Result<ClaimAnswer> {
        self.run(|model, now| model.claim(now, demands))?
    }

    async fn unclaim(&self, worker: WorkerId, claim_no: u64) -> Result<u64> {
        let handed_back = self.run(|model, now| model.unclaim(now, worker, claim_no))??;
        self.ended.notify_waiters();
        self.hint(Hint::Ready);
        Ok(handed_back)
    }

    async fn settle(&self, batch: Arc<SettleBatch>) -> Result<Settled> {
        let settled = self.run(|model, now| model.settle(now, &batch))??;
        self.ended.notify_waiters();
        if !settled.lanes_ready.is_empty() {
            self.hint(Hint::Ready);
        }
        if let Some(due) = settled.next_due {
            self.hint(Hint::Due(due));
        }
        Ok(settled)
    }

    async fn progress(&self, worker: WorkerId, lease: LeaseRef, progress: String) -> Result<()> {
        self.run(|model, _| model.progress(worker, lease, &progress))?
    }

    async fn reconcile(
        &self,
        worker: WorkerId,
        up_to_claim_no: u64,
        in_flight: &[LeaseRef],
    ) -> Result<Reconciled> {
        let reconciled = self.run(|model, now| model.reconcile(now, worker, up_to_claim_no, in_flight))??;
        self.ended.notify_waiters();
        self.hint(Hint::Ready);
        Ok(reconciled)
    }

    async fn admit(&self, limit: u32) -> Result<DutyReport> {
        let report = self.run(|model, now| model.admit(now, limit))?;
        self.hint_duty(&report);
        Ok(report)
    }

    async fn promote_due(&self, limit: u32) -> Result<DutyReport> {
        let report = self.run(|model, now| model.promote_due(now, limit))?;
        self.hint_duty(&report);
        Ok(report)
    }

    async fn expire_workers(&self, limit: u32) -> Result<DutyReport> {
        let report = self.run(|model, now| model.expire_workers(now, limit))?;
        self.hint_duty(&report);
        Ok(report)
    }

    fn hints(&self) -> Box<dyn Hints> {
        Box::new(MemoryHints(self.hints.subscribe()))
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn rules(&self) -> &Rules {
        &self.rules
    }

    async fn enqueue(&self, tasks: Vec<NewTask>) -> Result<Vec<Enqueued>> {
        let (answers, due, lanes) = self.run(|model, now| {
            let before = model.lane_records().len();
            let answers = model.enqueue(now, &tasks);
            (answers, model.next_due(), model.lane_records().len() > before)
        })?;
        let answers = answers?;
        self.enqueues.count(&answers);
        if lanes {
            self.hint(Hint::Lanes);
        }
        self.hint(Hint::Ready);
        if let Some(due) = due {
            self.hint(Hint::Due(due));
        }
        Ok(answers)
    }

    async fn enqueue_for(&self, task: NewTask, demand: &Demand) -> Result<(Enqueued, Option<Claimed>, Safe)> {
        let (answer, lanes) = self.run(|model, now| {
            let before = model.lane_records().len();
            let answer = model.enqueue_for(now, &task, demand);
            (answer, model.lane_records().len() > before)
        })?;
        let (enqueued, claimed) = answer?;
        self.enqueues.count([&enqueued]);
        if lanes {
            self.hint(Hint::Lanes);
        }
        if claimed.is_none() {
            self.hint(Hint::Ready);
        }
        Ok((enqueued, claimed, Safe::already()))
    }

    async fn task(&self, id: TaskId) -> Result<Option<TaskRecord>> {
        self.run(|model, _| model.task(id))
    }

    async fn tasks(&self, filter: &Filter, after: Option<TaskId>, limit: u32) -> Result<Page> {
        filter.check()?;
        self.run(|model, _| model.tasks(filter, after, limit))
    }

    async fn ended(&self, ids: &[TaskId], wait: Duration) -> Result<Vec<(TaskId, Option<TaskRecord>)>> {
        let deadline = tokio::time::Instant::now() + wait;
        loop {
            let notified = self.ended.notified();
            tokio::pin!(notified);
            // Listen before looking: an end between the two would be missed.
            notified.as_mut().enable();
            let ended = self.run(|model, _| model.ended(ids))?;
            if !ended.is_empty() || tokio::time::timeout_at(deadline, notified).await.is_err() {
                return Ok(ended);
            }
        }
    }

    async fn cancel(&self, ids: &[TaskId], reason: &str) -> Result<Vec<Changed>> {
        let (changed, running) = self.run(|model, now| {
            let changed = model.cancel(now, ids, reason);
            let running = changed.iter().filter(|changed| changed.result == Ok(State::Running));
            let leases: Vec<_> = running
                .filter_map(|changed| model.task(changed.id))
                .map(|task| LeaseRef { id: task.id, lease: task.lease })
                .collect();
            (changed, leases)
        })?;
        self.ended.notify_waiters();
        for lease in running {
            self.hint(Hint::Cancel(lease, reason.to_owned()));
        }
        Ok(changed)
    }

    async fn redrive(&self, tasks: &[Redrive]) -> Result<Vec<Changed>> {
        let (changed, due) = self.run(|model, now| (model.redrive(now, tasks), model.next_due()))?;
        if let Some(due) = due {
            self.hint(Hint::Due(due));
        }
        Ok(changed)
    }

    async fn remove(&self, ids: &[TaskId]) -> Result<Vec<Changed>> {
        self.run(|model, _| model.remove_dead(ids))
    }

    async fn key_holder(&self, queue: &Name, key: &str) -> Result<Option<TaskId>> {
        self.run(|model, now| model.key_holder(now, queue, key))
    }

    async fn lane_records(&self) -> Result<Vec<LaneRecord>> {
        self.run(|model, _| model.lane_records())
    }

    async fn set_queue_paused(&self, queue: &Name, paused: bool) -> Result<bool> {
        let changed = self.run(|model, now| model.set_queue_paused(now, queue, paused))?;
        if changed && !paused {
            self.hint(Hint::Ready);
        }
        Ok(changed)
    }

    async fn paused_queues(&self) -> Result<Vec<Name>> {
        self.run(|model, _| model.paused_queues())
    }

    async fn workers(&self) -> Result<Vec<WorkerRecord>> {
        self.run(|model, now| model.workers(now))
    }

    async fn registration(&self, worker: WorkerId) -> Result<Option<Registration>> {
        self.run(|model, _| model.registration(worker))
    }

    async fn set_worker_slots(&self, worker: WorkerId, slots: u32) -> Result<()> {
        self.run(|model, now| model.set_worker_slots(now, worker, slots))??;
        self.hint(Hint::Ready);
        Ok(())
    }

    async fn retain(&self, retention: &Retention) -> Result<DutyReport> {
        let report = self.run(|model, now| model.retain(now, retention))?;
        self.ended.notify_waiters();
        Ok(report)
    }

    fn gates(&self) -> &dyn Gates {
        self
    }

    fn schedules(&self) -> &dyn Schedules {
        self
    }

    fn tokens(&self) -> &dyn Tokens {
        self
    }

    fn operators(&self) -> &dyn Operators {
        self
    }

    async fn audit(&self) -> Result<Vec<Finding>> {
        self.run(|model, _| model.audit())
    }

    fn usage(&self) -> Usage {
        let (enqueued, existing) = self.enqueues.read();
        Usage { enqueued, existing, pools: Vec::new() }
    }

    async fn ready_lines(&self) -> Result<ReadyLines> {
        self.run(|model, _| model.ready_lines())
    }

    async fn info(&self) -> Result<StoreInfo> {
        self.run(|model, _| model.info())
    }

    async fn backup(&self, _to: &Path) -> Result<()> {
        Err(Error::Unsupported("a backup of an in-memory store".to_owned()))
    }

    async fn close(&self) -> Result<()> {
        self.closed.store(true, Ordering::Release);
        self.ended.notify_waiters();
        Ok(())
    }
}

struct MemoryHints(broadcast::Receiver<Hint>);

#[async_trait]
impl Hints for MemoryHints {
    async fn next(&mut self) -> Hint {
        match self.0.recv().await {
            Ok(hint) => hint,
            Err(broadcast::error::RecvError::Lagged(_)) => Hint::Ready,
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }
}
