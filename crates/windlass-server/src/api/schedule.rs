//! Recurring tasks.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use windlass::schedule::Missed;
use windlass_core::{Name, OnFailure, State, TaskId, Timestamp};

use super::{EncodingView, EnqueueRequest};

/// What a schedule enqueues and when.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a schedule as an object")]
pub struct ScheduleRequest {
    /// When: `minute hour day-of-month month day-of-week`, with seconds first if there are six fields, or a
    /// short form such as `@daily`.
    pub cron: String,
    /// The time zone, by IANA name; `UTC` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tz: Option<String>,
    /// What becomes of missed ticks; `once` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed: Option<Missed>,
    /// The task of each tick, without a start and without a key.
    pub task: EnqueueRequest,
}

/// Every schedule.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Schedules {
    /// The schedules by name.
    pub schedules: Vec<ScheduleView>,
}

/// A schedule.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ScheduleView {
    /// Its name.
    pub name: Name,
    /// When, if the expression can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// The same in words, such as "every weekday at 09:00"; the expression where words would leave something
    /// out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
    /// The time zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tz: Option<String>,
    /// What becomes of missed ticks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed: Option<Missed>,
    /// The task of each tick.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<ScheduledTask>,
    /// Whether it is stopped.
    pub paused: bool,
    /// The next ticks, at most three; none while it is paused.
    pub next: Vec<Timestamp>,
    /// The same with the offset of the time zone, such as `2027-02-01T03:00:00+01:00`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next_local: Vec<String>,
    /// The last tick that was fired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_at: Option<Timestamp>,
    /// The task of that tick.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_task: Option<TaskId>,
    /// The state of that task, while it is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_task_state: Option<State>,
    /// Ticks that have passed without a task of their own, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed: Option<PassedTicks>,
    /// Why this version cannot read the schedule; it does not fire here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What the caller should know, for example that no live worker has this kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Ticks that have passed without a task of their own, by the expression that the schedule has now. A store
/// does not keep why: no worker was there, or the schedule was paused or changed meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassedTicks {
    /// How many, counted up to 1,000.
    pub count: u32,
    /// Whether there are more than were counted.
    pub at_least: bool,
    /// The first of them.
    pub first_at: Timestamp,
    /// The last one that was counted.
    pub last_at: Timestamp,
    /// Whether the schedule still waits for one of them: no worker fires it now.
    pub overdue: bool,
    /// The same in a sentence.
    pub sentence: String,
}

/// The task of each tick.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ScheduledTask {
    /// Which handler runs it.
    pub kind: Name,
    /// Which queue it waits in.
    pub queue: Name,
    /// What it carries: JSON without its secrets, or size and digest.
    pub payload: Box<RawValue>,
    /// How to read `payload`.
    pub payload_encoding: EncodingView,
    /// Higher first.
    pub priority: i32,
    /// The job it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<Name>,
    /// The limit of its job if the store does not know that job yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_concurrency: Option<u32>,
    /// The workflow it is appended to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<Name>,
    /// What a failure means for the rest of its workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<OnFailure>,
    /// Attempts granted; absent means the installation's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    /// How long one attempt may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// The answer to a removal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleRemoved {
    /// The schedule that is gone.
    pub removed: Name,
}
