//! Repeats a task that is done or cancelled, as a new task with the same content.
//!
//! An ended task never runs again (ONE-TERMINAL), so an operator who retries it gets a copy. The copy's
//! idempotency key names the repeated task. So each task is repeated once, however often the call is made,
//! and the key leads from the copy to the original. A caller that wants a third run repeats the second.

use std::time::Duration;

use crate::{
    error::{Error, Result},
    id::TaskId,
    state::State,
    task::{Key, NewTask, Start, TaskRecord},
};

/// Prefix of a copy's key.
const PREFIX: &str = "repeat-of:";

/// The key of the copy of this task.
pub fn key_of(id: TaskId) -> String {
    format!("{PREFIX}{id}")
}

/// The task that a task with this key repeats, if the key is one of a copy.
pub fn repeated(key: Option<&str>) -> Option<TaskId> {
    key?.strip_prefix(PREFIX)?.parse().ok()
}

/// A copy of a done or cancelled task, with its queue, job, workflow, priority, attempts and time limit. The
/// history does not keep the task's own retry delays, so the copy has the installation's.
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
    fn a_key_names_the_repeated_task() {
        let id = TaskId::from_raw(1_234_567);
        assert_eq!(repeated(Some(&key_of(id))), Some(id));
        for key in [None, Some("k"), Some("repeat-of:"), Some("repeat-of:nobody")] {
            assert_eq!(repeated(key), None, "{key:?}");
        }
    }
}
