//! A store that fails in one way, or never answers.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use windlass_core::{
    ClaimAnswer, Demand, Enqueued, Error, Hint, Hints, Lane, LeaseRef, Name, NewTask, NewWorker, Result,
    Rules, SettleBatch, Settled, Source, Store, TaskId, TaskRecord, WorkerId, WorkerRecord, WorkerReport,
    source::{DutyReport, Reconciled, Renewed},
    store::{Changed, Filter, Finding, LaneRecord, Page, Redrive, Retention, StoreInfo},
};
use windlass_core::{
    Fire, Gates, JobChange, JobRecord, ScheduleRow, Schedules, WorkflowAction, WorkflowRecord,
    gate::GateView, schedule::DueSchedules,
};

pub struct DeadStore {
    rules: Rules,
    error: Option<Error>,
    /// Reads of lists, if it answers them.
    reads: Option<AtomicU64>,
}

/// An endless store answers so many reads of lists, and then fails.
const READS_MAX: u64 = 100;

impl DeadStore {
    pub fn silent() -> Arc<Self> {
        Arc::new(Self { rules: Rules::default(), error: None, reads: None })
    }

    pub fn failing(error: Error) -> Arc<Self> {
        Arc::new(Self { rules: Rules::default(), error: Some(error), reads: None })
    }

    /// One that has so many tasks that no list comes to its end, and none that a filter matches.
    pub fn endless() -> Arc<Self> {
        let error = Some(Error::Unavailable("too many reads".to_owned()));
        Arc::new(Self { rules: Rules::default(), error, reads: Some(AtomicU64::new(0)) })
    }

    /// How many lists were read.
    pub fn reads(&self) -> u64 {
        self.reads.as_ref().map_or(0, |reads| reads.load(Ordering::Relaxed))
    }

    async fn fail<T>(&self) -> Result<T> {
        match &self.error {
            Some(error) => Err(error.clone()),
            None => std::future::pending().await,
        }
    }
}

struct NoHints;

#[async_trait]
impl Hints for NoHints {
    async fn next(&mut self) -> Hint {
        std::future::pending().await
    }
}

#[async_trait]
impl Source for DeadStore {
    async fn register(&self, _: NewWorker) -> Result<WorkerId> {
        self.fail().await
    }

    async fn renew(&self, _: WorkerId, _: WorkerReport) -> Result<Renewed> {
        self.fail().await
    }

    async fn retire(&self, _: WorkerId) -> Result<u64> {
        self.fail().await
    }

    async fn lanes(&self, _: &[Name], _: &[Name]) -> Result<Vec<Arc<Lane>>> {
        self.fail().await
    }

    async fn claim(&self, _: &[Demand]) -> Result<ClaimAnswer> {
        self.fail().await
    }

    async fn unclaim(&self, _: WorkerId, _: u64) -> Result<u64> {
        self.fail().await
    }

    async fn settle(&self, _: Arc<SettleBatch>) -> Result<Settled> {
        self.fail().await
    }

    async fn progress(&self, _: WorkerId, _: LeaseRef, _: String) -> Result<()> {
        self.fail().await
    }

    async fn reconcile(&self, _: WorkerId, _: u64, _: &[LeaseRef]) -> Result<Reconciled> {
        self.fail().await
    }

    async fn admit(&self, _limit: u32) -> Result<DutyReport> {
        self.fail().await
    }

    async fn promote_due(&self, _: u32) -> Result<DutyReport> {
        self.fail().await
    }

    async fn expire_workers(&self, _: u32) -> Result<DutyReport> {
        self.fail().await
    }

    fn hints(&self) -> Box<dyn Hints> {
        Box::new(NoHints)
    }
}

#[async_trait]
impl Store for DeadStore {
    fn rules(&self) -> &Rules {
        &self.rules
    }

    async fn enqueue(&self, _: Vec<NewTask>) -> Result<Vec<Enqueued>> {
        self.fail().await
    }

    async fn task(&self, _: TaskId) -> Result<Option<TaskRecord>> {
        self.fail().await
    }

