//! Where a command's work is done: in the running server, or in this process on the store. Each command
//! is written once for both.

pub mod client;
pub mod connect;
pub mod credentials;
pub mod local;
pub mod remote;
pub mod tls;

use std::{convert::Infallible, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use windlass_core::{Name, TaskId, WorkerId, WorkflowAction};
use windlass_server::api::{
    Activity, Audit, BatchRequest, BatchResponse, CancelRequest, ChangeResponse, DeadGroups, EnqueueRequest,
    EnqueueResponse, ErrorDetail, ExportRequest, InfoView, JobRemoval, JobRequest, JobView, Jobs,
    PurgeRequest, PurgeResponse, QueueChange, QueueWhy, Queues, RetryRequest, RunPreview, RunRequest,
    RunView, Runs, ScheduleRemoved, ScheduleRequest, ScheduleView, Schedules, SessionEnded, Sessions,
    TaskFilter, TaskPage, TaskRemoved, TaskView, TokenCreated, TokenRequest, TokenRevoked, Tokens,
    WaitResponse, WhyView, WorkerRequest, WorkerView, Workers, WorkflowChange, WorkflowView, Workflows,
};

pub use connect::connect;

/// An answer, or the error that the server and the store return alike.
pub type Answer<T> = Result<T, ErrorDetail>;

/// An answer that comes in pieces.
#[async_trait]
pub trait Pieces: Send {
    /// The next one; `None` at the end.
    async fn next(&mut self) -> Answer<Option<Bytes>>;
}

/// What a command can ask for.
#[async_trait]
pub trait Backend: Send + Sync {
    /// For people: "http://127.0.0.1:7878" or "sqlite:/srv/windlass.db".
    fn place(&self) -> String;
    /// For people, with the store behind a server: "http://127.0.0.1:7878, store sqlite:/srv/windlass.db".
    async fn target(&self) -> String;
    /// Whether tasks can run while this backend is in use. No worker can run on a file that this process
    /// holds.
    fn has_worker(&self) -> bool;
    /// Adds one task.
    async fn enqueue(&self, request: EnqueueRequest) -> Answer<EnqueueResponse>;
    /// Adds several tasks, all or none.
    async fn enqueue_batch(&self, request: BatchRequest) -> Answer<BatchResponse>;
    /// One page of tasks.
    async fn tasks(&self, filter: &TaskFilter, after: Option<TaskId>, limit: u32) -> Answer<TaskPage>;
    /// Begins an export of tasks.
    async fn export(&self, request: ExportRequest) -> Answer<Box<dyn Pieces>>;
    /// One task.
    async fn task(&self, id: TaskId) -> Answer<TaskView>;
    /// Why a task is not running.
    async fn why(&self, id: TaskId) -> Answer<WhyView>;
    /// Waits for the first of several tasks to end.
    async fn wait(&self, ids: &[TaskId], timeout: Duration) -> Answer<WaitResponse>;
    /// Cancels a task.
    async fn cancel(&self, id: TaskId, request: CancelRequest) -> Answer<ChangeResponse>;
    /// Retries a dead task.
    async fn retry(&self, id: TaskId, request: RetryRequest) -> Answer<ChangeResponse>;
    /// Removes a dead task.
    async fn remove(&self, id: TaskId) -> Answer<TaskRemoved>;
    /// Says what a bulk run would change.
    async fn preview_run(&self, request: RunRequest) -> Answer<RunPreview>;
    /// Starts a bulk run.
    async fn start_run(&self, request: RunRequest) -> Answer<RunView>;
    /// One bulk run.
    async fn run(&self, id: u64) -> Answer<RunView>;
    /// The newest bulk runs.
    async fn runs(&self) -> Answer<Runs>;
    /// Stops a bulk run.
    async fn stop_run(&self, id: u64) -> Answer<RunView>;
    /// Whether this process works off bulk runs, because it is the server itself.
    fn works_runs(&self) -> bool;
    /// Works off bulk runs, if this process does that. Ends only by being dropped.
    async fn work_runs(&self) -> Infallible;
    /// The last calls that changed something.
    async fn activity(&self, after: Option<u64>, limit: u32) -> Answer<Activity>;
    /// Dead tasks by error.
    async fn dead(&self, filter: &TaskFilter) -> Answer<DeadGroups>;
    /// Every queue.
    async fn queues(&self) -> Answer<Queues>;
    /// Why the newest tasks of a queue wait.
    async fn queue_why(&self, queue: &Name) -> Answer<QueueWhy>;
    /// Pauses or resumes a queue.
    async fn set_queue_paused(&self, queue: &Name, paused: bool) -> Answer<QueueChange>;
    /// Cancels the waiting tasks of a queue and removes its dead ones.
    async fn purge_queue(&self, queue: &Name, request: PurgeRequest) -> Answer<PurgeResponse>;
    /// One page of jobs by name.
    async fn jobs(&self, after: Option<&Name>, limit: u32) -> Answer<Jobs>;
    /// One job.
    async fn job(&self, job: &Name) -> Answer<JobView>;
    /// Makes a job or changes it.
    async fn set_job(&self, job: &Name, request: JobRequest) -> Answer<JobView>;
    /// Removes a job; `now` also asks its running tasks to end.
    async fn remove_job(&self, job: &Name, now: bool) -> Answer<JobRemoval>;
    /// One page of workflows by name.
    async fn workflows(&self, blocked: bool, after: Option<&Name>, limit: u32) -> Answer<Workflows>;
    /// One workflow.
    async fn workflow(&self, workflow: &Name) -> Answer<WorkflowView>;
    /// Retries, skips or cancels.
    async fn change_workflow(&self, workflow: &Name, action: WorkflowAction) -> Answer<WorkflowChange>;
    /// Every schedule.
    async fn schedules(&self) -> Answer<Schedules>;
    /// One schedule.
    async fn schedule(&self, name: &Name) -> Answer<ScheduleView>;
    /// Makes a schedule, or replaces what it enqueues and when.
    async fn set_schedule(&self, name: &Name, request: ScheduleRequest) -> Answer<ScheduleView>;
    /// Pauses or resumes a schedule.
    async fn set_schedule_paused(&self, name: &Name, paused: bool) -> Answer<ScheduleView>;
    /// Enqueues the task of a schedule now.
    async fn run_schedule(&self, name: &Name) -> Answer<EnqueueResponse>;
    /// Removes a schedule.
    async fn remove_schedule(&self, name: &Name) -> Answer<ScheduleRemoved>;
    /// Every worker.
    async fn workers(&self) -> Answer<Workers>;
    /// Changes a running worker.
    async fn set_worker(&self, worker: WorkerId, request: WorkerRequest) -> Answer<WorkerView>;
    /// Makes a token.
    async fn create_token(&self, request: TokenRequest) -> Answer<TokenCreated>;
    /// Every token.
    async fn tokens(&self) -> Answer<Tokens>;
    /// Revokes a token by its id, or a name that only it has.
    async fn revoke_token(&self, id: &str) -> Answer<TokenRevoked>;
    /// Sessions of browsers.
    async fn sessions(&self) -> Answer<Sessions>;
    /// Ends a session.
    async fn end_session(&self, id: &str) -> Answer<SessionEnded>;
    /// Information about the store, the version and the worker.
    async fn info(&self) -> Answer<InfoView>;
    /// Every broken promise in the store.
    async fn audit(&self) -> Answer<Audit>;
    /// Closes the connection cleanly.
    async fn close(&self) -> Answer<()>;
}
