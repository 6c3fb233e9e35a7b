//! Asks running work to end, with a reason.

use std::sync::{Arc, OnceLock};

use tokio::sync::Notify;

/// Why running work was asked to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CancelReason {
    /// A caller cancelled the task; the text is the caller's.
    Requested(String),
    /// The process is stopping and its drain deadline has passed.
    Shutdown,
    /// The worker could not renew its lease in time: the store may give the task to another worker.
    LeaseLost,
    /// The attempt's deadline has passed.
    Deadline,
}

impl std::fmt::Display for CancelReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Requested(reason) => write!(f, "cancelled: {reason}"),
            Self::Shutdown => f.write_str("the process is stopping"),
            Self::LeaseLost => f.write_str("the lease was lost"),
            Self::Deadline => f.write_str("the deadline has passed"),
        }
    }
}

/// A one-way switch with a reason. Cheap to clone; the first reason stays.
#[derive(Debug, Clone, Default)]
pub struct Cancellation {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    reason: OnceLock<CancelReason>,
    changed: Notify,
}

impl Cancellation {
    /// A switch that is not set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the switch. Returns whether this call was the first.
    pub fn cancel(&self, reason: CancelReason) -> bool {
        let first = self.inner.reason.set(reason).is_ok();
        if first {
            self.inner.changed.notify_waiters();
        }
        first
    }

    /// The reason, once set.
    pub fn reason(&self) -> Option<&CancelReason> {
        self.inner.reason.get()
    }

    /// Whether it is set.
    pub fn is_cancelled(&self) -> bool {
        self.reason().is_some()
    }

    /// Waits until it is set. Cancel safe.
    pub async fn cancelled(&self) -> &CancelReason {
        loop {
            // Subscribe before the check: otherwise a change in between would be missed.
            let mut changed = std::pin::pin!(self.inner.changed.notified());
            changed.as_mut().enable();
            if let Some(reason) = self.inner.reason.get() {
                return reason;
            }
            changed.await;
        }
    }
}
