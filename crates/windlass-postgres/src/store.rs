//! The store's public type: each call goes to the file of its name.

use std::{path::Path, sync::Arc, time::Duration};

use async_trait::async_trait;
use windlass_core::{
    ClaimAnswer, Claimed, Demand, Enqueued, Error, Hints, Lane, LeaseRef, Name, NewTask, NewWorker, Result,
    Rules, SettleBatch, Settled, Source, Store, TaskId, TaskRecord, WorkerId, WorkerRecord, WorkerReport,
    source::{DutyReport, Loop, Reconciled, Renewed},
    store::{
        Changed, Detail, Filter, Finding, LaneRecord, Page, Redrive, Retention, Safe, StoreInfo, Summaries,
        only,
    },
    task::batch,
    usage::{ReadyLines, Usage},
    worker::Registration,
};
use windlass_core::{
    Gates, JobChange, JobRecord, Operators, Schedules, Tokens, WorkflowAction, WorkflowRecord, gate::GateView,
};

use crate::{
    claim,
    connection::{
        error::OpenError,
        open,
        options::{Location, Options},
        pool::{Pool, closed},
    },
    enqueue::{self, group_commit::Gather, keyed, one},
    gates::{admit, job, workflow},
    leases::{compare, hand_back, register, renew::Renewals},
    operate::{
        self, awaited,
        info::{self, Origin},
        inspect, list,
    },
    settle,
    shared::Shared,
    upkeep::{audit, depth, leader, migrate::MIGRATIONS},
};

/// The store on PostgreSQL: any number of processes on one schema.
///
/// Every method of [`Store`] and [`Source`] may be called from any task; enqueues of one moment share one
/// commit, and renewals one statement. A dropped call may still take effect.
pub struct PostgresStore {
    shared: Arc<Shared>,
    plain: Arc<Gather>,
    keyed: Arc<Gather>,
    renewals: Arc<Renewals>,
    origin: Origin,
}

impl std::fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresStore").field("location", &self.shared.location()).finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// Opens a store. Its schema must exist, unless [`Options::migrate`] says to make it.
    ///
    /// # Errors
    /// [`OpenError`], one line that says what to do.
    pub async fn open(location: &Location, options: Options) -> Result<Arc<Self>, OpenError> {
        open::open(location, options, MIGRATIONS).await
    }

    pub(crate) fn new(
        shared: Arc<Shared>,
        plain: Arc<Gather>,
        keyed: Arc<Gather>,
        renewals: Arc<Renewals>,
        origin: Origin,
    ) -> Self {
        Self { shared, plain, keyed, renewals, origin }
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    fn refuse_if_closed(&self) -> Result<()> {
        if *self.shared.closing.borrow() { Err(closed()) } else { Ok(()) }
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.shared.close();
    }
}

#[async_trait]
impl Source for PostgresStore {
    async fn register(&self, worker: NewWorker) -> Result<WorkerId> {
        register::register(&self.shared, &worker, None).await
    }

    async fn register_remote(&self, worker: NewWorker, owner: Option<&str>) -> Result<WorkerId> {
        register::register(&self.shared, &worker, owner).await
    }

    async fn renew(&self, worker: WorkerId, report: WorkerReport) -> Result<Renewed> {
        self.renewals.add(worker, report).await
    }

    async fn retire(&self, worker: WorkerId) -> Result<u64> {
        hand_back::retire(&self.shared, worker).await
    }

    async fn lanes(&self, kinds: &[Name], queues: &[Name]) -> Result<Vec<Arc<Lane>>> {
        self.refuse_if_closed()?;
        let lanes = &self.shared.lanes;
        let served = lanes.served(kinds, queues);
        if !served.is_empty() && !lanes.are_stale() {
            return Ok(served);
        }
        // The coordinator asks, before it claims.
        lanes.load(&mut self.shared.claims.session().await?).await?;
        Ok(lanes.served(kinds, queues))
    }

