//! A worker: registers with a store, claims tasks into its slots, runs their handlers, settles their ends,
//! and stops without losing one.

pub(crate) mod builder;
pub(crate) mod claim_times;
pub(crate) mod config;
pub(crate) mod in_flight;
pub(crate) mod lanes;
pub(crate) mod reach;
pub(crate) mod shared;
pub(crate) mod status;
pub(crate) mod tally;

use std::{pin::Pin, sync::Arc, time::Duration};

use tokio::time::Instant;
use windlass_core::{Error, Outcome, Result, WorkerId, store::SharedStore};

pub use self::{
    builder::WorkerBuilder,
    claim_times::ClaimTimes,
    config::{CLAIM_MAX, ClaimBatch, Metrics, SLOTS_MAX, WorkerConfig},
    status::{DrainReport, WorkerError, WorkerStatus},
};
use self::{
    shared::{Phase, Shared},
    status::Counters,
};
use crate::{
    admission::{self, Controller},
    engine::{self, executor, heartbeat},
    handler::{cancel::CancelReason, registry::Registry},
    inside::{backoff::Waiting, home::Part},
    lifecycle::shutdown::Shutdown,
    pool::Pool,
};

/// How long cancelled handlers may take to end at a stop before their tasks are handed back without waiting
/// for them.
const ABORT_GRACE: Duration = Duration::from_secs(1);
/// How long a stop waits for the last settlements to be written.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(10);

/// A worker that is ready to run.
pub struct Worker {
    shared: Arc<Shared>,
}

/// A cheap handle on a running worker.
#[derive(Clone)]
pub struct WorkerHandle {
    shared: Arc<Shared>,
}

impl Worker {
    /// Starts to build a worker on a store.
    pub fn builder(store: SharedStore) -> WorkerBuilder {
        WorkerBuilder::new(store)
    }

    /// A worker with these handlers and settings.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a setting is out of bounds or there is no handler.
    pub fn new(store: SharedStore, registry: Registry, config: WorkerConfig) -> Result<Self> {
        config.check()?;
        let controller = Controller::new(config.admission.clone())?;
        Self::with_controller(store, registry, config, controller)
    }

    /// The same with a controller that other workers and pools of this process share. The controller's own
    /// settings count, not those of `config`.
    ///
    /// # Errors
    /// As [`Worker::new`].
    pub fn with_controller(
        store: SharedStore,
        registry: Registry,
        config: WorkerConfig,
        controller: Controller,
    ) -> Result<Self> {
        config.check()?;
        if registry.kinds().is_empty() {
            return Err(Error::invalid("a worker needs at least one handler"));
        }
        let pool = Pool::builder()
            .size(config.slots as usize)
            .buffer(1)
            .admission(controller.clone())
            .build()
            .map_err(|error| Error::invalid(error.to_string()))?;
        controller.watch(&registry.kinds());
        Ok(Self { shared: Arc::new(Shared::new(store, registry, config, pool, controller)) })
    }

    /// A handle to observe and stop the worker.
    pub fn handle(&self) -> WorkerHandle {
        WorkerHandle { shared: self.shared.clone() }
    }

