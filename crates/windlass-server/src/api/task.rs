//! A task as it is looked at, listed, explained and waited for.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use windlass_core::{Name, State, TaskId, Timestamp, store::SummaryRecord, task::AttemptResult};

/// How the bytes of a payload or an output are shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EncodingView {
    /// As the JSON value that it is.
    #[default]
    Json,
    /// As `{"bytes": size, "digest": "sha256:…"}`.
    Bytes,
}

/// A task.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TaskView {
    /// The task.
    pub id: TaskId,
    /// Where it stands.
    pub state: State,
    /// Which handler runs it.
    pub kind: Name,
    /// Which queue it waits in.
    pub queue: Name,
    /// Higher first.
    pub priority: i32,
    /// The job it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<Name>,
    /// The workflow it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<Name>,
    /// Its idempotency key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The task that it repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<TaskId>,
    /// The task that repeats it; only in an answer about one task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeated_by: Option<TaskId>,
    /// What it carries, secrets removed; in the form that `payload_encoding` says.
    pub payload: Box<RawValue>,
    /// Whether `payload` is the JSON itself or size and digest of bytes.
    pub payload_encoding: EncodingView,
    /// What its handler returned; in the form that `output_encoding` says.
    #[serde(default, deserialize_with = "super::present", skip_serializing_if = "Option::is_none")]
    pub output: Option<Box<RawValue>>,
    /// Whether `output` is the JSON itself or size and digest of bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_encoding: Option<EncodingView>,
    /// The last error or reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What the handler last reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    /// Why the running attempt should stop, if a caller asked it to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_requested: Option<String>,
    /// Attempts spent, or the number of the one that runs.
    pub attempt: u32,
    /// Attempts granted.
    pub max_attempts: u32,
    /// How many times in a row the process that ran it died.
    pub crashes: u32,
    /// Its lease number: an end under an older number is refused.
    pub lease: u32,
    /// Who runs it or ran it last, such as `w7`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// How long an attempt may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// When it was enqueued.
    pub enqueued_at: Timestamp,
    /// When it may start, while it is scheduled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Timestamp>,
    /// When the current or last attempt was claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Ended attempts, oldest first.
    #[serde(default)]
    pub attempts: Vec<AttemptView>,
}

/// One ended attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptView {
    /// The attempt's number.
    pub attempt: u32,
    /// The lease it ran under.
    pub lease: u32,
    /// The worker that ran it, such as `w7`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// When it was claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When its end was committed.
    pub ended_at: Timestamp,
    /// How it ended.
    pub result: AttemptResult,
    /// The error or reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// One page of tasks, newest first.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct TaskPage {
    /// The tasks. A page may be short, even empty, and still have a next.
    pub tasks: Vec<TaskView>,
    /// The cursor of the next page, for `after`; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<TaskId>,
}

/// How much of each task a list tells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Detail {
    /// Everything: [`TaskPage`].
    #[default]
    Whole,
    /// Neither payload nor output nor attempts, and errors are cut: [`SummaryPage`].
    Summary,
}

/// A task in a list of many: what it is and how it stands, without what it carries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSummary {
    /// The task.
    pub id: TaskId,
    /// Where it stands.
    pub state: State,
    /// Which handler runs it.
    pub kind: Name,
    /// Which queue it waits in.
    pub queue: Name,
    /// Higher first.
    pub priority: i32,
    /// The job it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<Name>,
    /// The workflow it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<Name>,
    /// Its idempotency key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Attempts spent, or the number of the one that runs.
    pub attempt: u32,
    /// Attempts granted.
    pub max_attempts: u32,
    /// Who runs it or ran it last, such as `w7`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// The last error or reason, cut to [`SUMMARY_ERROR_CHARS`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What the handler last reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    /// When it was enqueued.
    pub enqueued_at: Timestamp,
    /// When it may start, while it is scheduled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Timestamp>,
    /// When the current or last attempt was claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Why the running attempt should stop, if a caller asked it to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_requested: Option<String>,
}

/// Characters of an error in a summary.
pub const SUMMARY_ERROR_CHARS: usize = 300;