    async fn claim(&self, demands: &[Demand]) -> Result<ClaimAnswer> {
        claim::claim_and_listen(&self.shared, demands).await
    }

    async fn unclaim(&self, worker: WorkerId, claim_no: u64) -> Result<u64> {
        hand_back::unclaim(&self.shared, worker, claim_no).await
    }

    async fn settle(&self, batch: Arc<SettleBatch>) -> Result<Settled> {
        settle::settle(&self.shared, &batch).await
    }

    async fn progress(&self, worker: WorkerId, lease: LeaseRef, progress: String) -> Result<()> {
        let progress = self.shared.rules.clip_error(&progress);
        hand_back::progress(&self.shared, worker, lease, &progress).await
    }

    async fn reconcile(
        &self,
        worker: WorkerId,
        up_to_claim_no: u64,
        in_flight: &[LeaseRef],
    ) -> Result<Reconciled> {
        compare::reconcile(&self.shared, worker, up_to_claim_no, in_flight).await
    }

    async fn admit(&self, _limit: u32) -> Result<DutyReport> {
        admit::admit(&self.shared).await
    }

    async fn promote_due(&self, limit: u32) -> Result<DutyReport> {
        hand_back::promote_due(&self.shared, limit).await
    }

    async fn expire_workers(&self, limit: u32) -> Result<DutyReport> {
        hand_back::expire_workers(&self.shared, limit).await
    }

    fn hints(&self) -> Box<dyn Hints> {
        self.shared.subscribers.subscribe()
    }

    fn hears_of_new_tasks(&self) -> bool {
        self.shared.doorbell.is_listening()
    }

    fn run_beside(&self, claims: Loop) -> Option<Loop> {
        self.shared.claims.handle().spawn(claims);
        None
    }
}

#[async_trait]
impl Store for PostgresStore {
    fn rules(&self) -> &Rules {
        &self.shared.rules
    }

    fn schema(&self) -> Option<&str> {
        Some(self.shared.options.schema.as_str())
    }

    async fn enqueue(&self, tasks: Vec<NewTask>) -> Result<Vec<Enqueued>> {
        self.refuse_if_closed()?;
        batch::check(&tasks, self.rules())?;
        if tasks.is_empty() {
            return Ok(Vec::new());
        }
        let gather = if tasks.iter().any(|task| task.key.is_some()) { &self.keyed } else { &self.plain };
        let is_gated = tasks.iter().any(enqueue::is_gated);
        let enqueued = gather.add(tasks).await?;
        self.shared.enqueues.count(&enqueued);
        if is_gated {
            admit::admit_after(&self.shared).await;
        }
        Ok(enqueued)
    }

    async fn enqueue_for(&self, task: NewTask, demand: &Demand) -> Result<(Enqueued, Option<Claimed>, Safe)> {
        if !task.is_plain() {
            return Ok((only(self.enqueue(vec![task]).await?)?, None, Safe::already()));
        }
        self.refuse_if_closed()?;
        batch::check(std::slice::from_ref(&task), self.rules())?;
        let answer = one::add_for(&self.shared, task, demand.clone()).await?;
        self.shared.enqueues.count([&answer.0]);
        Ok(answer)
    }

    async fn task(&self, id: TaskId) -> Result<Option<TaskRecord>> {
        inspect::task(&self.shared, id).await
    }

    async fn tasks(&self, filter: &Filter, after: Option<TaskId>, limit: u32) -> Result<Page> {
        list::page(&self.shared, filter, Detail::Whole, (after, limit)).await
    }

    async fn summaries(&self, filter: &Filter, after: Option<TaskId>, limit: u32) -> Result<Summaries> {
        let page = list::page(&self.shared, filter, Detail::Summary, (after, limit)).await?;
        Ok(page.summarised())
    }

    async fn ended(&self, ids: &[TaskId], wait: Duration) -> Result<Vec<(TaskId, Option<TaskRecord>)>> {
        awaited::ended(&self.shared, ids, wait).await
    }

