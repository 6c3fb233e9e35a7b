//! What this worker has done since it registered, by queue. Every renewal carries it to the store.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use windlass_core::{SettleBatch, Settled, WorkerCounts};

use crate::handler::context::Attempt;

/// The counts of a registration.
#[derive(Debug, Default)]
pub(crate) struct Tally(Mutex<WorkerCounts>);

impl Tally {
    fn lock(&self) -> MutexGuard<'_, WorkerCounts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The counts now.
    pub(crate) fn read(&self) -> WorkerCounts {
        self.lock().clone()
    }

    /// A new registration begins at zero: readers add up the counts of all registrations.
    pub(crate) fn begin_anew(&self) {
        *self.lock() = WorkerCounts::default();
    }

    /// Counts claimed attempts.
    pub(crate) fn started(&self, attempts: &[Arc<Attempt>]) {
        let mut counts = self.lock();
        for attempt in attempts {
            counts.of(&attempt.claimed.lane.queue).started += 1;
        }
    }

    /// Counts the ends that the store has written. `attempts` are in the order of the batch; those that a stop has
    /// given up are missing.
    pub(crate) fn settled(&self, batch: &SettleBatch, settled: &Settled, attempts: &[Arc<Attempt>]) {
        let mut counts = self.lock();
        let mut items = batch.items.iter();
        for attempt in attempts {
            let Some(item) = items.by_ref().find(|item| item.lease == attempt.lease()) else { return };
            if settled.fenced.is_empty() || !settled.fenced.contains(&item.lease.id) {
                let took_ms = attempt.age().as_millis() as u64;
                counts.of(&attempt.claimed.lane.queue).ended(&item.settlement, took_ms);
            }
        }
    }
}
