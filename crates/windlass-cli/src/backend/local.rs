//! The store itself, when no server runs on it.

use std::{convert::Infallible, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use windlass_core::{Name, Payload, TaskId, WorkerId, WorkflowAction, store::SharedStore};
use windlass_server::{
    Operations,
    access::Caller,
    api::{
        Activity, Audit, BatchRequest, BatchResponse, CancelRequest, ChangeResponse, DeadGroups,
        EnqueueRequest, EnqueueResponse, ExportRequest, InfoView, JobRemoval, JobRequest, JobView, Jobs,
        PurgeRequest, PurgeResponse, QueueChange, QueueWhy, Queues, RetryRequest, RunPreview, RunRequest,
        RunView, Runs, ScheduleRemoved, ScheduleRequest, ScheduleView, Schedules, SessionEnded, Sessions,
        TaskFilter, TaskPage, TaskRemoved, TaskView, TokenCreated, TokenRequest, TokenRevoked, Tokens,
        WaitRequest, WaitResponse, WhyView, WorkerRequest, WorkerView, Workers, WorkflowChange, WorkflowView,
        Workflows,
    },
};

use windlass_server::operations::Export;

use super::{Answer, Backend, Pieces};

/// Operations on a store that this process holds.
pub struct Local {
    store: SharedStore,
    operations: Operations,
    place: String,
}

impl Local {
    /// Operates on an open store.
    pub fn new(store: SharedStore, place: String) -> Self {
        let operations = operations(store.clone());
        Self { store, operations, place }
    }
}

/// Operations with the checks of the built-in kinds: what their payloads must look like, and which parts
/// of them are secret.
pub fn operations(store: SharedStore) -> Operations {
    Operations::new(store)
        .version(crate::version::VERSION)
        .check_payload(check)
        .redact_json("http", windlass_kinds::redact_http_payload)
}

fn check(kind: &Name, payload: &Payload) -> Result<(), String> {
    match payload.decode::<serde_json::Value>() {
        Ok(value) => windlass_kinds::check_payload(kind.as_str(), &value),
        // Bytes, or numbers that this parser cannot hold: the handler checks them.
        Err(_) => Ok(()),
    }
}

#[async_trait]
impl Pieces for Export {
    async fn next(&mut self) -> Answer<Option<Bytes>> {
        Ok(Self::next(self).await?.map(Bytes::from))
    }
}

#[async_trait]
impl Backend for Local {
    fn place(&self) -> String {
        self.place.clone()
    }

    async fn target(&self) -> String {
        self.place.clone()
    }

    fn has_worker(&self) -> bool {
        // This process has the file to itself, so no worker can run on it. A database may have workers
        // anywhere.
        self.store.schema().is_some()
    }

    async fn enqueue(&self, request: EnqueueRequest) -> Answer<EnqueueResponse> {
        self.operations.enqueue(request).await
    }

    async fn enqueue_batch(&self, request: BatchRequest) -> Answer<BatchResponse> {
        self.operations.enqueue_batch(request).await
    }

    async fn tasks(&self, filter: &TaskFilter, after: Option<TaskId>, limit: u32) -> Answer<TaskPage> {
        self.operations.tasks(filter.clone(), after, Some(limit)).await
    }

    async fn export(&self, request: ExportRequest) -> Answer<Box<dyn Pieces>> {
        Ok(Box::new(self.operations.export(request)?))
    }

    async fn task(&self, id: TaskId) -> Answer<TaskView> {
        self.operations.task(id).await
    }

    async fn why(&self, id: TaskId) -> Answer<WhyView> {
        self.operations.why(id).await
    }

    async fn wait(&self, ids: &[TaskId], timeout: Duration) -> Answer<WaitResponse> {
        let timeout_ms = Some(timeout.as_millis() as u64);
        self.operations.wait(WaitRequest { ids: ids.to_vec(), timeout_ms }).await
    }

    async fn cancel(&self, id: TaskId, request: CancelRequest) -> Answer<ChangeResponse> {
        self.operations.cancel(id, request).await
    }

    async fn retry(&self, id: TaskId, request: RetryRequest) -> Answer<ChangeResponse> {
        self.operations.retry(id, request).await
    }

    async fn remove(&self, id: TaskId) -> Answer<TaskRemoved> {
        self.operations.remove(id).await
    }

    async fn preview_run(&self, request: RunRequest) -> Answer<RunPreview> {
        self.operations.preview_run(request).await
    }

    async fn start_run(&self, request: RunRequest) -> Answer<RunView> {
        self.operations.start_run(&Caller::Anybody, request).await
    }

    async fn run(&self, id: u64) -> Answer<RunView> {
        self.operations.run(id).await
    }

    async fn runs(&self) -> Answer<Runs> {
        self.operations.runs().await
    }

    async fn stop_run(&self, id: u64) -> Answer<RunView> {
        self.operations.stop_run(&Caller::Anybody, id).await
    }

    fn works_runs(&self) -> bool {
        true
    }

    async fn work_runs(&self) -> Infallible {
        self.operations.work_runs(std::future::pending()).await;
        std::future::pending().await
    }

    async fn activity(&self, after: Option<u64>, limit: u32) -> Answer<Activity> {
        self.operations.activity(after, Some(limit)).await
    }

    async fn dead(&self, filter: &TaskFilter) -> Answer<DeadGroups> {
        self.operations.dead_groups(filter.clone()).await
    }

    async fn queues(&self) -> Answer<Queues> {
        self.operations.queues().await
    }

    async fn queue_why(&self, queue: &Name) -> Answer<QueueWhy> {
        self.operations.queue_why(queue.as_str()).await
    }

    async fn set_queue_paused(&self, queue: &Name, paused: bool) -> Answer<QueueChange> {
        if paused {
            self.operations.pause(queue.as_str()).await
        } else {
            self.operations.resume(queue.as_str()).await
        }
    }

    async fn purge_queue(&self, queue: &Name, request: PurgeRequest) -> Answer<PurgeResponse> {
        self.operations.purge(queue.as_str(), request).await
    }

    async fn jobs(&self, after: Option<&Name>, limit: u32) -> Answer<Jobs> {
        self.operations.jobs(after, Some(limit)).await
    }

    async fn job(&self, job: &Name) -> Answer<JobView> {
        self.operations.job(job.as_str()).await
    }

    async fn set_job(&self, job: &Name, request: JobRequest) -> Answer<JobView> {
        self.operations.set_job(job.as_str(), request).await
    }

    async fn remove_job(&self, job: &Name, now: bool) -> Answer<JobRemoval> {
        self.operations.remove_job(job.as_str(), now).await
    }

    async fn workflows(&self, blocked: bool, after: Option<&Name>, limit: u32) -> Answer<Workflows> {
        self.operations.workflows(blocked, after, Some(limit)).await
    }

    async fn workflow(&self, workflow: &Name) -> Answer<WorkflowView> {
        self.operations.workflow(workflow.as_str()).await
    }

    async fn change_workflow(&self, workflow: &Name, action: WorkflowAction) -> Answer<WorkflowChange> {
        self.operations.change_workflow(workflow.as_str(), action).await
    }

    async fn schedules(&self) -> Answer<Schedules> {
        self.operations.schedules().await
    }

    async fn schedule(&self, name: &Name) -> Answer<ScheduleView> {
        self.operations.schedule(name.as_str()).await
    }

    async fn set_schedule(&self, name: &Name, request: ScheduleRequest) -> Answer<ScheduleView> {
        self.operations.set_schedule(name.as_str(), request).await
    }

    async fn set_schedule_paused(&self, name: &Name, paused: bool) -> Answer<ScheduleView> {
        if paused {
            self.operations.pause_schedule(name.as_str()).await
        } else {
            self.operations.resume_schedule(name.as_str()).await
        }
    }

    async fn run_schedule(&self, name: &Name) -> Answer<EnqueueResponse> {
        self.operations.run_schedule(name.as_str()).await
    }

    async fn remove_schedule(&self, name: &Name) -> Answer<ScheduleRemoved> {
        self.operations.remove_schedule(name.as_str()).await
    }

    async fn workers(&self) -> Answer<Workers> {
        self.operations.workers().await
    }

    async fn set_worker(&self, worker: WorkerId, request: WorkerRequest) -> Answer<WorkerView> {
        self.operations.set_worker(&worker.to_string(), request).await
    }

    async fn create_token(&self, request: TokenRequest) -> Answer<TokenCreated> {
        self.operations.create_token(request).await
    }

    async fn tokens(&self) -> Answer<Tokens> {
        self.operations.tokens().await
    }

    async fn revoke_token(&self, id: &str) -> Answer<TokenRevoked> {
        self.operations.revoke_token(id).await
    }

    async fn sessions(&self) -> Answer<Sessions> {
        self.operations.sessions(&Caller::Anybody).await
    }

    async fn end_session(&self, id: &str) -> Answer<SessionEnded> {
        self.operations.end_session(&Caller::Anybody, id).await
    }

    async fn info(&self) -> Answer<InfoView> {
        self.operations.info().await
    }

    async fn audit(&self) -> Answer<Audit> {
        self.operations.audit().await
    }

    async fn close(&self) -> Answer<()> {
        Ok(self.store.close().await?)
    }
}
