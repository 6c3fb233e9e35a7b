//! Bulk runs: a change of every task that a filter matches, spread over a time, that a server works off.

use serde::{Deserialize, Serialize};
use windlass_core::{Name, State, TaskId, Timestamp};

use super::{
    change::{Refusal, TaskFilter},
    error::ErrorDetail,
};

/// What a run does to each task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunAction {
    /// Gives a dead task a fresh budget of attempts.
    #[default]
    Retry,
    /// Cancels a task that has not ended.
    Cancel,
    /// Removes a dead task for good.
    Remove,
}

/// How a run stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// A server works on it.
    #[default]
    Running,
    /// It has changed every task that matched.
    Done,
    /// A caller stopped it. What it had not changed stays as it was.
    Stopped,
    /// It could not go on; `failure` says why.
    Failed,
}

impl RunState {
    /// Its name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
        }
    }
}

/// A run to start, or with `dry_run` only to look at.
///
/// Cancel and removal need at least one restriction. Cancel skips ended tasks; retry and removal apply to
/// dead tasks only.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRequest {
    /// What to do.
    pub action: RunAction,
    /// With which tasks.
    #[serde(default)]
    pub filter: TaskFilter,
    /// Spread the changes evenly over this time; as fast as possible if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_ms: Option<u64>,
    /// Cancel only: why, for the tasks' records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Only say how many tasks there are, with a few of them.
    #[serde(default)]
    pub dry_run: bool,
}

/// What a run would change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunPreview {
    /// Tasks that match now.
    pub matched: u64,
    /// Whether there may be more: the count has a limit.
    pub more: bool,
    /// A few of them.
    pub sample: Vec<RunSample>,
    /// Always true: nothing was changed.
    pub dry_run: bool,
}

/// A task that a run would change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSample {
    /// The task.
    pub id: TaskId,
    /// Its kind.
    pub kind: Name,
    /// Its queue.
    pub queue: Name,
    /// Its state.
    pub state: State,
}

/// A run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunView {
    /// Its number.
    pub id: u64,
    /// What it does.
    pub action: RunAction,
    /// With which tasks.
    pub filter: TaskFilter,
    /// Over which time; 0 for as fast as possible.
    pub over_ms: u64,
    /// Why, for the records of what is cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Who started it.
    pub by: String,
    /// How it stands.
    pub state: RunState,
    /// Who stopped it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_by: Option<String>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<ErrorDetail>,
    /// Tasks that matched when it was started.
    pub matched: u64,
    /// Whether there may have been more.
    pub more: bool,
    /// Tasks that it has changed.
    pub changed: u64,
    /// Tasks that could not be changed, for example because they ended meanwhile.
    pub refused: u64,
    /// The first of those, with the reason.
    #[serde(default)]
    pub refusals: Vec<Refusal>,
    /// When it was started.
    pub started_at: Timestamp,
    /// When it last wrote its progress; when it ended, if it has.
    pub updated_at: Timestamp,
}

impl RunView {
    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.state != RunState::Running
    }
}

/// The newest runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Runs {
    /// The runs, newest first.
    pub runs: Vec<RunView>,
}
