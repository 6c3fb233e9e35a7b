//! State that the parts of one worker share.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::{Notify, watch};
use windlass_core::{
    LeaseRef, NewWorker, Rules, Source, WorkerId, WorkerReport, store::SharedStore, worker::check_slots,
};

use super::{
    config::{Metrics, WorkerConfig},
    in_flight::InFlight,
    reach::Reach,
    status::{Counters, WorkerStatus},
    tally::Tally,
};
use crate::{
    admission::Controller, engine::settler::SettleQueue, handler::registry::Registry, pool::Pool,
    telemetry::Meters, worker::claim_times::ClaimTimes,
};

/// The progress of a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Claiming and running.
    Running,
    /// Not claiming; running the remaining tasks.
    Draining,
    /// Handing back what still runs.
    HandingBack,
    /// Over: the heartbeat may end.
    Stopped,
}

/// Claims of this worker. One lock for both: a number and whether it is in doubt belong together.
#[derive(Default)]
struct Claims {
    sent: u64,
    in_doubt: Option<(WorkerId, u64)>,
}

/// The shared state of a worker.
pub(crate) struct Shared {
    pub(crate) store: SharedStore,
    pub(crate) source: Arc<dyn Source>,
    pub(crate) rules: Rules,
    pub(crate) config: WorkerConfig,
    pub(crate) registry: Registry,
    pub(crate) pool: Pool,
    pub(crate) admission: Controller,
    pub(crate) in_flight: InFlight,
    pub(crate) settle_queue: SettleQueue,
    pub(crate) claim_times: ClaimTimes,
    ended_before_drain: OnceLock<(u64, u64)>,
    pub(crate) counters: Counters,
    pub(crate) tally: Tally,
    /// `None` if metrics are off.
    pub(crate) meters: Option<Arc<Meters>>,
    pub(crate) wake: Wake,
    pub(crate) reach: Reach,
    pub(crate) schedules_changed: Notify,
    pub(crate) phase: watch::Sender<Phase>,
    attempt_ended: Notify,
    registered: Notify,
    worker: AtomicI64,
    claims: Mutex<Claims>,
    started: Instant,
    ticked_ms: AtomicU64,
    renewed_ms: AtomicU64,
    /// Until when the lease is ours.
    lease_until: Mutex<Option<tokio::time::Instant>>,
    fatal: watch::Sender<Option<windlass_core::Error>>,
}

impl Shared {
    pub(crate) fn new(
        store: SharedStore,
        registry: Registry,
        config: WorkerConfig,
        pool: Pool,
        admission: Controller,
    ) -> Self {
        let meters = (config.metrics == Metrics::On).then(|| Arc::new(Meters::new(registry.kinds())));
        Self {
            admission,
            source: store.clone(),
            rules: store.rules().clone(),
            store,
            config,
            registry,
            pool,
            in_flight: InFlight::default(),
            settle_queue: SettleQueue::default(),
            claim_times: ClaimTimes::default(),
            ended_before_drain: OnceLock::new(),
            counters: Counters::default(),
            tally: Tally::default(),
            meters,
            wake: Wake::default(),
            reach: Reach::default(),
            schedules_changed: Notify::new(),
            phase: watch::Sender::new(Phase::Running),
            attempt_ended: Notify::new(),
            registered: Notify::new(),
            worker: AtomicI64::new(0),
            claims: Mutex::default(),
            started: Instant::now(),
            ticked_ms: AtomicU64::new(0),
            renewed_ms: AtomicU64::new(0),
            lease_until: Mutex::default(),
            fatal: watch::Sender::new(None),
        }
    }

    /// What this worker reports when it registers.
    pub(crate) fn introduction(&self) -> NewWorker {
        NewWorker {
            host: host_name(),
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            kinds: self.registry.kinds(),
            queues: self.config.queues.clone(),
            slots: self.slots(),
            lease_ttl: self.config.lease_ttl,
        }
    }

    /// The current registration; `None` between losing one and getting the next.
    pub(crate) fn worker(&self) -> Option<WorkerId> {
        match self.worker.load(Ordering::Acquire) {
            0 => None,
            id => Some(WorkerId(id)),
        }
    }

    pub(crate) fn set_worker(&self, worker: Option<WorkerId>) {
        self.worker.store(worker.map_or(0, |worker| worker.0), Ordering::Release);
        if worker.is_some() {
            self.tally.begin_anew();
            self.mark_renewed();
            self.registered.notify_waiters();
        }
    }

