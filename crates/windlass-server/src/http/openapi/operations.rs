//! What each call takes and answers, beyond what every call has.

/// One operation.
pub(super) struct Operation {
    /// Its name in the table of calls.
    pub call: &'static str,
    /// Its `operationId`.
    pub id: &'static str,
    /// What it does.
    pub summary: &'static str,
    /// Parameters of its query with their types.
    pub query: &'static [(&'static str, &'static str)],
    /// The types that its body may have, if any.
    pub body: &'static [&'static str],
    /// Status and types of its successful answers; no type for text.
    pub answers: &'static [(u16, &'static [&'static str])],
    /// The statuses of its own errors, beside those that every call has.
    pub errors: &'static [u16],
}

const FILTER: &[(&str, &str)] = &[
    ("kind", "Name"),
    ("queue", "Name"),
    ("job", "Name"),
    ("workflow", "Name"),
    ("since", "time"),
    ("until", "time"),
    ("cause", "string"),
    ("worker", "worker_id"),
    ("key", "string"),
    ("ids", "task_ids"),
];
const LIST: &[(&str, &str)] = &[
    ("state", "State"),
    ("kind", "Name"),
    ("queue", "Name"),
    ("job", "Name"),
    ("workflow", "Name"),
    ("since", "time"),
    ("until", "time"),
    ("cause", "string"),
    ("worker", "worker_id"),
    ("key", "string"),
    ("ids", "task_ids"),
    ("detail", "Detail"),
    ("after", "TaskId"),
    ("limit", "uint"),
];
const EXPORT: &[(&str, &str)] = &[
    ("format", "ExportFormat"),
    ("payload", "boolean"),
    ("state", "State"),
    ("kind", "Name"),
    ("queue", "Name"),
    ("job", "Name"),
    ("workflow", "Name"),
    ("since", "time"),
    ("until", "time"),
    ("cause", "string"),
    ("worker", "worker_id"),
    ("key", "string"),
    ("ids", "task_ids"),
    ("after", "TaskId"),
    ("limit", "uint"),
];
const PAGE: &[(&str, &str)] = &[("after", "Name"), ("limit", "uint")];

macro_rules! operations {
    ($($call:literal $id:ident $summary:literal
        ? $query:expr; $([$($body:literal),*])? => $($status:literal [$($answer:literal),*]),+ ; [$($error:literal)*])*) => {
        /// Every operation.
        pub(super) const OPERATIONS: &[Operation] = &[$(Operation {
            call: $call,
            id: stringify!($id),
            summary: $summary,
            query: $query,
            body: &[$($($body),*)?],
            answers: &[$(($status, &[$($answer),*])),+],
            errors: &[$($error),*],
        }),*];
    };
}

