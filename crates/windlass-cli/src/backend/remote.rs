//! The running server.

use std::{convert::Infallible, time::Duration};

use async_trait::async_trait;
use windlass_core::{Name, TaskId, WorkerId, WorkflowAction};
use windlass_server::api::{
    Activity, Audit, BatchRequest, BatchResponse, CancelRequest, ChangeResponse, ConsumerReport,
    ConsumersReported, DeadGroups, EnqueueRequest, EnqueueResponse, ExportRequest, HealthView, InfoView,
    JobRemoval, JobRequest, JobView, Jobs, PurgeRequest, PurgeResponse, QueueChange, QueueWhy, Queues,
    RetryRequest, RunPreview, RunRequest, RunView, Runs, ScheduleRemoved, ScheduleRequest, ScheduleView,
    Schedules, SessionEnded, Sessions, TaskFilter, TaskPage, TaskRemoved, TaskView, TokenCreated,
    TokenRequest, TokenRevoked, Tokens, WaitRequest, WaitResponse, WhyView, WorkerRequest, WorkerView,
    Workers, WorkflowChange, WorkflowView, Workflows,
};

use super::{
    Answer, Backend, Pieces,
    client::{Client, escape, query},
    credentials::Credentials,
};
use crate::failure::Failure;

/// How long an audit may take: it reads the whole store.
const AUDIT_TIME: Duration = Duration::from_mins(5);

/// A server.
#[derive(Debug, Clone)]
pub struct Remote {
    client: Client,
    /// Its store, if already known.
    store: Option<String>,
}

impl Remote {
    /// The server at a URL.
    pub fn new(url: &str, credentials: &Credentials) -> Result<Self, Failure> {
        Ok(Self { client: Client::new(url, credentials)?, store: None })
    }

    /// The same server, after it has named its store.
    #[must_use]
    pub fn on_store(self, location: String) -> Self {
        Self { store: Some(location), ..self }
    }

    /// Whether it can do its work.
    pub async fn health(&self) -> Answer<HealthView> {
        self.client.get_any("/readyz").await.map(|(_, health)| health)
    }

    /// Reads a path as the type that the caller knows. A newer server may send more fields, an older one
    /// fewer.
    pub async fn look<T: serde::de::DeserializeOwned>(&self, path: &str) -> Answer<T> {
        self.client.get(path, Duration::ZERO).await
    }

    /// Tells it what the consumers of this process do.
    pub async fn report_consumers(&self, report: &ConsumerReport) -> Answer<ConsumersReported> {
        self.client.post("/v1/consumers", report).await
    }

    /// Whether it answers at all.
    pub async fn ping(&self) -> Answer<HealthView> {
        self.client.get_any("/healthz").await.map(|(_, health)| health)
    }
}

#[async_trait]
impl Backend for Remote {
    fn place(&self) -> String {
        self.client.base().to_owned()
    }

    async fn target(&self) -> String {
        let store = match &self.store {
            Some(store) => Some(store.clone()),
            // The server may refuse to name its store to this token.
            None => self.info().await.ok().map(|info| info.store.location),
        };
        match store {
            Some(store) => format!("{}, store {store}", self.client.base()),
            None => self.client.base().to_owned(),
        }
    }

    fn has_worker(&self) -> bool {
        true
    }

    async fn enqueue(&self, request: EnqueueRequest) -> Answer<EnqueueResponse> {
        self.client.post("/v1/tasks", &request).await
    }

    async fn enqueue_batch(&self, request: BatchRequest) -> Answer<BatchResponse> {
        self.client.post("/v1/tasks", &request).await
    }

    async fn tasks(&self, filter: &TaskFilter, after: Option<TaskId>, limit: u32) -> Answer<TaskPage> {
        let after = after.map(|id| id.to_string());
        let query = query(filtered(filter).chain([("after", after), ("limit", Some(limit.to_string()))]));
        self.client.get(&format!("/v1/tasks{query}"), Duration::ZERO).await
    }

    async fn export(&self, request: ExportRequest) -> Answer<Box<dyn Pieces>> {
        let ExportRequest { filter, format, payload, after, limit } = request;
        let more = [
            ("format", Some(format.as_str().to_owned())),
            ("payload", payload.then(|| "true".to_owned())),
            ("after", after.map(|id| id.to_string())),
            ("limit", limit.map(|limit| limit.to_string())),
        ];
        self.client.stream(&format!("/v1/tasks/export{}", query(filtered(&filter).chain(more)))).await
    }

