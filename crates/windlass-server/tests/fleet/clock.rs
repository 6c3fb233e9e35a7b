//! The time of the simulation, for the store behind the servers and for the judge.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use windlass_core::{Clock, Timestamp};

/// When simulations begin. The date has no meaning.
const BEGIN_MS: i64 = 1_800_000_000_000;

/// A clock that the simulation sets at each step.
#[derive(Debug, Default)]
pub struct SimulatedClock(AtomicU64);

impl SimulatedClock {
    /// Sets it.
    pub fn set(&self, elapsed: Duration) {
        self.0.store(elapsed.as_millis().try_into().unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Milliseconds since the begin.
    pub fn elapsed_ms(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Clock for SimulatedClock {
    fn wall(&self) -> Timestamp {
        Timestamp::from_ms(BEGIN_MS + i64::try_from(self.elapsed_ms()).unwrap_or(0))
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.elapsed_ms())
    }
}