    /// Runs until `shutdown` resolves, then drains: stops claiming, waits for running tasks, hands back the
    /// rest.
    ///
    /// Not cancel safe in the usual sense: if the future is dropped the worker stops at once, and the store
    /// takes its tasks back when its lease has expired.
    ///
    /// Waits for a store that cannot be reached, even before the first registration.
    ///
    /// # Errors
    /// If the store refuses to register the worker, its coordinator keeps dying, or the store fails
    /// permanently. The running tasks have then been handed back, if the store could still be reached.
    pub async fn run(self, shutdown: impl Shutdown) -> std::result::Result<DrainReport, WorkerError> {
        let shared = self.shared;
        let _stop = StopThreads(shared.clone());
        let mut shutdown = Box::pin(shutdown);
        let Some((worker, valid_until)) = register(&shared, shutdown.as_mut()).await? else {
            return Ok(DrainReport::default());
        };
        shared.set_worker(Some(worker));
        shared.tick();
        let heartbeat = heartbeat::spawn(shared.clone(), valid_until).map_err(|error| no_thread(&error))?;
        tracing::info!(%worker, slots = shared.slots(), kinds = ?shared.registry.kinds(), "worker started");

        let sampler = admission::spawn(shared.clone()).map_err(|error| no_thread(&error))?;
        let mut engine = engine::spawn(&shared).map_err(|error| no_thread(&error))?;

        let failure = tokio::select! {
            () = shutdown.as_mut().drain() => None,
            () = shared.phase_reached(Phase::Draining) => None,
            ended = engine.claiming_ended() => ended.err(),
            error = shared.failed_for_good() => Some(WorkerError::Store(error)),
        };
        let report = if matches!(failure, Some(WorkerError::Store(_))) {
            // A store that failed permanently takes nothing back; its next start recovers the running tasks.
            abandon(&shared)
        } else {
            tokio::select! {
                // After a failure do not wait for running tasks: hand them back at once.
                report = drain(&shared, shutdown, failure.is_some()) => report,
                error = shared.failed_for_good() => {
                    finish(&shared, [engine.part, heartbeat, sampler]).await;
                    return Err(WorkerError::Store(error));
                }
            }
        };
        if engine.is_claiming() {
            let _ = tokio::time::timeout(ABORT_GRACE, engine.claiming_ended()).await;
        }
        if !matches!(failure, Some(WorkerError::Store(_))) {
            sign_off(&shared).await;
        }
        finish(&shared, [engine.part, heartbeat, sampler]).await;
        match failure {
            None => {
                tracing::info!(%report, "worker stopped");
                Ok(report)
            }
            Some(error) => {
                tracing::error!(%error, %report, "worker failed");
                Err(error)
            }
        }
    }
}

/// Registers, and retries while the store cannot be reached; returns nothing if the worker is told to stop
/// meanwhile. Also returns until when the lease is ours: it may count from the moment of the request.
async fn register(
    shared: &Shared,
    mut shutdown: Pin<&mut impl Shutdown>,
) -> std::result::Result<Option<(WorkerId, Instant)>, WorkerError> {
    let mut waiting = Waiting::new(shared.config.home.seed());
    loop {
        let valid_until = Instant::now() + shared.config.lease_ttl;
        let error = match shared.source.register(shared.introduction()).await {
            Ok(worker) if Instant::now() < valid_until => return Ok(Some((worker, valid_until))),
            Ok(_) => {
                Error::Unavailable("the answer to a registration came after its lease was over".to_owned())
            }
            Err(error @ (Error::Unavailable(_) | Error::Unknown(_))) => error,
            Err(error) => return Err(WorkerError::Register(error)),
        };
        // Do not abort a running registration: its answer may name a worker that would then stay registered
        // without a process.
        tokio::select! {
            () = waiting.pause(&error, "the worker could not register yet; trying again until it can") => {}
            () = shutdown.as_mut().drain() => return Ok(None),
            () = shared.phase_reached(Phase::Draining) => return Ok(None),
        }
    }
}

/// Ends the threads of a worker even when its future is dropped: no other code would stop them.
struct StopThreads(Arc<Shared>);

impl Drop for StopThreads {
    fn drop(&mut self) {
        self.0.advance_phase(Phase::Stopped);
        self.0.in_flight.cancel_all(None, &CancelReason::LeaseLost);
    }
}

/// Ends every handler without writing anything.
fn abandon(shared: &Shared) -> DrainReport {
    shared.advance_phase(Phase::HandingBack);
    let aborted = shared.in_flight.cancel_all(None, &CancelReason::LeaseLost) as u64;
    DrainReport { aborted, ..DrainReport::default() }
}

/// Ends the registration, so that the store need not wait until the lease expires.
async fn sign_off(shared: &Shared) {
    let Some(worker) = shared.worker() else { return };
    match tokio::time::timeout(FLUSH_TIMEOUT, shared.source.retire(worker)).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => {
            tracing::warn!(%error, "could not end the registration; the lease expires on its own");
        }
        Err(_) => tracing::warn!("could not end the registration in time; the lease expires on its own"),
    }
}