    async fn task(&self, id: TaskId) -> Answer<TaskView> {
        self.client.get(&format!("/v1/tasks/{id}"), Duration::ZERO).await
    }

    async fn why(&self, id: TaskId) -> Answer<WhyView> {
        self.client.get(&format!("/v1/tasks/{id}/why"), Duration::ZERO).await
    }

    async fn wait(&self, ids: &[TaskId], timeout: Duration) -> Answer<WaitResponse> {
        let request = WaitRequest { ids: ids.to_vec(), timeout_ms: Some(timeout.as_millis() as u64) };
        self.client.ask("/v1/tasks/wait", &request, timeout).await
    }

    async fn cancel(&self, id: TaskId, request: CancelRequest) -> Answer<ChangeResponse> {
        self.client.post(&format!("/v1/tasks/{id}/cancel"), &request).await
    }

    async fn retry(&self, id: TaskId, request: RetryRequest) -> Answer<ChangeResponse> {
        self.client.post(&format!("/v1/tasks/{id}/retry"), &request).await
    }

    async fn remove(&self, id: TaskId) -> Answer<TaskRemoved> {
        self.client.delete(&format!("/v1/tasks/{id}")).await
    }

    async fn preview_run(&self, request: RunRequest) -> Answer<RunPreview> {
        self.client.post("/v1/runs", &RunRequest { dry_run: true, ..request }).await
    }

    async fn start_run(&self, request: RunRequest) -> Answer<RunView> {
        self.client.post("/v1/runs", &RunRequest { dry_run: false, ..request }).await
    }

    async fn run(&self, id: u64) -> Answer<RunView> {
        self.client.get(&format!("/v1/runs/{id}"), Duration::ZERO).await
    }

    async fn runs(&self) -> Answer<Runs> {
        self.client.get("/v1/runs", Duration::ZERO).await
    }

    async fn stop_run(&self, id: u64) -> Answer<RunView> {
        self.client.post(&format!("/v1/runs/{id}/stop"), &serde_json::Map::new()).await
    }

    fn works_runs(&self) -> bool {
        false
    }

    async fn work_runs(&self) -> Infallible {
        std::future::pending().await
    }

    async fn activity(&self, after: Option<u64>, limit: u32) -> Answer<Activity> {
        let query = query([("after", after.map(|id| id.to_string())), ("limit", Some(limit.to_string()))]);
        self.client.get(&format!("/v1/activity{query}"), Duration::ZERO).await
    }

    async fn dead(&self, filter: &TaskFilter) -> Answer<DeadGroups> {
        let query = query(filtered(filter).filter(|(name, _)| *name != "state"));
        self.client.get(&format!("/v1/dead{query}"), Duration::ZERO).await
    }

    async fn queues(&self) -> Answer<Queues> {
        self.client.get("/v1/queues", Duration::ZERO).await
    }

    async fn queue_why(&self, queue: &Name) -> Answer<QueueWhy> {
        let path = format!("/v1/queues/{}/why", escape(queue.as_str()));
        self.client.get(&path, Duration::ZERO).await
    }

    async fn set_queue_paused(&self, queue: &Name, paused: bool) -> Answer<QueueChange> {
        let verb = if paused { "pause" } else { "resume" };
        let path = format!("/v1/queues/{}/{verb}", escape(queue.as_str()));
        self.client.post(&path, &serde_json::Map::new()).await
    }

    async fn purge_queue(&self, queue: &Name, request: PurgeRequest) -> Answer<PurgeResponse> {
        self.client.post(&format!("/v1/queues/{}/purge", escape(queue.as_str())), &request).await
    }

    async fn jobs(&self, after: Option<&Name>, limit: u32) -> Answer<Jobs> {
        let query = query([("after", after.map(ToString::to_string)), ("limit", Some(limit.to_string()))]);
        self.client.get(&format!("/v1/jobs{query}"), Duration::ZERO).await
    }

    async fn job(&self, job: &Name) -> Answer<JobView> {
        self.client.get(&job_path(job), Duration::ZERO).await
    }

    async fn set_job(&self, job: &Name, request: JobRequest) -> Answer<JobView> {
        self.client.put(&job_path(job), &request).await
    }

    async fn remove_job(&self, job: &Name, now: bool) -> Answer<JobRemoval> {
        let query = query([("now", now.then(|| true.to_string()))]);
        self.client.delete(&format!("{}{query}", job_path(job))).await
    }

