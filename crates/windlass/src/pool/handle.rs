//! What a caller gets for a dispatched task: its result later, or the task back at once.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::sync::oneshot;

/// The result of a dispatched task. Dropping the handle lets the task continue.
#[must_use = "await it for the result, or drop it to let the task continue without you"]
pub struct Handle<T> {
    result: oneshot::Receiver<Result<T, JoinError>>,
}

impl<T> Handle<T> {
    pub(super) fn new(result: oneshot::Receiver<Result<T, JoinError>>) -> Self {
        Self { result }
    }
}

impl<T> Future for Handle<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.result).poll(cx).map(|received| received.unwrap_or(Err(JoinError::Aborted)))
    }
}

impl<T> fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handle")
    }
}

/// Why a task that was accepted has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JoinError {
    /// It panicked; the text is the panic's message. No other task was affected.
    #[error("the task panicked: {0}")]
    Panicked(String),
    /// It ran longer than its deadline and was ended.
    #[error("the task did not end within its deadline of {0:?}")]
    DeadlineExceeded(Duration),
    /// The pool was stopped or dropped before the task had ended (or started).
    #[error("the pool ended before the task did")]
    Aborted,
}

/// A task that was not accepted, given back with the reason.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Rejected<F> {
    /// Every slot is taken and the buffer is full: try later, or use
    /// [`dispatch_wait`](super::Pool::dispatch_wait).
    #[error("the pool is full: raise WORKER_BUFFER_SIZE or WORKER_POOL_SIZE, or dispatch less")]
    Full(F),
    /// The pool is stopping or has stopped and accepts no task.
    #[error("the pool is stopping and accepts nothing more")]
    Closed(F),
}

impl<F> Rejected<F> {
    /// The task.
    pub fn into_task(self) -> F {
        match self {
            Self::Full(task) | Self::Closed(task) => task,
        }
    }

    /// Whether the pool will never accept it.
    pub fn is_closed(&self) -> bool {
        matches!(self, Self::Closed(_))
    }
}

impl<F> fmt::Debug for Rejected<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the task: it may carry a payload, and futures cannot be printed anyway.
        f.write_str(match self {
            Self::Full(_) => "Full(..)",
            Self::Closed(_) => "Closed(..)",
        })
    }
}