    fn claims(&self) -> MutexGuard<'_, Claims> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of the next claim; it is in doubt until [`Shared::claim_answered`].
    pub(crate) fn next_claim(&self, worker: WorkerId) -> u64 {
        let mut claims = self.claims();
        claims.sent += 1;
        claims.in_doubt = Some((worker, claims.sent));
        claims.sent
    }

    pub(crate) fn claim_answered(&self) {
        self.claims().in_doubt = None;
    }

    /// A claim without a known answer: the answer was lost, or the coordinator died while it waited.
    pub(crate) fn claim_in_doubt(&self) -> Option<(WorkerId, u64)> {
        self.claims().in_doubt
    }

    /// The number up to which every claim has been answered, with its tasks in `in_flight`.
    pub(crate) fn claims_answered(&self) -> u64 {
        let claims = self.claims();
        claims.in_doubt.map_or(claims.sent, |(_, claim_no)| claim_no - 1)
    }

    pub(crate) fn is_draining(&self) -> bool {
        *self.phase.borrow() != Phase::Running
    }

    /// Attempts that had ended, and that had been handed back, when the drain began.
    pub(crate) fn ended_before_drain(&self) -> (u64, u64) {
        self.ended_before_drain.get().copied().unwrap_or_default()
    }

    /// Moves the stop forward, never back.
    pub(crate) fn advance_phase(&self, to: Phase) {
        // Ends from here on count as ends of the drain, however late the report is read.
        self.ended_before_drain
            .get_or_init(|| (Counters::get(&self.counters.ended), Counters::get(&self.counters.handed_back)));
        self.phase.send_if_modified(|phase| {
            let forward = *phase < to;
            if forward {
                *phase = to;
            }
            forward
        });
    }

    pub(crate) async fn phase_reached(&self, at_least: Phase) {
        let mut phase = self.phase.subscribe();
        // The sender lives in `self`, so waiting cannot fail.
        let _ = phase.wait_for(|phase| *phase >= at_least).await;
    }

    /// The store failed permanently: everything stops.
    pub(crate) fn set_fatal(&self, error: windlass_core::Error) {
        self.fatal.send_if_modified(|fatal| {
            let first = fatal.is_none();
            if first {
                *fatal = Some(error);
            }
            first
        });
    }

    pub(crate) async fn failed_for_good(&self) -> windlass_core::Error {
        let mut fatal = self.fatal.subscribe();
        loop {
            // Clone at once: a guard of the channel must not be held across the wait.
            let failed = fatal.borrow_and_update().clone();
            if let Some(error) = failed {
                return error;
            }
            // The sender lives in `self`, so waiting cannot fail.
            let _ = fatal.changed().await;
        }
    }

    /// Waits until there is a registration. Cancel safe.
    pub(crate) async fn registered(&self) {
        loop {
            let mut registered = std::pin::pin!(self.registered.notified());
            registered.as_mut().enable();
            if self.worker().is_some() {
                return;
            }
            registered.await;
        }
    }

    /// How many slots there are now.
    pub(crate) fn slots(&self) -> u32 {
        u32::try_from(self.pool.size()).unwrap_or(u32::MAX)
    }

    /// Changes how many slots there are. Running tasks continue.
    pub(crate) fn set_slots(&self, slots: u32) {
        let before = self.slots();
        if before != slots && check_slots(slots).is_ok() {
            self.pool.resize(slots as usize);
            tracing::info!(before, slots, "the number of slots was changed");
        }
    }

    /// What every renewal reports to the store.
    pub(crate) fn report(&self) -> WorkerReport {
        let (status, running) = (self.admission.status(self.slots()), self.running());
        WorkerReport {
            available: if self.is_draining() { 0 } else { status.allowed.saturating_sub(running) },
            in_flight: self.in_flight.len() as u32,
            draining: self.is_draining(),
            memory_usage: status.memory_usage.unwrap_or(0.0),
            factor: status.factor,
            reason: status.reasons.to_string(),
            counts: self.tally.read(),
        }
    }

    /// Handlers that run.
    pub(crate) fn running(&self) -> u32 {
        self.pool.gauges().running as u32
    }

    /// An attempt has ended; wakes callers that wait for the last one.
    pub(crate) fn note_end(&self) {
        if self.is_draining() {
            self.attempt_ended.notify_waiters();
        }
    }

    /// Waits until every attempt has ended. Cancel safe.
    pub(crate) async fn all_ended(&self) {
        loop {
            let mut ended = std::pin::pin!(self.attempt_ended.notified());
            ended.as_mut().enable();
            if self.in_flight.unended().is_empty() {
                return;
            }
            ended.await;
        }
    }