    async fn workflows(&self, blocked: bool, after: Option<&Name>, limit: u32) -> Answer<Workflows> {
        let query = query([
            ("blocked", blocked.then(|| true.to_string())),
            ("after", after.map(ToString::to_string)),
            ("limit", Some(limit.to_string())),
        ]);
        self.client.get(&format!("/v1/workflows{query}"), Duration::ZERO).await
    }

    async fn workflow(&self, workflow: &Name) -> Answer<WorkflowView> {
        self.client.get(&format!("/v1/workflows/{}", escape(workflow.as_str())), Duration::ZERO).await
    }

    async fn change_workflow(&self, workflow: &Name, action: WorkflowAction) -> Answer<WorkflowChange> {
        let verb = match action {
            WorkflowAction::Retry => "retry",
            WorkflowAction::Skip => "skip",
            WorkflowAction::Cancel => "cancel",
        };
        let path = format!("/v1/workflows/{}/{verb}", escape(workflow.as_str()));
        self.client.post(&path, &serde_json::Map::new()).await
    }

    async fn schedules(&self) -> Answer<Schedules> {
        self.client.get("/v1/schedules", Duration::ZERO).await
    }

    async fn schedule(&self, name: &Name) -> Answer<ScheduleView> {
        self.client.get(&schedule_path(name), Duration::ZERO).await
    }

    async fn set_schedule(&self, name: &Name, request: ScheduleRequest) -> Answer<ScheduleView> {
        self.client.put(&schedule_path(name), &request).await
    }

    async fn set_schedule_paused(&self, name: &Name, paused: bool) -> Answer<ScheduleView> {
        let verb = if paused { "pause" } else { "resume" };
        self.client.post(&format!("{}/{verb}", schedule_path(name)), &serde_json::Map::new()).await
    }

    async fn run_schedule(&self, name: &Name) -> Answer<EnqueueResponse> {
        self.client.post(&format!("{}/run", schedule_path(name)), &serde_json::Map::new()).await
    }

    async fn remove_schedule(&self, name: &Name) -> Answer<ScheduleRemoved> {
        self.client.delete(&schedule_path(name)).await
    }

    async fn workers(&self) -> Answer<Workers> {
        self.client.get("/v1/workers", Duration::ZERO).await
    }

    async fn set_worker(&self, worker: WorkerId, request: WorkerRequest) -> Answer<WorkerView> {
        self.client.put(&format!("/v1/workers/{worker}"), &request).await
    }

    async fn create_token(&self, request: TokenRequest) -> Answer<TokenCreated> {
        self.client.post("/v1/tokens", &request).await
    }

    async fn tokens(&self) -> Answer<Tokens> {
        self.client.get("/v1/tokens", Duration::ZERO).await
    }

    async fn revoke_token(&self, id: &str) -> Answer<TokenRevoked> {
        self.client.delete(&format!("/v1/tokens/{}", escape(id))).await
    }

    async fn sessions(&self) -> Answer<Sessions> {
        self.client.get("/v1/sessions", Duration::ZERO).await
    }

    async fn end_session(&self, id: &str) -> Answer<SessionEnded> {
        self.client.delete(&format!("/v1/sessions/{}", escape(id))).await
    }

    async fn info(&self) -> Answer<InfoView> {
        self.client.get("/v1/info", Duration::ZERO).await
    }

    async fn audit(&self) -> Answer<Audit> {
        self.client.get("/v1/audit", AUDIT_TIME).await
    }

    async fn close(&self) -> Answer<()> {
        Ok(())
    }
}

fn job_path(job: &Name) -> String {
    format!("/v1/jobs/{}", escape(job.as_str()))
}

fn schedule_path(name: &Name) -> String {
    format!("/v1/schedules/{}", escape(name.as_str()))
}

fn filtered(filter: &TaskFilter) -> impl Iterator<Item = (&'static str, Option<String>)> {
    let TaskFilter { state, kind, queue, job, workflow, since, until, cause, worker, key, ids } = filter;
    let name = |name: &Option<Name>| name.as_ref().map(ToString::to_string);
    [
        ("state", state.map(|state| state.to_string())),
        ("kind", name(kind)),
        ("queue", name(queue)),
        ("job", name(job)),
        ("workflow", name(workflow)),
        ("since", since.map(|since| since.to_string())),
        ("until", until.map(|until| until.to_string())),
        ("cause", cause.clone()),
        ("worker", worker.clone()),
        ("key", key.clone()),
        ("ids", ids.as_ref().map(|ids| ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(","))),
    ]
    .into_iter()
}
