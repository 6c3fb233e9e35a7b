//! The duties of every worker besides running tasks: find dead workers, apply retention, pass hints on.
//!
//! Each duty is bounded per step, spread in time, and isolated: a failure is counted, reported and retried.

use std::{sync::Arc, time::Duration};

use windlass_core::{Hint, source::DutyReport};

use crate::{
    handler::cancel::CancelReason,
    inside::backoff::Backoff,
    telemetry::Duty,
    worker::{
        reach::Again,
        shared::{Phase, Shared},
        status::Counters,
    },
};

/// Most tasks that one sweep takes from dead workers in one commit.
const EXPIRY_MAX: u32 = 1_000;
/// How often retention looks for something to remove.
const RETENTION_EVERY: Duration = Duration::from_secs(5);

/// Runs `duty` every `every`, and again at once while it has more to do, until the worker drains.
async fn repeat<F, Fut>(shared: &Shared, which: Duty, every: Duration, mut duty: F)
where
    F: FnMut() -> Fut,
    Fut: Future<Output = windlass_core::Result<DutyReport>>,
{
    let name = which.as_str();
    let mut spread = Backoff::new(every, every, name.len() as u64);
    let mut again = None;
    loop {
        tokio::select! {
            () = wait(again.take(), spread.spread(every)) => {}
            () = shared.phase_reached(Phase::Draining) => return,
        }
        loop {
            let done = duty().await;
            if let Some(meters) = &shared.meters {
                meters.duty(which, &done);
            }
            match done {
                Ok(report) => {
                    if !report.workers.is_empty() {
                        tracing::warn!(workers = ?report.workers, tasks = report.moved, "took the tasks of dead workers");
                    }
                    if !report.lanes_ready.is_empty() {
                        shared.wake.work();
                    }
                    if !report.more || shared.is_draining() {
                        break;
                    }
                }
                Err(error) => {
                    Counters::add(&shared.counters.duty_failures, 1);
                    again = Some(shared.reach.failed(name, &error));
                    break;
                }
            }
        }
    }
}

/// Waits for the next run of a duty; after a failure, until the store is back.
pub(crate) async fn wait(again: Option<Again>, pause: Duration) {
    match again {
        Some(mut again) => again.after(pause).await,
        None => tokio::time::sleep(pause).await,
    }
}

/// Takes back the tasks of dead workers.
pub(crate) async fn sweep(shared: Arc<Shared>) {
    let every = shared.config.sweep;
    repeat(&shared, Duty::Sweep, every, || shared.source.expire_workers(EXPIRY_MAX)).await;
}

/// Removes tasks whose retention is over.
pub(crate) async fn retain(shared: Arc<Shared>) {
    let retention = shared.config.retention;
    repeat(&shared, Duty::Retention, RETENTION_EVERY, || shared.store.retain(&retention)).await;
}

/// Passes the store's hints on to the parts of the worker.
pub(crate) async fn listen(shared: Arc<Shared>) {
    let mut hints = shared.source.hints();
    loop {
        let hint = tokio::select! {
            hint = hints.next() => hint,
            () = shared.phase_reached(Phase::Stopped) => return,
        };
        match hint {
            Hint::Ready => {
                shared.wake.work();
                shared.reach.may_be_back();
            }
            Hint::Lanes => {
                shared.wake.lanes();
                shared.reach.may_be_back();
            }
            Hint::Due(at) => shared.wake.due(at.as_ms()),
            Hint::Cancel(lease, reason) => {
                shared.in_flight.cancel(lease, CancelReason::Requested(reason));
            }
            Hint::Lost(lease) => shared.lost(&[lease]),
        }
    }
}