    async fn cancel(&self, ids: &[TaskId], reason: &str) -> Result<Vec<Changed>> {
        operate::cancel(&self.shared, ids, reason).await
    }

    async fn redrive(&self, tasks: &[Redrive]) -> Result<Vec<Changed>> {
        operate::redrive(&self.shared, tasks).await
    }

    async fn remove(&self, ids: &[TaskId]) -> Result<Vec<Changed>> {
        operate::remove(&self.shared, ids).await
    }

    async fn key_holder(&self, queue: &Name, key: &str) -> Result<Option<TaskId>> {
        keyed::holder(&self.shared, queue, key).await
    }

    async fn lane_records(&self) -> Result<Vec<LaneRecord>> {
        depth::lane_records(&self.shared).await
    }

    async fn set_queue_paused(&self, queue: &Name, paused: bool) -> Result<bool> {
        operate::set_paused(&self.shared, queue, paused).await
    }

    async fn paused_queues(&self) -> Result<Vec<Name>> {
        operate::paused(&self.shared).await
    }

    async fn workers(&self) -> Result<Vec<WorkerRecord>> {
        info::workers(&self.shared).await
    }

    async fn registration(&self, worker: WorkerId) -> Result<Option<Registration>> {
        register::registration(&self.shared, worker).await
    }

    async fn set_worker_slots(&self, worker: WorkerId, slots: u32) -> Result<()> {
        hand_back::set_slots(&self.shared, worker, slots).await
    }

    async fn retain(&self, retention: &Retention) -> Result<DutyReport> {
        leader::retain(&self.shared, retention).await
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
        audit::audit(&self.shared).await
    }

    async fn info(&self) -> Result<StoreInfo> {
        info::info(&self.shared, self.origin).await
    }

    fn usage(&self) -> Usage {
        let (enqueued, existing) = self.shared.enqueues.read();
        Usage { enqueued, existing, pools: self.shared.pools().map(Pool::usage).to_vec() }
    }

    async fn ready_lines(&self) -> Result<ReadyLines> {
        depth::ready_lines(&self.shared).await
    }

    async fn backup(&self, _to: &Path) -> Result<()> {
        let schema = self.shared.options.schema.as_str();
        Err(Error::Unsupported(format!(
            "a copy of a PostgreSQL store is made with PostgreSQL's own tools: pg_dump --schema={schema}"
        )))
    }

    async fn close(&self) -> Result<()> {
        self.shared.close();
        Ok(())
    }
}

#[async_trait]
impl Gates for PostgresStore {
    async fn set_job(&self, name: &Name, change: &JobChange) -> Result<JobRecord> {
        job::set(&self.shared, name, change).await
    }

    async fn jobs(&self, after: Option<&Name>, limit: u32) -> Result<Vec<JobRecord>> {
        job::list(&self.shared, after, None, limit).await
    }

    async fn job(&self, name: &Name) -> Result<Option<JobRecord>> {
        Ok(job::list(&self.shared, None, Some(name), 1).await?.into_iter().next())
    }

    async fn remove_job(&self, name: &Name, now: bool) -> Result<u64> {
        job::remove(&self.shared, name, now).await
    }

    async fn workflows(
        &self,
        blocked: bool,
        after: Option<&Name>,
        limit: u32,
    ) -> Result<Vec<WorkflowRecord>> {
        workflow::list(&self.shared, blocked, after, None, limit).await
    }

    async fn workflow(&self, name: &Name) -> Result<Option<WorkflowRecord>> {
        Ok(workflow::list(&self.shared, false, None, Some(name), 1).await?.into_iter().next())
    }

    async fn change_workflow(&self, name: &Name, action: WorkflowAction) -> Result<u64> {
        workflow::change(&self.shared, name, action).await
    }

    async fn view(&self, task: &TaskRecord) -> Result<GateView> {
        job::view(&self.shared, task).await
    }
}
