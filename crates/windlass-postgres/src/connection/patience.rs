//! How long a connection waits for its server.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// How long a statement may take before its connection is closed. Nothing else notices a peer that has become
/// silent.
#[derive(Debug)]
pub(crate) struct Patience(AtomicU64);

impl Patience {
    pub(crate) fn new(limit: Duration) -> Self {
        Self(AtomicU64::new(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)))
    }

    /// Lowers the limit, from now on.
    pub(crate) fn lower(&self, limit: Duration) {
        let limit = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        self.0.fetch_min(limit.max(1), Ordering::Relaxed);
    }

    pub(crate) fn limit(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
    }
}