operations! {
    "GET /healthz" health "Whether the process answers" ? &[]; => 200 ["HealthView"]; []
    "GET /readyz" ready "Whether it can do its work" ? &[]; => 200 ["HealthView"], 503 ["HealthView"]; []
    "GET /metrics" metrics "Figures for Prometheus" ? &[]; => 200 []; [404]
    "GET /v1/openapi.json" openapi "This document" ? &[]; => 200 ["any"]; []
    "POST /v1/tasks" enqueue "Adds a task, or several, all or none" ? &[]; ["EnqueueRequest", "BatchRequest"]
        => 200 ["EnqueueResponse"], 201 ["EnqueueResponse", "BatchResponse"]; [400 409 507]
    "GET /v1/tasks" list_tasks "One page of tasks, newest first" ? LIST; => 200 ["TaskPage", "SummaryPage"]; [400]
    "GET /v1/tasks/export" export_tasks "Every task that a filter matches, newest first, as CSV or as lines of JSON; format is required. \
        The last line says where it was cut, if it was" ? EXPORT; => 200 []; [400]
    "POST /v1/tasks/cancel" cancel_tasks "Cancels every task that a filter matches" ? &[]; ["BulkRequest"]
        => 200 ["BulkResponse"]; [400]
    "POST /v1/tasks/retry" retry_tasks "Retries every dead task that a filter matches" ? &[]; ["BulkRequest"]
        => 200 ["BulkResponse"]; [400 507]
    "POST /v1/tasks/remove" remove_tasks "Removes every dead task that a filter matches, for good" ? &[]; ["BulkRequest"]
        => 200 ["BulkResponse"]; [400]
    "POST /v1/tasks/wait" wait_for_tasks "Waits for the first of several tasks to end" ? &[]; ["WaitRequest"]
        => 200 ["WaitResponse"]; [400]
    "GET /v1/tasks/{id}" show_task "One task" ? &[]; => 200 ["TaskView"]; [400 404]
    "DELETE /v1/tasks/{id}" remove_task "Removes a dead task for good" ? &[]; ["Nothing"]
        => 200 ["TaskRemoved"]; [400 404 409]
    "GET /v1/tasks/{id}/why" why "Why a task is not running" ? &[]; => 200 ["WhyView"]; [400 404]
    "GET /v1/tasks/{id}/wait" wait_for_task "Waits for a task to end" ? &[("timeout_ms", "wait_ms")];
        => 200 ["WaitResponse"]; [400 404]
    "POST /v1/tasks/{id}/cancel" cancel_task "Cancels a task" ? &[]; ["CancelRequest"]
        => 200 ["ChangeResponse"]; [400 404 409]
    "POST /v1/tasks/{id}/retry" retry_task "Gives a dead task fresh attempts, or repeats one that is done or cancelled as a new one" ? &[]; ["RetryRequest"]
        => 200 ["ChangeResponse"]; [400 404 409 507]
    "POST /v1/runs" start_run "Changes every task that a filter matches, spread over a time" ? &[]; ["RunRequest"]
        => 200 ["RunPreview"], 201 ["RunView"]; [400 409 507]
    "GET /v1/runs" list_runs "The newest bulk runs" ? &[]; => 200 ["Runs"]; []
    "GET /v1/runs/{id}" show_run "One bulk run with its progress" ? &[]; => 200 ["RunView"]; [400 404]
    "POST /v1/runs/{id}/stop" stop_run "Stops a bulk run; what it has not changed stays as it was" ? &[]; ["Nothing"]
        => 200 ["RunView"]; [400 404 409]
    "GET /v1/activity" activity "The last calls that changed something, newest first"
        ? &[("after", "uint"), ("limit", "uint")]; => 200 ["Activity"]; [400]
    "GET /v1/dead" dead "Dead tasks by error" ? FILTER; => 200 ["DeadGroups"]; [400]
    "GET /v1/queues" list_queues "Every queue" ? &[]; => 200 ["Queues"]; []
    "GET /v1/queues/{name}/why" queue_why "Why the newest tasks of a queue wait" ? &[]; => 200 ["QueueWhy"]; [400 404]
    "POST /v1/queues/{name}/pause" pause_queue "Starts no task of a queue" ? &[]; ["Nothing"]
        => 200 ["QueueChange"]; [400]
    "POST /v1/queues/{name}/resume" resume_queue "Starts tasks of a queue again" ? &[]; ["Nothing"]
        => 200 ["QueueChange"]; [400]
    "POST /v1/queues/{name}/purge" purge_queue "Cancels what waits in a queue, and removes what is dead" ? &[]; ["PurgeRequest"]
        => 200 ["PurgeResponse"]; [400 404]
    "GET /v1/jobs" list_jobs "One page of jobs, by name" ? PAGE; => 200 ["Jobs"]; [400]
    "GET /v1/jobs/{name}" show_job "One job" ? &[]; => 200 ["JobView"]; [400 404]
    "PUT /v1/jobs/{name}" set_job "Makes a job, or changes it" ? &[]; ["JobRequest"] => 200 ["JobView"]; [400 409]
    "DELETE /v1/jobs/{name}" remove_job "Cancels what waits in a job, and forgets it" ? &[("now", "boolean")]; ["Nothing"]
        => 200 ["JobRemoval"]; [400 404]
    "GET /v1/workflows" list_workflows "One page of workflows, by name"
        ? &[("blocked", "boolean"), ("after", "Name"), ("limit", "uint")]; => 200 ["Workflows"]; [400]
    "GET /v1/workflows/{name}" show_workflow "One workflow" ? &[]; => 200 ["WorkflowView"]; [400 404]
    "GET /v1/workflows/{name}/steps" list_steps "One page of the steps of a workflow, in their order"
        ? &[("after", "TaskId"), ("limit", "uint")]; => 200 ["Steps"]; [400 404]
    "POST /v1/workflows/{name}/retry" retry_workflow "Retries the step that blocks a workflow" ? &[]; ["Nothing"]
        => 200 ["WorkflowChange"]; [400 404 409]
    "POST /v1/workflows/{name}/skip" skip_workflow "Skips the step that blocks a workflow" ? &[]; ["Nothing"]
        => 200 ["WorkflowChange"]; [400 404 409]
    "POST /v1/workflows/{name}/cancel" cancel_workflow "Cancels what is left of a workflow" ? &[]; ["Nothing"]
        => 200 ["WorkflowChange"]; [400 404 409]
    "GET /v1/schedules" list_schedules "Every schedule" ? &[]; => 200 ["Schedules"]; []
    "GET /v1/schedules/{name}" show_schedule "One schedule" ? &[]; => 200 ["ScheduleView"]; [400 404]
    "PUT /v1/schedules/{name}" set_schedule "Makes a schedule, or replaces it" ? &[]; ["ScheduleRequest"]
        => 200 ["ScheduleView"]; [400 409]
    "DELETE /v1/schedules/{name}" remove_schedule "Removes a schedule" ? &[]; => 200 ["ScheduleRemoved"]; [400 404]
    "POST /v1/schedules/{name}/pause" pause_schedule "Stops a schedule" ? &[]; ["Nothing"]
        => 200 ["ScheduleView"]; [400 404 409]
    "POST /v1/schedules/{name}/resume" resume_schedule "Lets a schedule go on" ? &[]; ["Nothing"]
        => 200 ["ScheduleView"]; [400 404 409]
    "POST /v1/schedules/{name}/run" run_schedule "Enqueues the task of a schedule now" ? &[]; ["Nothing"]
        => 201 ["EnqueueResponse"]; [400 404 409 507]
    "GET /v1/workers" list_workers "Every worker of the last day" ? &[]; => 200 ["Workers"]; []
    "PUT /v1/workers/{id}" set_worker "Changes a running worker" ? &[]; ["WorkerRequest"]
        => 200 ["WorkerView"]; [400 404 409]
    "GET /v1/consumers" list_consumers "Consumers of RabbitMQ whose processes report to this server" ? &[]; => 200 ["Consumers"]; []
    "POST /v1/consumers" report_consumers "What a process says of its consumers" ? &[]; ["ConsumerReport"]
        => 200 ["ConsumersReported"]; [400]
    "GET /v1/info" info "What the server says of itself" ? &[]; => 200 ["InfoView"]; []
    "GET /v1/overview" overview "Figures of the process since it started" ? &[]; => 200 ["Overview"]; []
    "GET /v1/audit" audit "Looks at every task for a broken promise" ? &[]; => 200 ["Audit"]; []
    "GET /v1/snapshot" snapshot "What an overview of the store shows, at one moment" ? &[]; => 200 ["Snapshot"]; []
    "GET /v1/events" events "The same as server-sent events, every two seconds" ? &[]; => 200 []; []
    "GET /v1/series" series "The history of a queue, or of all together" ? &[("queue", "Name"), ("from", "time")];
        => 200 ["Series"]; [400]
    "GET /v1/tokens" list_tokens "Every token, without secrets" ? &[]; => 200 ["Tokens"]; []
    "POST /v1/tokens" create_token "Makes a token; its secret is shown once" ? &[]; ["TokenRequest"]
        => 201 ["TokenCreated"]; [400 409]
    "DELETE /v1/tokens/{id}" revoke_token "Revokes a token by its id, or by a name that only it has" ? &[]; ["Nothing"]
        => 200 ["TokenRevoked"]; [400 404 409]
    "POST /v1/login" login "Starts a session of a browser, whose cookie counts in place of the token" ? &[]; ["LoginRequest"]
        => 200 ["SessionView"]; [400 401 429 500 501 503]
    "POST /v1/logout" logout "Ends the session of a browser" ? &[]; ["Nothing"]
        => 200 ["LoggedOut"]; [400 429 500 501 503]
    "GET /v1/sessions" list_sessions "The newest sessions: all for an administrator, else those of the same token" ? &[];
        => 200 ["Sessions"]; []
    "DELETE /v1/sessions/{id}" end_session "Ends a session: any for an administrator, else one of the same token" ? &[]; ["Nothing"]
        => 200 ["SessionEnded"]; [400 404]
}
