//! Renews the worker's lease, on its own thread: handlers that block every thread of the runtime must not
//! make a live worker look dead (NO-FALSE-DEATH).
//!
//! The local deadline counts from when a renewal was *sent*, so it passes before the store's does. If it
//! passes without an answer, this worker no longer owns its tasks: it cancels their handlers before the store
//! may give them to another worker (SELF-FENCE), and registers under a new id.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;
use windlass_core::{Error, WorkerId, source::Renewed};

use crate::{
    handler::cancel::CancelReason,
    inside::{backoff::Backoff, home::Part},
    worker::{
        shared::{Phase, Shared},
        status::Counters,
    },
};

/// After so many renewals the worker compares its leases with those in the store.
const RENEWALS_PER_RECONCILE: u64 = 5;
/// The same for a worker without tasks that claimed nothing since the last comparison.
const IDLE_RENEWALS_PER_RECONCILE: u64 = 30;
/// First pause between two tries to register again.
const REGISTER_PAUSE_MIN: Duration = Duration::from_millis(100);
/// Longest such pause.
const REGISTER_PAUSE_MAX: Duration = Duration::from_secs(1);

/// Starts the thread. It ends when the worker has stopped. The current lease is valid until `valid_until`.
///
/// # Errors
/// If the thread or its timer cannot be created.
pub(crate) fn spawn(shared: Arc<Shared>, valid_until: Instant) -> std::io::Result<Part> {
    shared.config.home.start("windlass-heartbeat", async move {
        tokio::select! {
            () = beat(&shared, valid_until) => {}
            () = shared.phase_reached(Phase::Stopped) => {}
        }
    })
}

async fn beat(shared: &Shared, mut valid_until: Instant) {
    let mut spread = Backoff::new(
        shared.config.heartbeat,
        shared.config.heartbeat,
        shared.config.home.seed().wrapping_add(11),
    );
    let mut renewals = 0_u64;
    // The numbers of claims and of failures at the last comparison.
    let mut compared_at = (u64::MAX, 0);
    // The epoch of the store's leases at the last comparison; a new epoch may have forgotten some leases.
    let mut epoch = None;
    loop {
        let Some(worker) = shared.worker() else {
            valid_until = register_anew(shared).await;
            continue;
        };
        shared.set_lease_until(valid_until);
        let pause = spread.spread(shared.config.heartbeat * 4 / 5);
        // Renew sooner if little time is left, as after a registration that took long.
        let left = valid_until.saturating_duration_since(Instant::now());
        tokio::time::sleep(pause.min(left / 2)).await;
        let sent = Instant::now();
        // Renewals are retried until the lease has expired; then there is nothing left to renew.
        let Ok(answer) = tokio::time::timeout_at(valid_until, renew(shared, worker)).await else {
            fence(shared, worker, "the store did not answer in time");
            continue;
        };
        match answer {
            Ok(renewed) => {
                // The deadline counts from the first try of a retried renewal: too early is safe.
                valid_until = sent + shared.config.lease_ttl;
                shared.set_lease_until(valid_until);
                shared.mark_renewed();
                if let Some(slots) = renewed.slots {
                    shared.set_slots(slots);
                }
                for (lease, reason) in renewed.cancels {
                    shared.in_flight.cancel(lease, CancelReason::Requested(reason));
                }
                renewals += 1;
                let may_have_forgotten = renewed.epoch != epoch;
                if may_have_forgotten || renewals.is_multiple_of(RENEWALS_PER_RECONCILE) {
                    let claims = (
                        Counters::get(&shared.counters.claimed),
                        Counters::get(&shared.counters.claims_failed),
                    );
                    let is_idle = shared.in_flight.len() == 0 && claims == compared_at;
                    if (!is_idle
                        || may_have_forgotten
                        || renewals.is_multiple_of(IDLE_RENEWALS_PER_RECONCILE))
                        && reconcile(shared, worker).await
                    {
                        compared_at = claims;
                        epoch = renewed.epoch;
                    }
                }
            }
            Err(error) => fence(shared, worker, &error.to_string()),
        }
    }
}

/// Renews, and retries while the failure may be temporary.
async fn renew(shared: &Shared, worker: WorkerId) -> Result<Renewed, Error> {
    let mut backoff = Backoff::new(Duration::from_millis(50), shared.config.heartbeat, 13);
    loop {
        match shared.source.renew(worker, shared.report()).await {
            Ok(renewed) => {
                Counters::add(&shared.counters.renewals, 1);
                shared.reach.answered();
                return Ok(renewed);
            }
            Err(Error::WorkerExpired | Error::NotFound(_)) => return Err(Error::WorkerExpired),
            Err(error @ Error::Fatal(_)) => {
                shared.set_fatal(error.clone());
                return Err(error);
            }
            Err(error) => {
                Counters::add(&shared.counters.renewals_failed, 1);
                shared.reach.failed("renewals", &error).after(backoff.next()).await;
            }
        }
    }
}

/// Gives up every lease of this registration: their handlers are cancelled now, and their tasks handed back.
fn fence(shared: &Shared, worker: WorkerId, why: &str) {
    shared.set_worker(None);
    Counters::add(&shared.counters.self_fences, 1);
    let cancelled = shared.in_flight.cancel_all(Some(worker), &CancelReason::LeaseLost);
    tracing::error!(%worker, why, cancelled, "lease lost: handlers cancelled; registering anew");
}

async fn register_anew(shared: &Shared) -> Instant {
    let mut backoff = Backoff::new(REGISTER_PAUSE_MIN, REGISTER_PAUSE_MAX, 17);
    loop {
        let valid_until = Instant::now() + shared.config.lease_ttl;
        match shared.source.register(shared.introduction()).await {
            Ok(worker) if Instant::now() < valid_until => {
                shared.set_lease_until(valid_until);
                shared.set_worker(Some(worker));
                shared.reach.answered();
                shared.wake.lanes();
                tracing::info!(%worker, "registered anew");
                return valid_until;
            }
            Ok(worker) => {
                tracing::warn!(%worker, "the answer to a registration came after its lease was over");
            }
            Err(error) => {
                if matches!(error, Error::Fatal(_)) {
                    shared.set_fatal(error.clone());
                }
                shared.reach.failed("registration", &error).after(backoff.next()).await;
            }
        }
    }
}

/// Compares leases both ways. Hands back tasks that the store says we hold and we do not, because their
/// answer was lost. Ends attempts that the store does not know, because it forgot their claims in a crash.
/// Returns whether the store answered.
async fn reconcile(shared: &Shared, worker: WorkerId) -> bool {
    // Read the claim number first: a claim that is answered in between has a higher number and is left alone.
    let answered = shared.claims_answered();
    let leases = shared.in_flight.leases_of(worker);
    let compared = shared.source.reconcile(worker, answered, &leases);
    // The next renewal must not wait for the comparison (NO-FALSE-DEATH); the next comparison completes it.
    match tokio::time::timeout(shared.config.heartbeat, compared).await {
        Ok(Ok(compared)) => {
            if compared.handed_back > 0 {
                let tasks = compared.handed_back;
                Counters::add(&shared.counters.reconciled, tasks);
                tracing::warn!(%worker, tasks, "handed back tasks that the store recorded for this worker and that it did not have");
            }
            shared.lost(&compared.lost);
            return true;
        }
        Ok(Err(error)) => tracing::debug!(%worker, %error, "could not compare leases"),
        Err(_) => tracing::debug!(%worker, "could not compare leases in time"),
    }
    false
}
