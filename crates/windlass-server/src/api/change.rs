//! Cancel, retry and remove: of one task, or of many by filter.

use serde::{Deserialize, Serialize};
use windlass_core::{Name, State, TaskId, Timestamp, store::Filter};

use super::error::ErrorDetail;

/// Cancel of one task. The body may be absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CancelRequest {
    /// Why, for the task's record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Retry of one task: a dead task gets new attempts; for one that is done or cancelled, a new task repeats
/// it. The body may be absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetryRequest {
    /// How long to wait first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
}

/// The answer to a cancel or a retry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeResponse {
    /// The task.
    pub id: TaskId,
    /// Its state now; `running` after a cancel means that the attempt was asked to end.
    pub state: State,
    /// After the retry of a task that was done or cancelled: that task. `id` is the new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<TaskId>,
}

/// The answer to the removal of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRemoved {
    /// The task that was removed.
    pub removed: TaskId,
}

/// Purge of a queue. The body may be absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PurgeRequest {
    /// Only say how many tasks there are.
    #[serde(default)]
    pub dry_run: bool,
    /// Why, for the records of what is cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The answer to the purge of a queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PurgeResponse {
    /// The queue.
    pub queue: Name,
    /// What had not started: it is cancelled.
    pub cancelled: BulkResponse,
    /// What was dead: it is removed.
    pub removed: BulkResponse,
}

/// Which tasks; what is absent does not restrict.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskFilter {
    /// Only this state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// Only this kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Name>,
    /// Only this queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Name>,
    /// Only this job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<Name>,
    /// Only this workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<Name>,
    /// Only tasks enqueued at or after this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Only tasks enqueued before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Only dead tasks of this cause: the `error` of a group of dead tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// Only tasks that this worker runs or ran last, such as `w7`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// Only tasks with this idempotency key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Only these tasks: at least one, at most [`windlass_core::store::FILTER_IDS_MAX`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ids: Option<Vec<TaskId>>,
}

/// The fields of a filter, for messages.
pub(crate) const FILTER_FIELDS: &str =
    "state, kind, queue, job, workflow, since, until, cause, worker, key, ids";

impl TaskFilter {
    /// Whether it restricts nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The same for a store.
    ///
    /// # Errors
    /// `invalid` if a field has no meaning: a worker that is none, no ids or too many, a state beside a cause
    /// that is not dead.
    pub(crate) fn checked(self) -> Result<Filter, ErrorDetail> {
        let Self { state, kind, queue, job, workflow, since, until, cause, worker, key, ids } = self;
        if ids.as_ref().is_some_and(Vec::is_empty) {
            return Err(ErrorDetail::invalid("ids is empty; name at least one task, or leave it out"));
        }
        if let (Some(_), Some(state)) = (&cause, state.filter(|state| *state != State::Dead)) {
            return Err(ErrorDetail::invalid(format!("cause is of dead tasks; state is {state}")));
        }
        let worker = worker.map(|text| text.parse()).transpose()?;
        let filter = Filter { state, kind, queue, job, workflow, since, until, cause, worker, key, ids };
        filter.check()?;
        Ok(filter)
    }
}

/// Most tasks that one bulk call changes; call again for more.
pub const BULK_LIMIT_MAX: u32 = 100_000;
/// Refusals that a bulk answer names; the rest is only counted.
pub const REFUSALS_MAX: usize = 20;

/// Cancel, retry or removal of every task that a filter matches.
///
/// Cancel and removal need at least one restriction. Cancel skips ended tasks; retry and removal apply to
/// dead tasks only.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BulkRequest {
    /// Which tasks.
    #[serde(default)]
    pub filter: TaskFilter,
    /// Only say how many there are.
    #[serde(default)]
    pub dry_run: bool,
    /// Retry only: spread their starts evenly over this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_ms: Option<u64>,
    /// At most so many, newest first; [`BULK_LIMIT_MAX`] if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Cancel only: why, for the tasks' records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The answer to a bulk operation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BulkResponse {
    /// Tasks that the filter matched, up to the limit.
    pub matched: u64,
    /// Tasks that were changed; 0 in a dry run.
    pub changed: u64,
    /// Tasks that could not be changed, for example because they ended meanwhile.
    pub refused: u64,
    /// The first of those, with the reason.
    #[serde(default)]
    pub refusals: Vec<Refusal>,
    /// Whether the limit was reached and there may be more.
    pub more: bool,
    /// Whether nothing was changed because it was only a question.
    pub dry_run: bool,
}

/// A task that a bulk operation could not change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The task.
    pub id: TaskId,
    /// Why.
    pub error: ErrorDetail,
}
