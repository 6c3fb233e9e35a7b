//! The store as others use it.

use std::{future::Future, path::Path, sync::Arc, time::Duration};

use async_trait::async_trait;
use windlass_core::{
    ClaimAnswer, Demand, Enqueued, Error, Hint, Hints, Lane, LeaseRef, Name, NewTask, NewWorker, Result,
    Rules, SettleBatch, Settled, Source, Store, TaskId, TaskRecord, WorkerId, WorkerRecord, WorkerReport,
    source::{DutyReport, Renewed},
    store::{Changed, Filter, Finding, LaneRecord, Page, Redrive, Retention, StoreInfo},
};

use crate::{
    error::OpenError,
    options::{Location, Options},
};

/// The embedded store.
#[derive(Debug)]
pub struct SqliteStore {
    rules: Rules,
}

impl SqliteStore {
    /// Opens a store, or makes it.
    pub async fn open(location: &Location, options: Options) -> Result<Arc<Self>, OpenError> {
        let _ = location;
        Ok(Arc::new(Self { rules: options.rules }))
    }

    /// Says in the lock file where this process can be reached.
    pub fn set_address(&self, _address: &str) {}

    /// Resolves when the store has failed for good, with the reason; the process must end then.
    pub fn fatal(&self) -> impl Future<Output = String> + Send + 'static {
        std::future::pending()
    }
}

struct Silent;

#[async_trait]
impl Hints for Silent {
    async fn next(&mut self) -> Hint {
        std::future::pending().await
    }
}

#[async_trait]
impl Source for SqliteStore {
    async fn register(&self, _worker: NewWorker) -> Result<WorkerId> {
        Err(Error::Unsupported("under construction".to_owned()))
    }

    async fn renew(&self, _worker: WorkerId, _report: WorkerReport) -> Result<Renewed> {
        Err(Error::Unsupported("under construction".to_owned()))
    }

    async fn retire(&self, _worker: WorkerId) -> Result<u64> {
        Err(Error::Unsupported("under construction".to_owned()))
    }

    async fn lanes(&self, _kinds: &[Name], _queues: &[Name]) -> Result<Vec<Arc<Lane>>> {
        Err(Error::Unsupported("under construction".to_owned()))
    }

    async fn claim(&self, _demands: &[Demand]) -> Result<ClaimAnswer> {
        Err(Error::Unsupported("under construction".to_owned()))
    }

    async fn unclaim(&self, _worker: WorkerId, _claim_no: u64) -> Result<u64> {
        Err(Error::Unsupported("under construction".to_owned()))
    }

    async fn settle(&self, _batch: Arc<SettleBatch>) -> Result<Settled> {
        Err(Error::Unsupported("under construction".to_owned()))
    }

    async fn progress(&self, _worker: WorkerId, _lease: LeaseRef, _progress: String) -> Result<()> {
        Err(Error::Unsupported("under construction".to_owned()))
    }

    async fn reconcile(
        &self,
        _worker: WorkerId,
        _up_to_claim_no: u64,
        _in_flight: &[LeaseRef],
    ) -> Result<u64> {
        Err(Error::Unsupported("under construction".to_owned()))
    }

    async fn promote_due(&self, _limit: u32) -> Result<DutyReport> {
        Err(Error::Unsupported("under construction".to_owned()))
    }

    async fn expire_workers(&self, _limit: u32) -> Result<DutyReport> {
        Err(Error::Unsupported("under construction".to_owned()))
    }

    fn hints(&self) -> Box<dyn Hints> {
        Box::new(Silent)
    }
}

#[async_trait]
impl Store for SqliteStore {
    fn rules(&self) -> &Rules {
        &self.rules
    }

    async fn enqueue(&self, _tasks: Vec<NewTask>) -> Result<Vec<Enqueued>> {
        Err(Error::Unsupported("under construction".to_owned()))
    }

    async fn task(&self, _id: TaskId) -> Result<Option<TaskRecord>> {
        Err(Error::Unsupported("under construction".to_owned()))
    }

    async fn tasks(&self, _filter: &Filter, _after: Option<TaskId>, _limit: u32) -> Result<Page> {
        Err(Error::Unsupported("under construction".to_owned()))
    }

    async fn ended(&self, _ids: &[TaskId], _wait: Duration) -> Result<Vec<(TaskId, Option<TaskRecord>)>> {
        Err(Error::Unsupported("under construction".to_owned()))
    }

    async fn cancel(&self, _ids: &[TaskId], _reason: &str) -> Result<Vec<Changed>> {
        Err(Error::Unsupported("under construction".to_owned()))
    }

    async fn redrive(&self, _tasks: &[Redrive]) -> Result<Vec<Changed>> {
        Err(Error::Unsupported("under construction".to_owned()))
    }

    async fn lane_records(&self) -> Result<Vec<LaneRecord>> {
        Err(Error::Unsupported("under construction".to_owned()))
    }

    async fn set_queue_paused(&self, _queue: &Name, _paused: bool) -> Result<bool> {
        Err(Error::Unsupported("under construction".to_owned()))
    }

    async fn paused_queues(&self) -> Result<Vec<Name>> {
        Err(Error::Unsupported("under construction".to_owned()))
    }

    async fn workers(&self) -> Result<Vec<WorkerRecord>> {
        Err(Error::Unsupported("under construction".to_owned()))
    }

    async fn retain(&self, _retention: &Retention) -> Result<DutyReport> {
        Err(Error::Unsupported("under construction".to_owned()))
    }

    async fn audit(&self) -> Result<Vec<Finding>> {
        Err(Error::Unsupported("under construction".to_owned()))
    }

    async fn info(&self) -> Result<StoreInfo> {
        Err(Error::Unsupported("under construction".to_owned()))
    }

    async fn backup(&self, _to: &Path) -> Result<()> {
        Err(Error::Unsupported("under construction".to_owned()))
    }

    async fn close(&self) -> Result<()> {
        Err(Error::Unsupported("under construction".to_owned()))
    }
}
