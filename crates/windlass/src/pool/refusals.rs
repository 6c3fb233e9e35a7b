//! Tasks refused because of a full buffer: each is counted, few are logged.

use std::time::Duration;

use tokio::time::Instant;

/// Shortest time between two log lines about refusals.
const LOG_EVERY: Duration = Duration::from_secs(1);

/// Counts refusals and decides when a log line is due.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    total: u64,
    unlogged: u64,
    logged_at: Option<Instant>,
}

impl Refusals {
    /// Counts one. Returns the number since the last line if a line is due now.
    pub(super) fn count(&mut self, now: Instant) -> Option<u64> {
        self.total += 1;
        self.unlogged += 1;
        if self.logged_at.is_some_and(|logged| now.duration_since(logged) < LOG_EVERY) {
            return None;
        }
        self.logged_at = Some(now);
        Some(std::mem::take(&mut self.unlogged))
    }

    pub(super) fn total(&self) -> u64 {
        self.total
    }
}

/// Writes the line, without any lock: a subscriber may be slow.
pub(super) fn log(refused: u64, size: usize, buffer: usize) {
    tracing::warn!(
        refused,
        size,
        buffer,
        "the pool's buffer is full and tasks were refused: raise WORKER_BUFFER_SIZE or WORKER_POOL_SIZE, or dispatch less"
    );
}
