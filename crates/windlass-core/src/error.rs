//! The one error type of every store: what failed, and what the caller may do about it.

use crate::id::TaskId;

/// The result of a store operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a store refused or failed.
///
/// [`Error::code`] is stable and appears in every interface; [`Error::is_retryable`] says whether the same
/// call may succeed later without a change.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// The store cannot be reached or is overloaded; nothing was changed. Try again later.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// The call was sent but its answer was lost: it may or may not have taken effect.
    #[error("the answer was lost, the call may have taken effect: {0}")]
    Unknown(String),
    /// The disk has too little room; enqueue is refused, claims and settlements go on.
    #[error("the store is full: {0}")]
    StoreFull(String),
    /// The input breaks a rule; the text names the field.
    #[error("{0}")]
    Invalid(String),
    /// There is no such task, queue or worker.
    #[error("{0} not found")]
    NotFound(String),
    /// The task is in a state in which this cannot be done.
    #[error("{0}")]
    Conflict(String),
    /// The idempotency key is taken by a task with another kind or payload.
    #[error("idempotency key {key:?} already belongs to task {existing} with another kind or payload")]
    KeyConflict {
        /// The key as given.
        key: String,
        /// The task that has it.
        existing: TaskId,
    },
    /// The caller no longer holds the lease that it named; nothing was changed.
    #[error("task {0} is no longer leased to this attempt")]
    LeaseLost(TaskId),
    /// The worker's registration has expired; it must hand back its tasks and register again.
    #[error("this worker's lease has expired")]
    WorkerExpired,
    /// This store, in this version, cannot do that.
    #[error("not supported: {0}")]
    Unsupported(String),
    /// The store is beyond use (a failed fsync, a corrupt file). The process must end.
    #[error("the store failed for good: {0}")]
    Fatal(String),
}

impl Error {
    /// A stable name of the cause, the same in every interface.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unavailable(_) => "unavailable",
            Self::Unknown(_) => "unknown_outcome",
            Self::StoreFull(_) => "store_full",
            Self::Invalid(_) => "invalid",
            Self::NotFound(_) => "not_found",
            Self::Conflict(_) => "conflict",
            Self::KeyConflict { .. } => "key_conflict",
            Self::LeaseLost(_) => "lease_lost",
            Self::WorkerExpired => "worker_expired",
            Self::Unsupported(_) => "unsupported",
            Self::Fatal(_) => "store_failed",
        }
    }

    /// Whether the same call may succeed later without any change by the caller.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::StoreFull(_))
    }

    /// Shorthand for [`Error::Invalid`].
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid(message.into())
    }
}