/// Waits for running tasks, until the deadline or a second signal; then hands back the rest (DRAIN).
async fn drain<S: Shutdown>(
    shared: &Arc<Shared>,
    mut shutdown: std::pin::Pin<Box<S>>,
    hand_back_now: bool,
) -> DrainReport {
    shared.advance_phase(Phase::Draining);
    let (ended, handed_back) = shared.ended_before_drain();
    if !hand_back_now {
        let deadline = Instant::now() + shared.config.drain_timeout;
        tokio::select! {
            () = shared.all_ended() => {}
            never = shared.pool.keep_starting() => match never {},
            () = tokio::time::sleep_until(deadline) => {}
            () = shutdown.as_mut().hand_back() => {}
            () = shared.phase_reached(Phase::HandingBack) => {}
        }
    }
    shared.advance_phase(Phase::HandingBack);
    shared.in_flight.cancel_all(None, &CancelReason::Shutdown);
    let _ = tokio::time::timeout(ABORT_GRACE, shared.all_ended()).await;
    // Handlers that block their thread cannot be dropped. Their tasks go back anyway; the lease fences later
    // writes of such a handler.
    let stuck = shared.in_flight.unended();
    let aborted =
        stuck.iter().filter(|attempt| executor::finish(shared, attempt, Outcome::Release)).count() as u64;
    if tokio::time::timeout(FLUSH_TIMEOUT, shared.settle_queue.flushed()).await.is_err() {
        tracing::error!(
            unsettled = shared.settle_queue.unsettled(),
            "the last settlements could not be written; these tasks run again when the lease has run out"
        );
    }
    let handed_back = Counters::get(&shared.counters.handed_back) - handed_back;
    let ended = Counters::get(&shared.counters.ended) - ended;
    DrainReport {
        finished: ended.saturating_sub(handed_back),
        handed_back: handed_back.saturating_sub(aborted),
        aborted,
    }
}

/// Ends the threads of a worker.
async fn finish(shared: &Shared, parts: [Part; 3]) {
    shared.advance_phase(Phase::Stopped);
    for part in parts {
        part.ended().await;
    }
}

fn no_thread(error: &std::io::Error) -> WorkerError {
    WorkerError::Store(Error::Unavailable(format!("no thread for the worker: {error}")))
}

impl WorkerHandle {
    /// A reading of the worker.
    pub fn status(&self) -> WorkerStatus {
        self.shared.status()
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The controller that limits how many tasks may run.
    pub fn controller(&self) -> &Controller {
        &self.shared.admission
    }

    /// Changes how many slots the worker has, here and in the store. Running tasks continue, even if there
    /// are fewer slots now.
    ///
    /// # Errors
    /// [`Error::Invalid`] out of bounds, [`Error::Conflict`] between two registrations, and errors of the
    /// store.
    pub async fn set_slots(&self, slots: u32) -> Result<()> {
        let worker = self.shared.worker();
        let worker = worker.ok_or_else(|| Error::Conflict("the worker is not registered".to_owned()))?;
        self.shared.store.set_worker_slots(worker, slots).await?;
        self.shared.set_slots(slots);
        Ok(())
    }

    /// How long its claims take.
    pub fn claim_times(&self) -> &ClaimTimes {
        &self.shared.claim_times
    }

    /// Waits until the worker is registered with its store. Cancel safe; if it never is, this never returns.
    pub async fn started(&self) {
        self.shared.registered().await;
    }

    /// Makes the coordinator claim now. Any number of calls lead to one claim.
    pub fn wake(&self) {
        self.shared.wake.work();
    }

    /// Makes the worker check the schedules now, because one has changed. Any number of calls lead to one
    /// check.
    pub fn wake_schedules(&self) {
        self.shared.schedules_changed.notify_one();
    }

    /// Stops the worker as its shutdown would. May be called any number of times, from any thread.
    pub fn drain(&self) {
        self.shared.advance_phase(Phase::Draining);
    }

    /// Ends a drain early: the tasks that still run are handed back.
    pub fn hand_back_now(&self) {
        self.shared.advance_phase(Phase::HandingBack);
    }
}
