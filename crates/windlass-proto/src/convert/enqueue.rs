//! Tasks to enqueue.

use std::time::Duration;

use windlass_core::{
    Enqueued, Error, Name, NewTask, Payload, Start, Timestamp, TraceContext,
    task::{DEFAULT_QUEUE, Key},
};

use super::{ms, some_name, task_id, text};
use crate::v1::{self, new_task};

/// A payload of a caller: JSON is checked, a missing one becomes an empty object.
///
/// # Errors
/// [`Error::Invalid`] if it is marked as JSON and is not.
pub fn checked_payload(payload: Option<v1::Payload>) -> Result<Payload, Error> {
    match payload {
        None => Payload::json_text(*b"{}"),
        Some(payload) => match payload.encoding() {
            v1::Encoding::Json => Payload::json_text(payload.data),
            v1::Encoding::Bytes => Ok(Payload::bytes(payload.data)),
        },
    }
}

impl TryFrom<v1::NewTask> for NewTask {
    type Error = Error;

    fn try_from(task: v1::NewTask) -> Result<Self, Error> {
        let on_failure = task.on_failure().known();
        let queue = if task.queue.is_empty() { DEFAULT_QUEUE } else { task.queue.as_str() };
        Ok(Self {
            kind: Name::new("kind", &task.kind)?,
            queue: Name::new("queue", queue)?,
            payload: checked_payload(task.payload)?,
            priority: task.priority,
            start: match task.start {
                None => Start::Now,
                Some(new_task::Start::DelayMs(delay)) => Start::In(Duration::from_millis(delay)),
                Some(new_task::Start::RunAtMs(at)) => Start::At(Timestamp::from_ms(at)),
            },
            key: task.key.map(|text| Key { text, ignore_conflict: task.ignore_key_conflict }),
            max_attempts: task.max_attempts,
            retry: task.retry.map(Into::into),
            timeout: task.timeout_ms.map(Duration::from_millis),
            job: some_name("job", &task.job)?,
            job_concurrency: task.job_concurrency,
            workflow: some_name("workflow", &task.workflow)?,
            on_failure,
            // The standard says that an unreadable context counts as none.
            trace: TraceContext::from_stored(Some(&task.traceparent)),
        })
    }
}

impl From<NewTask> for v1::NewTask {
    fn from(task: NewTask) -> Self {
        let (key, ignore_key_conflict) =
            task.key.map_or((None, false), |key| (Some(key.text), key.ignore_conflict));
        Self {
            kind: task.kind.to_string(),
            queue: task.queue.to_string(),
            payload: Some(task.payload.into()),
            priority: task.priority,
            start: match task.start {
                Start::Now => None,
                Start::In(delay) => Some(new_task::Start::DelayMs(ms(delay))),
                Start::At(at) => Some(new_task::Start::RunAtMs(at.as_ms())),
            },
            key,
            ignore_key_conflict,
            max_attempts: task.max_attempts,
            retry: task.retry.map(Into::into),
            timeout_ms: task.timeout.map(ms),
            job: text(task.job.as_ref()),
            job_concurrency: task.job_concurrency,
            workflow: text(task.workflow.as_ref()),
            on_failure: v1::OnFailure::from(task.on_failure).into(),
            traceparent: task.trace.map(|trace| trace.to_string()).unwrap_or_default(),
        }
    }
}

impl From<Enqueued> for v1::EnqueuedTask {
    fn from(enqueued: Enqueued) -> Self {
        Self { task_id: enqueued.id.to_string(), existing: enqueued.existing, cancelled: enqueued.cancelled }
    }
}

impl TryFrom<v1::EnqueuedTask> for Enqueued {
    type Error = Error;

    fn try_from(task: v1::EnqueuedTask) -> Result<Self, Error> {
        Ok(Self { id: task_id(&task.task_id)?, existing: task.existing, cancelled: task.cancelled })
    }
}
