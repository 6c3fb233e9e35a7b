//! A task as an application writes it: a payload type with a kind.

use std::time::Duration;

use serde::{Serialize, de::DeserializeOwned};
use windlass_core::Result;
#[doc(inline)]
pub use windlass_core::{
    Encoding, Enqueued, LaneId, Name, NewTask, Output, Payload, RetryPolicy, Start, State as TaskState,
    TaskId, TaskRecord, WorkerId,
    id::ParseTaskIdError,
    name::NAME_MAX_BYTES,
    payload::JSON_MAX_DEPTH,
    task::{
        ATTEMPT_RECORDS_MAX, AttemptRecord, AttemptResult, Claimed, DEFAULT_QUEUE, KEY_MAX_BYTES, Key, Lane,
        MAX_ATTEMPTS_LIMIT,
    },
};

/// A payload with the kind, queue, retries and time limit of its tasks.
///
/// Derive it; each setting can still be overridden per task when it is enqueued.
///
/// ```
/// use std::time::Duration;
/// use windlass::Task;
///
/// #[derive(serde::Serialize, serde::Deserialize, Task)]
/// #[task(queue = "mail", max_attempts = 5, timeout = "30s", retry_base = "10s")]
/// struct SendEmail {
///     to: String,
/// }
///
/// assert_eq!(SendEmail::KIND, "send_email");
/// assert_eq!(SendEmail::QUEUE, "mail");
/// assert_eq!(SendEmail::TIMEOUT, Some(Duration::from_secs(30)));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a Windlass task",
    label = "this payload has no kind",
    note = "add `#[derive(serde::Serialize, serde::Deserialize, windlass::Task)]` to `{Self}`"
)]
pub trait Task: Serialize + DeserializeOwned + Send + 'static {
    /// The kind, which selects the handler. Stored with every task: after a rename no handler serves the
    /// waiting tasks.
    const KIND: &'static str;
    /// The queue of the task.
    const QUEUE: &'static str = DEFAULT_QUEUE;
    /// Attempts granted; `None` means the store's default.
    const MAX_ATTEMPTS: Option<u32> = None;
    /// How long one attempt may take; `None` means no limit.
    const TIMEOUT: Option<Duration> = None;
    /// The priority: higher first.
    const PRIORITY: i32 = 0;

    /// Delays between attempts; `None` means the store's default.
    fn retry() -> Option<RetryPolicy> {
        None
    }

    /// The task in the form that a store takes.
    ///
    /// # Errors
    /// [`windlass_core::Error::Invalid`] if a name is not valid or the payload has no JSON form.
    fn new_task(&self) -> Result<NewTask> {
        let mut task = NewTask::new(Self::KIND, Payload::json(self)?)?;
        task.queue = Name::new("queue", Self::QUEUE)?;
        task.max_attempts = Self::MAX_ATTEMPTS;
        task.timeout = Self::TIMEOUT;
        task.priority = Self::PRIORITY;
        task.retry = Self::retry();
        Ok(task)
    }
}