    async fn tasks(&self, _: &Filter, after: Option<TaskId>, _: u32) -> Result<Page> {
        let read = self.reads.as_ref().map_or(READS_MAX, |reads| reads.fetch_add(1, Ordering::Relaxed));
        if read >= READS_MAX {
            return self.fail().await;
        }
        let next = after.map_or(i64::MAX, TaskId::raw) - 20_000;
        Ok(Page { tasks: Vec::new(), next: Some(TaskId::from_raw(next)) })
    }

    async fn ended(&self, _: &[TaskId], _: Duration) -> Result<Vec<(TaskId, Option<TaskRecord>)>> {
        self.fail().await
    }

    async fn cancel(&self, _: &[TaskId], _: &str) -> Result<Vec<Changed>> {
        self.fail().await
    }

    async fn redrive(&self, _: &[Redrive]) -> Result<Vec<Changed>> {
        self.fail().await
    }

    async fn remove(&self, _: &[TaskId]) -> Result<Vec<Changed>> {
        self.fail().await
    }

    async fn key_holder(&self, _: &Name, _: &str) -> Result<Option<TaskId>> {
        self.fail().await
    }

    async fn lane_records(&self) -> Result<Vec<LaneRecord>> {
        self.fail().await
    }

    async fn set_queue_paused(&self, _: &Name, _: bool) -> Result<bool> {
        self.fail().await
    }

    async fn paused_queues(&self) -> Result<Vec<Name>> {
        self.fail().await
    }

    async fn workers(&self) -> Result<Vec<WorkerRecord>> {
        self.fail().await
    }

    async fn set_worker_slots(&self, _: WorkerId, _: u32) -> Result<()> {
        self.fail().await
    }

    async fn retain(&self, _: &Retention) -> Result<DutyReport> {
        self.fail().await
    }

    fn gates(&self) -> &dyn Gates {
        self
    }

    fn schedules(&self) -> &dyn Schedules {
        self
    }

    async fn audit(&self) -> Result<Vec<Finding>> {
        self.fail().await
    }

    async fn info(&self) -> Result<StoreInfo> {
        self.fail().await
    }

    async fn backup(&self, _: &Path) -> Result<()> {
        self.fail().await
    }

    async fn close(&self) -> Result<()> {
        self.fail().await
    }
}

#[async_trait]
impl Gates for DeadStore {
    async fn set_job(&self, _name: &Name, _change: &JobChange) -> Result<JobRecord> {
        self.fail().await
    }

    async fn jobs(&self, _after: Option<&Name>, _limit: u32) -> Result<Vec<JobRecord>> {
        self.fail().await
    }

    async fn job(&self, _name: &Name) -> Result<Option<JobRecord>> {
        self.fail().await
    }

    async fn remove_job(&self, _name: &Name, _now: bool) -> Result<u64> {
        self.fail().await
    }

    async fn workflows(
        &self,
        _blocked: bool,
        _after: Option<&Name>,
        _limit: u32,
    ) -> Result<Vec<WorkflowRecord>> {
        self.fail().await
    }

    async fn workflow(&self, _name: &Name) -> Result<Option<WorkflowRecord>> {
        self.fail().await
    }

    async fn change_workflow(&self, _name: &Name, _action: WorkflowAction) -> Result<u64> {
        self.fail().await
    }

    async fn view(&self, _task: &TaskRecord) -> Result<GateView> {
        self.fail().await
    }
}

#[async_trait]
impl Schedules for DeadStore {
    async fn put(&self, _row: &ScheduleRow) -> Result<()> {
        self.fail().await
    }

    async fn list(&self) -> Result<Vec<ScheduleRow>> {
        self.fail().await
    }

    async fn remove(&self, _name: &Name) -> Result<bool> {
        self.fail().await
    }

    async fn due(&self, _limit: u32) -> Result<DueSchedules> {
        self.fail().await
    }

    async fn fire(&self, _fire: Fire) -> Result<Option<Enqueued>> {
        self.fail().await
    }
}
