//! Runs one attempt: a pipeline of named steps from a claimed task to its settlement.
//!
//! ```text
//! run (decode, call the handler) ─► catch panic ─► deadline ─► cancellation ─► outcome ─► settle ─► settler
//! ```

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;
use windlass_core::{Outcome, SettleItem, settle};

use crate::{
    engine::log_line,
    handler::{
        RawHandler,
        cancel::CancelReason,
        context::{Attempt, Context},
        layer,
    },
    pool::guard::catch_panic,
    worker::{shared::Shared, status::Counters},
};

/// Runs an attempt to its end and queues its settlement. Holds the slot until then, not longer.
pub(crate) async fn execute(shared: Arc<Shared>, attempt: Arc<Attempt>, handler: Arc<dyn RawHandler>) {
    let is_timed = shared.meters.is_some() || shared.admission.watches_latency();
    let started = is_timed.then(Instant::now);
    let mut guard = Unended { shared: &shared, attempt: &attempt };
    let outcome = if shared.registry.layers().is_empty() {
        outcome(&shared, &attempt, handler).await
    } else {
        layer::outcome(&shared, &attempt, handler).await
    };
    if let Some(started) = started {
        let ran = started.elapsed();
        if let Some(meters) = &shared.meters {
            meters.ran(ran);
        }
        if shared.admission.watches_latency() {
            shared.admission.note(&attempt.claimed.lane.kind, ran);
        }
    }
    guard.end(outcome);
}

/// An attempt that has not ended. A destructor of the handler may panic outside of any catch, and the future
/// may be dropped; the attempt ends even then.
struct Unended<'a> {
    shared: &'a Shared,
    attempt: &'a Attempt,
}

impl Unended<'_> {
    fn end(&mut self, outcome: Outcome) {
        finish(self.shared, self.attempt, outcome);
    }
}

impl Drop for Unended<'_> {
    fn drop(&mut self) {
        if !self.attempt.has_ended() {
            self.end(if std::thread::panicking() {
                Outcome::retry("panicked while it was dropped")
            } else {
                Outcome::Release
            });
        }
    }
}

/// Turns an outcome into a settlement and queues it, once per attempt.
pub(crate) fn finish(shared: &Shared, attempt: &Attempt, outcome: Outcome) -> bool {
    if !attempt.end() {
        return false;
    }
    match &outcome {
        Outcome::Done(_) => Counters::add(&shared.counters.succeeded, 1),
        Outcome::Release => Counters::add(&shared.counters.handed_back, 1),
        _ => {}
    }
    Counters::add(&shared.counters.ended, 1);
    if let Some(trace) = &attempt.trace {
        trace.ended(&attempt.claimed, &outcome);
    }
    let settlement = settle(&attempt.claimed, outcome, attempt.store_now(), &shared.rules);
    shared.settle_queue.push(attempt.claimed.worker, SettleItem::new(&attempt.claimed, settlement));
    shared.note_end();
    true
}

/// The outcome of the handler, or of the event that ended it.
pub(crate) async fn outcome(
    shared: &Shared,
    attempt: &Arc<Attempt>,
    handler: Arc<dyn RawHandler>,
) -> Outcome {
    let mut run = std::pin::pin!(catch_panic(handler.call(Context::new(attempt.clone()))));
    tokio::select! {
        biased;
        ended = &mut run => returned(shared, attempt, ended),
        () = until(attempt.deadline) => {
            attempt.cancellation.cancel(CancelReason::Deadline);
            Counters::add(&shared.counters.timed_out, 1);
            log_line::timed_out(&shared.counters, attempt);
            timed_out(attempt)
        }
        reason = attempt.cancellation.cancelled() => match reason {
            CancelReason::Requested(reason) => {
                // The handler was asked to end; it may finish in its own way for a while.
                tokio::select! {
                    biased;
                    ended = &mut run => returned(shared, attempt, ended),
                    () = tokio::time::sleep(shared.config.cancel_grace) => Outcome::cancel(reason.clone()),
                }
            }
            CancelReason::Deadline => timed_out(attempt),
            CancelReason::Shutdown | CancelReason::LeaseLost => Outcome::Release,
        },
    }
}

/// A panic ends only its own attempt, which counts as failed.
pub(crate) fn returned(shared: &Shared, attempt: &Attempt, ended: Result<Outcome, String>) -> Outcome {
    ended.unwrap_or_else(|message| {
        Counters::add(&shared.counters.panicked, 1);
        log_line::panicked(&shared.counters, attempt);
        Outcome::retry(format!("panicked: {message}"))
    })
}

pub(crate) fn timed_out(attempt: &Attempt) -> Outcome {
    let limit = attempt.claimed.timeout.unwrap_or(Duration::ZERO);
    Outcome::retry(format!("timed out after {}", windlass_core::why::human(limit)))
}

pub(crate) async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
