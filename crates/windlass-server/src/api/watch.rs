//! One answer from which an overview of the store is drawn, and its history.

use serde::{Deserialize, Serialize};
use windlass_core::{Name, TaskId, Timestamp, store::Depth};

/// The store at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// When it was taken.
    pub at: Timestamp,
    /// When the figures were read. Earlier than `at` while the store does not answer.
    pub figures_at: Timestamp,
    /// How long until the next snapshot.
    pub every_ms: u64,
    /// Whether the store answers.
    pub store: StoreHealth,
    /// The last audit that this process knows of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<LastAudit>,
    /// All queues together.
    pub total: Flow,
    /// The workers.
    pub workers: WorkersSummary,
    /// Queues by name; at most 500, those with the most to do.
    pub queues: Vec<QueueFlow>,
    /// Queues that are left out.
    pub more_queues: u64,
    /// Jobs that use all of their room while tasks are held, by name; at most 100.
    pub jobs_at_limit: Vec<JobAtLimit>,
    /// Workflows that wait for a user's decision, by name; at most 20.
    pub blocked_workflows: Vec<BlockedWorkflow>,
    /// What a user should look at, the most urgent first; at most 100.
    pub attention: Vec<Attention>,
}

/// Whether the store answers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreHealth {
    /// Whether it has answered.
    pub ok: bool,
    /// What is wrong otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How long the answers took.
    pub answered_in_ms: u64,
}

/// The result of an audit of the whole store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastAudit {
    /// How many broken promises it found.
    pub findings: u64,
    /// When.
    pub at: Timestamp,
}

/// What is in a queue, and how fast it comes and goes. A rate is absent until enough is known, and while a live
/// worker that serves the queue does not count its work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// How many tasks are in each state.
    pub depth: Depth,
    /// How long the next ready task has been ready, at least; absent if none is ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_ready_ms: Option<u64>,
    /// Tasks each second that were added, or whose time has come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_per_s: Option<f64>,
    /// Tasks each second that ended: done, dead or cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_per_s: Option<f64>,
    /// Tasks each second that ended in success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done_per_s: Option<f64>,
    /// Attempts each second that failed, tried again or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_per_s: Option<f64>,
    /// When everything that is ready, running, held or waiting is done.
    pub forecast: ForecastView,
}

/// A queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueueFlow {
    /// Its name.
    pub queue: Name,
    /// Whether nothing is claimed from it.
    pub paused: bool,
    /// How many kinds its tasks have.
    pub kinds: u32,
    /// Those of them that have tasks to do and no live worker.
    pub kinds_without_worker: Vec<Name>,
    /// Its figures.
    #[serde(flatten)]
    pub flow: Flow,
}

/// When a backlog is empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForecastView {
    /// `empty`, `in`, `not_at_this_rate` or `too_little_known`.
    pub kind: String,
    /// In words.
    pub sentence: String,
    /// How long it takes; only with `in`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_ms: Option<u64>,
}

/// The workers of the store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkersSummary {
    /// Workers that claim tasks.
    pub live: u32,
    /// Workers that finish their tasks and claim no more.
    pub draining: u32,
    /// Workers that have missed their renewals.
    pub stale: u32,
    /// Workers that may not use all of their slots.
    pub held_back: u32,
    /// How many tasks the live workers may run at once.
    pub slots: u64,
    /// How many tasks they run.
    pub running: u64,
}

/// A job that uses all of its room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobAtLimit {
    /// The job.
    pub job: Name,
    /// Its limit.
    pub concurrency: u32,
    /// Its tasks that run.
    pub running: u64,
    /// Its tasks that are ready.
    pub ready: u64,
    /// Its tasks that wait for room, counted up to a bound.
    pub held: u64,
    /// Since when this server has seen it so.
    pub since: Timestamp,
}

/// A workflow that waits for a user's decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockedWorkflow {
    /// The workflow.
    pub workflow: Name,
    /// The step that failed.
    pub blocked_by: TaskId,
    /// How many of its steps are unfinished.
    pub steps: u64,
}

/// Something that a user should look at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attention {
    /// A stable reason code.
    pub code: String,
    /// One sentence for people.
    pub sentence: String,
    /// What it is about: `store`, `audit`, `queue`, `job`, `workflow` or `worker`.
    pub about: String,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// The history of a queue, or of all queues together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// The queue; absent for all together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Name>,
    /// Points, the oldest first: one a minute, and one every five seconds in the last hour.
    pub points: Vec<SeriesPoint>,
}

/// One point of a history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SeriesPoint {
    /// When.
    pub at: Timestamp,
    /// Tasks that were ready, running, held or waiting.
    pub backlog: u64,
    /// Whether that was counted up to a bound only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
    /// Tasks that were ready.
    pub ready: u64,
    /// Tasks that ran.
    pub running: u64,
    /// Dead tasks.
    pub dead: u64,
    /// How long the next ready task had been ready, at least.
    pub oldest_ready_ms: u64,
    /// Tasks each second that came since the point before, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_per_s: Option<f64>,
    /// Tasks each second that ended since the point before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_per_s: Option<f64>,
    /// Attempts each second that failed since the point before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_per_s: Option<f64>,
}
