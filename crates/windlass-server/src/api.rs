//! What goes over the wire: requests, answers and errors, shared by the server and its clients.
//!
//! snake_case; times are RFC 3339 in UTC; durations are whole milliseconds and end in `_ms`; a field without
//! a value is left out. Requests refuse unknown fields. The types hold raw JSON, so read them straight from
//! JSON text and not through [`serde_json::Value`].
//!
//! | route | request | answer |
//! |---|---|---|
//! | `POST /v1/tasks` | [`EnqueueRequest`] or [`BatchRequest`] | 201 [`EnqueueResponse`] or [`BatchResponse`] |
//! | `GET /v1/tasks?FILTER&after&limit&detail` | | [`TaskPage`], or [`SummaryPage`] |
//! | `GET /v1/tasks/{id}` | | [`TaskView`] |
//! | `GET /v1/tasks/{id}/why` | | [`WhyView`] |
//! | `GET /v1/tasks/{id}/wait?timeout_ms` | | [`WaitResponse`]; 404 if there is no such task |
//! | `POST /v1/tasks/wait` | [`WaitRequest`] | [`WaitResponse`] |
//! | `POST /v1/tasks/{id}/cancel` | [`CancelRequest`] or nothing | [`ChangeResponse`] |
//! | `POST /v1/tasks/{id}/retry` | [`RetryRequest`] or nothing | [`ChangeResponse`] |
//! | `POST /v1/tasks/cancel`, `POST /v1/tasks/retry` | [`BulkRequest`] | [`BulkResponse`] |
//! | `POST /v1/runs` | [`RunRequest`] | 201 [`RunView`]; 200 [`RunPreview`] of a dry run |
//! | `GET /v1/runs` | | [`Runs`] |
//! | `GET /v1/runs/{id}` | | [`RunView`] |
//! | `POST /v1/runs/{id}/stop` | nothing | [`RunView`] |
//! | `GET /v1/activity?after&limit` | | [`Activity`] |
//! | `GET /v1/dead?FILTER` | | [`DeadGroups`] |
//! | `GET /v1/queues` | | [`Queues`] |
//! | `GET /v1/queues/{name}/why` | | [`QueueWhy`] |
//! | `POST /v1/queues/{name}/pause`, `…/resume` | nothing | [`QueueChange`] |
//! | `GET /v1/jobs?after&limit` | | [`Jobs`] |
//! | `GET /v1/jobs/{name}` | | [`JobView`] |
//! | `PUT /v1/jobs/{name}` | [`JobRequest`] | [`JobView`] |
//! | `DELETE /v1/jobs/{name}?now` | nothing | [`JobRemoval`] |
//! | `GET /v1/workflows?blocked&after&limit` | | [`Workflows`] |
//! | `GET /v1/workflows/{name}` | | [`WorkflowView`] |
//! | `GET /v1/workflows/{name}/steps?after&limit` | | [`Steps`] |
//! | `POST /v1/workflows/{name}/retry`, `…/skip`, `…/cancel` | nothing | [`WorkflowChange`] |
//! | `GET /v1/schedules` | | [`Schedules`] |
//! | `GET /v1/schedules/{name}` | | [`ScheduleView`] |
//! | `PUT /v1/schedules/{name}` | [`ScheduleRequest`] | [`ScheduleView`] |
//! | `DELETE /v1/schedules/{name}` | | [`ScheduleRemoved`] |
//! | `POST /v1/schedules/{name}/pause`, `…/resume` | nothing | [`ScheduleView`] |
//! | `POST /v1/schedules/{name}/run` | nothing | 201 [`EnqueueResponse`] |
//! | `GET /v1/workers` | | [`Workers`] |
//! | `GET /v1/consumers` | | [`Consumers`] |
//! | `POST /v1/consumers` | [`ConsumerReport`] | [`ConsumersReported`] |
//! | `GET /v1/overview` | | [`Overview`] |
//! | `PUT /v1/workers/{id}` | [`WorkerRequest`] | [`WorkerView`] |
//! | `GET /v1/info` | | [`InfoView`] |
//! | `GET /v1/audit` | | [`Audit`] |
//! | `GET /v1/snapshot` | | [`Snapshot`] |
//! | `GET /v1/events` | | [`Snapshot`] as `text/event-stream`, again and again |
//! | `GET /v1/series?queue&from` | | [`Series`] |
//! | `GET /v1/tokens` | | [`Tokens`] |
//! | `POST /v1/tokens` | [`TokenRequest`] | 201 [`TokenCreated`] |
//! | `DELETE /v1/tokens/{id}` | nothing | [`TokenRevoked`] |
//! | `POST /v1/login` | [`LoginRequest`] | [`SessionView`] and a cookie |
//! | `POST /v1/logout` | nothing | [`LoggedOut`] |
//! | `GET /v1/sessions` | | [`Sessions`] |
//! | `DELETE /v1/sessions/{id}` | nothing | [`SessionEnded`] |
//! | `GET /v1/openapi.json` | | this table for programs |
//! | `GET /healthz`, `GET /readyz` | | [`HealthView`]; 503 if not ready |
//! | `GET /metrics` | | text for Prometheus; 404 if none are kept |
//!
//! FILTER is any of the fields of [`TaskFilter`]; `ids` are separated by commas.
//!
//! Every other answer is an [`ErrorBody`]. A POST or PUT with a body needs `content-type: application/json`.