    fn elapsed_ms(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }

    pub(crate) fn tick(&self) {
        self.ticked_ms.store(self.elapsed_ms(), Ordering::Relaxed);
    }

    /// The lease is ours until `until`, as far as we know.
    pub(crate) fn set_lease_until(&self, until: tokio::time::Instant) {
        *self.lease_until.lock().unwrap_or_else(PoisonError::into_inner) = Some(until);
    }

    /// Whether the lease is still ours. It may have expired before the heartbeat could notice, for example
    /// after the process was stopped.
    pub(crate) fn holds_lease(&self) -> bool {
        let until = *self.lease_until.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_none_or(|until| tokio::time::Instant::now() < until)
    }

    /// Ends attempts whose leases the store does not know. Their settlements are refused, counted and logged
    /// one by one.
    pub(crate) fn lost(&self, leases: &[LeaseRef]) {
        let cancelled = leases.iter().filter(|lease| self.in_flight.lose(**lease)).count();
        if cancelled > 0 {
            tracing::error!(
                tasks = cancelled,
                "lease lost: the store gives these tasks to no attempt here; handlers cancelled"
            );
        }
    }

    pub(crate) fn mark_renewed(&self) {
        self.renewed_ms.store(self.elapsed_ms(), Ordering::Relaxed);
    }

    pub(crate) fn status(&self) -> WorkerStatus {
        let ago = |at: &AtomicU64| {
            Duration::from_millis(self.elapsed_ms().saturating_sub(at.load(Ordering::Relaxed)))
        };
        let counters = &self.counters;
        let admission = self.admission.status(self.slots());
        WorkerStatus {
            worker: self.worker().unwrap_or(WorkerId(0)),
            slots: self.slots(),
            allowed: admission.allowed,
            factor: admission.factor,
            reasons: admission.reasons,
            memory_usage: admission.memory_usage,
            running: self.running(),
            in_flight: self.in_flight.len() as u32,
            unsettled: self.settle_queue.unsettled() as u32,
            draining: self.is_draining(),
            ticked_ago: ago(&self.ticked_ms),
            renewed_ago: ago(&self.renewed_ms),
            claims: Counters::get(&counters.claims),
            claims_empty: Counters::get(&counters.claims_empty),
            claims_failed: Counters::get(&counters.claims_failed),
            claimed: Counters::get(&counters.claimed),
            ended: Counters::get(&counters.ended),
            succeeded: Counters::get(&counters.succeeded),
            panicked: Counters::get(&counters.panicked),
            timed_out: Counters::get(&counters.timed_out),
            settled: Counters::get(&counters.settled),
            lease_losses: Counters::get(&counters.lease_losses),
            handed_back: Counters::get(&counters.handed_back),
            reconciled: Counters::get(&counters.reconciled),
            self_fences: Counters::get(&counters.self_fences),
            coordinator_deaths: Counters::get(&counters.coordinator_deaths),
            ticks_fired: Counters::get(&counters.ticks_fired),
            ticks_left_out: Counters::get(&counters.ticks_left_out),
        }
    }
}

/// Wake-ups of the coordinator, coalesced: any number of them leads to one round.
#[derive(Default)]
pub(crate) struct Wake {
    work: Notify,
    lanes_changed: AtomicBool,
    next_due_ms: Mutex<Option<i64>>,
}

impl Wake {
    /// There may be new work.
    pub(crate) fn work(&self) {
        self.work.notify_one();
    }

    /// There may be new lanes, and with them new work.
    pub(crate) fn lanes(&self) {
        self.lanes_changed.store(true, Ordering::Release);
        self.work();
    }

    /// A task becomes due at this time of the store's clock.
    pub(crate) fn due(&self, at_ms: i64) {
        let mut next = self.next_due_ms.lock().unwrap_or_else(PoisonError::into_inner);
        if next.is_none_or(|known| at_ms < known) {
            *next = Some(at_ms);
            drop(next);
            self.work();
        }
    }

    pub(crate) fn take_due(&self) -> Option<i64> {
        self.next_due_ms.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn take_lanes_changed(&self) -> bool {
        self.lanes_changed.swap(false, Ordering::AcqRel)
    }

    pub(crate) async fn woken(&self) {
        self.work.notified().await;
    }
}

/// The host's name, for display only.
fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map(|name| name.trim().to_owned())
        .ok()
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "unknown".to_owned())
}
