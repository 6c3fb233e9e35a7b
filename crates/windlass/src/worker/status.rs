//! What a worker reports while it runs and when it stops.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use windlass_core::{WorkerId, admission::Reasons};

use crate::engine::log_line::Quotas;

/// Counters of everything that happens, also of failures (SILENT-NEVER).
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) claims: AtomicU64,
    pub(crate) claims_empty: AtomicU64,
    pub(crate) claims_failed: AtomicU64,
    pub(crate) claimed: AtomicU64,
    pub(crate) ended: AtomicU64,
    pub(crate) succeeded: AtomicU64,
    pub(crate) panicked: AtomicU64,
    pub(crate) timed_out: AtomicU64,
    pub(crate) settled: AtomicU64,
    pub(crate) settle_batches: AtomicU64,
    pub(crate) settle_failures: AtomicU64,
    pub(crate) lease_losses: AtomicU64,
    pub(crate) handed_back: AtomicU64,
    pub(crate) reconciled: AtomicU64,
    pub(crate) renewals: AtomicU64,
    pub(crate) renewals_failed: AtomicU64,
    pub(crate) self_fences: AtomicU64,
    pub(crate) coordinator_deaths: AtomicU64,
    pub(crate) duty_failures: AtomicU64,
    pub(crate) ticks_fired: AtomicU64,
    pub(crate) ticks_left_out: AtomicU64,
    pub(crate) lines: Quotas,
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }

    pub(crate) fn get(counter: &AtomicU64) -> u64 {
        counter.load(Ordering::Relaxed)
    }
}

/// A reading of a running worker.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkerStatus {
    /// Its registration.
    pub worker: WorkerId,
    /// How many tasks may run at once at most.
    pub slots: u32,
    /// How many may run now, after admission control.
    pub allowed: u32,
    /// The allowed share of the slots.
    pub factor: f64,
    /// Why it is not all of the slots.
    pub reasons: Reasons,
    /// Used memory as a share of the limit that applies; `None` if it cannot be read.
    pub memory_usage: Option<f64>,
    /// How many handlers run.
    pub running: u32,
    /// Attempts that it holds leases for: running, or ended and not yet settled.
    pub in_flight: u32,
    /// Ended attempts whose settlement is not yet acknowledged.
    pub unsettled: u32,
    /// Whether it has stopped claiming.
    pub draining: bool,
    /// How long ago the coordinator last completed a round.
    pub ticked_ago: Duration,
    /// How long ago the store last answered a renewal.
    pub renewed_ago: Duration,
    /// Claims sent.
    pub claims: u64,
    /// Claims that brought nothing.
    pub claims_empty: u64,
    /// Claims that failed.
    pub claims_failed: u64,
    /// Tasks claimed.
    pub claimed: u64,
    /// Handlers that have ended.
    pub ended: u64,
    /// Handlers that ended in success.
    pub succeeded: u64,
    /// Handlers that panicked.
    pub panicked: u64,
    /// Handlers that reached their deadline.
    pub timed_out: u64,
    /// Settlements acknowledged.
    pub settled: u64,
    /// Settlements refused because the lease was lost.
    pub lease_losses: u64,
    /// Tasks handed back.
    pub handed_back: u64,
    /// Tasks that the store recorded for this worker and that it did not have.
    pub reconciled: u64,
    /// Times that this worker gave up its leases because it could not renew them.
    pub self_fences: u64,
    /// Deaths of the coordinator.
    pub coordinator_deaths: u64,
    /// Ticks of schedules that it fired.
    pub ticks_fired: u64,
    /// Ticks of schedules that it dropped: missed, or unreadable.
    pub ticks_left_out: u64,
}

/// How the tasks ended that ran when the worker was told to stop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DrainReport {
    /// Ended on their own while draining.
    pub finished: u64,
    /// Handed back without spending an attempt.
    pub handed_back: u64,
    /// Handed back although their handlers could not be stopped and may still run in this process.
    pub aborted: u64,
}

impl fmt::Display for DrainReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} finished, {} handed back, {} aborted", self.finished, self.handed_back, self.aborted)
    }
}

/// Why a worker ended without being stopped.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// It could not start.
    #[error("the worker could not register: {0}")]
    Register(#[source] windlass_core::Error),
    /// The coordinator died too often; the claimed tasks have been handed back.
    #[error("the coordinator died {deaths} times within a minute, last: {last}")]
    CoordinatorDied {
        /// How often.
        deaths: usize,
        /// The last cause.
        last: String,
    },
    /// The store has failed permanently.
    #[error(transparent)]
    Store(windlass_core::Error),
}