mod activity;
mod change;
mod consumer;
mod enqueue;
mod error;
mod fleet;
mod health;
mod job;
mod run;
mod schedule;
mod session;
mod task;
mod token;
mod watch;
mod workflow;

pub use activity::{Activity, CallView};
pub(crate) use change::FILTER_FIELDS;
pub use change::{
    BULK_LIMIT_MAX, BulkRequest, BulkResponse, CancelRequest, ChangeResponse, PurgeRequest, PurgeResponse,
    REFUSALS_MAX, Refusal, RetryRequest, TaskFilter, TaskRemoved,
};
pub use consumer::{
    ConsumerProcess, ConsumerReport, ConsumerState, ConsumerView, Consumers, ConsumersReported,
};
pub use enqueue::{
    BatchRequest, BatchResponse, EnqueueRequest, EnqueueResponse, EnqueuedTask, KeyConflict, RetryDelays,
};
pub use error::{ErrorBody, ErrorCode, ErrorDetail};
pub use fleet::{
    Audit, Cause, ConnectionsView, InfoView, KindView, Overview, QueueChange, QueueView, QueueWhy, Queues,
    WorkerRequest, WorkerState, WorkerStatusView, WorkerView, Workers,
};
pub use health::{Check, HealthView};
pub use job::{JobRemoval, JobRequest, JobView, Jobs};
pub use run::{RunAction, RunPreview, RunRequest, RunSample, RunState, RunView, Runs};
pub use schedule::{PassedTicks, ScheduleRemoved, ScheduleRequest, ScheduleView, ScheduledTask, Schedules};
pub use session::{LoggedOut, LoginRequest, SessionEnded, SessionView, Sessions};
pub use task::{
    AttemptView, DEAD_COUNTS, DeadGroup, DeadGroups, Detail, EncodingView, ExportFormat, ExportRequest,
    SUMMARY_ERROR_CHARS, SummaryPage, TaskPage, TaskSummary, TaskView, WAIT_IDS_MAX, WAIT_MAX_MS,
    WaitRequest, WaitResponse, WhyView,
};
pub use token::{TokenCreated, TokenRequest, TokenRevoked, TokenView, Tokens};
pub use watch::{
    Attention, BlockedWorkflow, Flow, ForecastView, JobAtLimit, LastAudit, QueueFlow, Series, SeriesPoint,
    Snapshot, StoreHealth, WorkersSummary,
};
pub use workflow::{EndedSteps, StepView, Steps, WorkflowChange, WorkflowView, Workflows};

/// Reads an explicit `null` as a value, which a plain `Option` would take for absent.
fn present<'de, D: serde::Deserializer<'de>, T: serde::Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}
