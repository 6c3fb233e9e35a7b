//! Repeating a task that is done or cancelled: a new task that does the same.
//!
//! An ended task never runs again (ONE-TERMINAL), so what an operator retries is a copy. The copy's idempotency key names the task
//! that it repeats: each task is repeated once, however often the call is made, and the key leads from one to the other. A caller who wants
//! a third run repeats the second.

use std::time::Duration;

use crate::{
    error::{Error, Result},
    id::TaskId,
    state::State,
    task::{Key, NewTask, Start, TaskRecord},
};

/// How the key of a copy begins.
const PREFIX: &str = "repeat-of:";

/// The key of the task that repeats this one.
pub fn key_of(id: TaskId) -> String {
    format!("{PREFIX}{id}")
}

/// The task that a task with this key repeats.
pub fn repeated(key: Option<&str>) -> Option<TaskId> {
    key?.strip_prefix(PREFIX)?.parse().ok()
}

/// A new task that does the same as one that is done or cancelled, with its queue, job, workflow, priority, attempts and time limit.
/// Retry delays of its own are not kept in the history: the copy has the installation's.
///
/// # Errors
/// [`Error::Conflict`] if the task is dead, or has not ended.
pub fn copy(task: &TaskRecord, delay: Duration) -> Result<NewTask> {
    if !matches!(task.state, State::Done | State::Cancelled) {
        return Err(Error::Conflict(format!(
            "task {} is {}; it has not ended for good",
            task.id, task.state
        )));
    }
    Ok(NewTask {
        kind: task.lane.kind.clone(),
        queue: task.lane.queue.clone(),
        payload: task.payload.clone(),
        priority: task.priority,
        start: if delay.is_zero() { Start::Now } else { Start::In(delay) },
        key: Some(Key { text: key_of(task.id), ignore_conflict: false }),
        max_attempts: Some(task.max_attempts),
        retry: None,
        timeout: task.timeout,
        job: task.job.clone(),
        job_concurrency: None,
        workflow: task.workflow.clone(),
        on_failure: None,
        trace: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_leads_back_to_the_task_that_is_repeated() {
        let id = TaskId::from_raw(1_234_567);
        assert_eq!(repeated(Some(&key_of(id))), Some(id));
        for key in [None, Some("k"), Some("repeat-of:"), Some("repeat-of:nobody")] {
            assert_eq!(repeated(key), None, "{key:?}");
        }
    }
}
