//! The attempts that this worker holds: each from its claim until its settlement is acknowledged.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use windlass_core::{LeaseRef, Name, WorkerId};

use crate::{
    engine::log_line::about,
    handler::{cancel::CancelReason, context::Attempt},
};

/// The attempts that this process holds leases for.
#[derive(Default)]
pub(crate) struct InFlight {
    attempts: Mutex<BTreeMap<LeaseRef, Arc<Attempt>>>,
}

impl InFlight {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<LeaseRef, Arc<Attempt>>> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds attempts; returns those whose lease is new. If an older attempt of the same task still runs, it
    /// has lost its lease, or the store would not have given out another one: it is asked to end.
    pub(crate) fn insert_new(&self, attempts: Vec<Arc<Attempt>>) -> Vec<Arc<Attempt>> {
        let mut held = self.lock();
        let is_new = |attempt: &Arc<Attempt>| {
            let lease = attempt.lease();
            for (_, older) in held.range(LeaseRef { lease: 0, ..lease }..lease) {
                if !older.has_ended() && older.cancellation.cancel(CancelReason::LeaseLost) {
                    about!(warn, older, "lease lost: the task was claimed again");
                }
            }
            match held.entry(lease) {
                Entry::Vacant(place) => {
                    place.insert(Arc::clone(attempt));
                    true
                }
                Entry::Occupied(_) => {
                    about!(warn, attempt, "claimed again under a lease that is held");
                    false
                }
            }
        };
        attempts.into_iter().filter(is_new).collect()
    }

    /// Removes settled attempts, and returns them: payloads are freed outside of the lock.
    pub(crate) fn remove(&self, leases: impl Iterator<Item = LeaseRef>) -> Vec<Arc<Attempt>> {
        let mut attempts = self.lock();
        leases.filter_map(|lease| attempts.remove(&lease)).collect()
    }

    /// The job of each attempt that has one.
    pub(crate) fn jobs(&self) -> Vec<Name> {
        self.lock().values().filter_map(|attempt| attempt.claimed.job.clone()).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    /// The leases of one registration of this worker.
    pub(crate) fn leases_of(&self, worker: WorkerId) -> Vec<LeaseRef> {
        self.lock().values().filter(|attempt| attempt.claimed.worker == worker).map(|a| a.lease()).collect()
    }

    /// Asks one attempt to end.
    pub(crate) fn cancel(&self, lease: LeaseRef, reason: CancelReason) -> bool {
        let attempt = self.lock().get(&lease).cloned();
        attempt.is_some_and(|attempt| attempt.cancellation.cancel(reason))
    }

    /// Asks an attempt to end whose lease the store does not know. An ended attempt is no loss: its
    /// settlement is written, or will be refused.
    pub(crate) fn lose(&self, lease: LeaseRef) -> bool {
        let attempt = self.lock().get(&lease).cloned().filter(|attempt| !attempt.has_ended());
        attempt.is_some_and(|attempt| attempt.cancellation.cancel(CancelReason::LeaseLost))
    }

    /// Asks every attempt of a registration (or of all registrations) to end; returns how many there are.
    pub(crate) fn cancel_all(&self, worker: Option<WorkerId>, reason: &CancelReason) -> usize {
        let attempts: Vec<_> = self
            .lock()
            .values()
            .filter(|attempt| worker.is_none_or(|worker| attempt.claimed.worker == worker))
            .cloned()
            .collect();
        attempts.iter().filter(|attempt| attempt.cancellation.cancel(reason.clone())).count()
    }

    /// Attempts whose handlers have not ended.
    pub(crate) fn unended(&self) -> Vec<Arc<Attempt>> {
        self.lock().values().filter(|attempt| !attempt.has_ended()).cloned().collect()
    }
}