impl From<SummaryRecord> for TaskSummary {
    fn from(task: SummaryRecord) -> Self {
        Self {
            id: task.id,
            state: task.state,
            kind: task.lane.kind.clone(),
            queue: task.lane.queue.clone(),
            priority: task.priority,
            job: task.job,
            workflow: task.workflow,
            key: task.key,
            attempt: task.attempt,
            max_attempts: task.max_attempts,
            worker: task.worker.map(|worker| worker.to_string()),
            error: task.error.map(|error| cut(error, SUMMARY_ERROR_CHARS)),
            progress: task.progress,
            enqueued_at: task.id.enqueued_at(),
            due_at: task.due_at,
            started_at: task.started_at,
            ended_at: task.ended_at,
            cancel_requested: task.cancel_requested,
        }
    }
}

/// A text of at most so many characters; the last one says that it was cut.
fn cut(text: String, chars: usize) -> String {
    if text.chars().nth(chars).is_none() {
        return text;
    }
    text.chars().take(chars - 1).chain(['…']).collect()
}

/// One page of summaries, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SummaryPage {
    /// The tasks. A page may be short, even empty, and still have a next.
    pub tasks: Vec<TaskSummary>,
    /// The cursor of the next page, for `after`; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<TaskId>,
    /// The call looked at every task that was enqueued after this time, and stopped there because it had
    /// looked at enough. Absent if the page is full, and at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looked_back_to: Option<Timestamp>,
}

/// The form of an export.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExportFormat {
    /// A line of cells for each task, with a line of their names before them.
    #[default]
    Csv,
    /// A line of JSON for each task.
    Ndjson,
}

impl ExportFormat {
    /// It as text.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Ndjson => "ndjson",
        }
    }
}

/// What is exported. It is a query, not a body.
#[derive(Debug, Clone, Default)]
pub struct ExportRequest {
    /// Which tasks.
    pub filter: super::TaskFilter,
    /// The form.
    pub format: ExportFormat,
    /// Whether whole tasks are exported, with payloads; only as [`ExportFormat::Ndjson`].
    pub payload: bool,
    /// Only tasks older than this one.
    pub after: Option<TaskId>,
    /// Most tasks.
    pub limit: Option<u32>,
}

/// Why a task is not running, or that it is, or that it has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WhyView {
    /// The task.
    pub id: TaskId,
    /// Where it stands.
    pub state: State,
    /// A stable reason code.
    pub code: String,
    /// One sentence for people.
    pub sentence: String,
    /// What would change it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// Longest long poll; ask again for more.
pub const WAIT_MAX_MS: u64 = 60_000;
/// Most tasks in one long poll.
pub const WAIT_IDS_MAX: usize = 1_000;

/// A long poll for the first of several tasks to end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WaitRequest {
    /// The tasks, at most [`WAIT_IDS_MAX`].
    pub ids: Vec<TaskId>,
    /// How long to wait for the first; at most [`WAIT_MAX_MS`], 30 s if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// The answer to a long poll: the tasks that have ended; none if the time ran out first.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct WaitResponse {
    /// Tasks that have ended.
    pub ended: Vec<TaskView>,
    /// Tasks that do not exist, or do not exist any more.
    #[serde(default)]
    pub missing: Vec<TaskId>,
}

/// Dead tasks of one kind with the same error, numbers and ids apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadGroup {
    /// The error with its numbers and ids replaced.
    pub error: String,
    /// The kind.
    pub kind: Name,
    /// How many tasks.
    pub count: u64,
    /// The newest of them.
    pub example: TaskId,
    /// When the first of them ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_ended_at: Option<Timestamp>,
    /// When the last of them ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_ended_at: Option<Timestamp>,
    /// How many of them ended in each of [`DEAD_COUNTS`] equal parts of the time from
    /// [`DeadGroups::first_ended_at`] to [`DeadGroups::last_ended_at`], oldest first.
    #[serde(default)]
    pub counts: Vec<u64>,
}

/// Parts of the time over which the members of a group are counted.
pub const DEAD_COUNTS: usize = 24;

/// Dead tasks by error, the largest group first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadGroups {
    /// The groups.
    pub groups: Vec<DeadGroup>,
    /// How many dead tasks were looked at.
    pub looked_at: u64,
    /// Whether there are more dead tasks than were looked at (the newest are).
    pub more: bool,
    /// When the first of all the tasks that were looked at ended. The time axis of all groups begins here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_ended_at: Option<Timestamp>,
    /// When the last of them ended. The time axis of all groups ends here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_ended_at: Option<Timestamp>,
}
