//! Which workers have a live lease, and until when.
//!
//! This state is kept beside the writer: a renewal is answered at once even while a commit waits for a slow
//! disk. So a slow write never costs a live worker its lease (NO-FALSE-DEATH). Deadlines count in monotonic
//! time (CLOCK-FREE). Nothing is stored, because the workers of a process end with it. A remote worker gets a
//! whole lease time from the next start: while no worker can renew, no worker counts as dead.

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use windlass_core::{
    Clock, Error, LeaseRef, NewWorker, Result, Timestamp, WorkerId, WorkerRecord, WorkerReport, epoch::Epoch,
    source::Renewed,
};

use crate::memory::id_map::IdMap;

/// How long after its deadline a worker's tasks are taken: tolerance for clocks that tick differently.
pub(crate) const GRACE: Duration = Duration::from_secs(1);

/// One worker's lease.
#[derive(Debug)]
struct Lease {
    deadline: Duration,
    worker: NewWorker,
    registered_at: Timestamp,
    renewed_at: Timestamp,
    report: WorkerReport,
    cancels: Vec<(LeaseRef, String)>,
}

/// Every lease that has not been ended.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    leases: Mutex<IdMap<WorkerId, Lease>>,
    /// The epoch that renewals return.
    epoch: AtomicU32,
}

impl Leases {
    /// Starts a lease.
    pub(crate) fn start(&self, id: WorkerId, worker: NewWorker, clock: &dyn Clock) {
        let now = clock.wall();
        self.go_on(id, worker, (now, now), clock);
    }

    /// Starts the lease of a worker that registered and last renewed before this process started.
    pub(crate) fn go_on(
        &self,
        id: WorkerId,
        worker: NewWorker,
        (registered_at, renewed_at): (Timestamp, Timestamp),
        clock: &dyn Clock,
    ) {
        let report = WorkerReport::of_new(worker.slots);
        let deadline = clock.monotonic() + worker.lease_ttl;
        let lease = Lease { deadline, worker, registered_at, renewed_at, report, cancels: Vec::new() };
        self.lock().insert(id, lease);
    }

    /// Prolongs a lease that has not expired.
    pub(crate) fn renew(&self, id: WorkerId, report: WorkerReport, clock: &dyn Clock) -> Result<Renewed> {
        let now = clock.monotonic();
        let mut leases = self.lock();
        let lease = leases.get_mut(&id).filter(|lease| now < lease.deadline).ok_or(Error::WorkerExpired)?;
        lease.deadline = now + lease.worker.lease_ttl;
        lease.renewed_at = clock.wall();
        lease.report = report;
        Ok(Renewed {
            cancels: lease.cancels.clone(),
            slots: Some(lease.worker.slots),
            epoch: Some(self.epoch.load(Ordering::Relaxed)),
        })
    }

    /// Sets the epoch that renewals return.
    pub(crate) fn set_epoch(&self, epoch: Epoch) {
        self.epoch.store(epoch.0, Ordering::Relaxed);
    }

    /// Whether a lease has not expired.
    pub(crate) fn is_live(&self, id: WorkerId, now: Duration) -> bool {
        self.lock().get(&id).is_some_and(|lease| now < lease.deadline)
    }

    /// Leases that expired at least [`GRACE`] ago, the lowest id first.
    pub(crate) fn expired(&self, now: Duration) -> Vec<WorkerId> {
        let mut expired: Vec<_> = self
            .lock()
            .iter()
            .filter(|(_, lease)| now >= lease.deadline.saturating_add(GRACE))
            .map(|(id, _)| *id)
            .collect();
        expired.sort_unstable();
        expired
    }

    /// When the worker last renewed, and its report then.
    pub(crate) fn last_report(&self, id: WorkerId) -> Option<(Timestamp, WorkerReport)> {
        self.lock().get(&id).map(|lease| (lease.renewed_at, lease.report.clone()))
    }

    /// Sets the slots that the worker's next renewal returns.
    pub(crate) fn set_slots(&self, id: WorkerId, slots: u32) {
        if let Some(lease) = self.lock().get_mut(&id) {
            lease.worker.slots = slots;
        }
    }

    /// Ends a lease.
    pub(crate) fn end(&self, id: WorkerId) {
        self.lock().remove(&id);
    }

    /// Sets a cancellation that the worker's next renewal returns.
    pub(crate) fn ask_cancel(&self, id: WorkerId, attempt: LeaseRef, reason: &str) {
        if let Some(lease) = self.lock().get_mut(&id)
            && lease.cancels.iter().all(|(known, _)| *known != attempt)
        {
            lease.cancels.push((attempt, reason.to_owned()));
        }
    }

    /// The attempt has ended: drops its cancellation.
    pub(crate) fn cancel_over(&self, id: WorkerId, attempt: LeaseRef) {
        if let Some(lease) = self.lock().get_mut(&id) {
            lease.cancels.retain(|(known, _)| *known != attempt);
        }
    }

    /// Every worker whose lease has not been ended.
    pub(crate) fn records(&self, now: Duration) -> Vec<WorkerRecord> {
        self.lock()
            .iter()
            .map(|(id, lease)| WorkerRecord {
                id: *id,
                host: lease.worker.host.clone(),
                pid: lease.worker.pid,
                version: lease.worker.version.clone(),
                kinds: lease.worker.kinds.clone(),
                queues: lease.worker.queues.clone(),
                slots: lease.worker.slots,
                in_flight: lease.report.in_flight,
                available: lease.report.available,
                draining: lease.report.draining,
                memory_usage: lease.report.memory_usage,
                factor: lease.report.factor,
                reason: lease.report.reason.clone(),
                counts: lease.report.counts.clone(),
                live: now < lease.deadline,
                ended: false,
                registered_at: lease.registered_at,
                renewed_at: lease.renewed_at,
            })
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, IdMap<WorkerId, Lease>> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
