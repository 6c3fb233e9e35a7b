//! Log lines about attempts: one per important event, always with the same fields. Never the payload, and
//! never the handler's error text, which may quote the payload. A success writes none.

use std::time::Instant;

use windlass_core::Settlement;

use crate::{
    handler::context::Attempt,
    inside::quota::{Line, Quota},
    worker::status::Counters,
};

/// Writes a line about an attempt: level, attempt, then what `tracing` takes.
macro_rules! about {
    ($level:ident, $attempt:expr, $($rest:tt)+) => {{
        let claimed = &$attempt.claimed;
        tracing::$level!(
            task = %claimed.id,
            kind = %claimed.lane.kind,
            queue = %claimed.lane.queue,
            attempt = claimed.attempt,
            job = claimed.job.as_ref().map(tracing::field::display),
            workflow = claimed.workflow.as_ref().map(tracing::field::display),
            worker = %claimed.worker,
            $($rest)+
        );
    }};
}
pub(crate) use about;

/// Quotas of events that may come in floods.
#[derive(Debug, Default)]
pub(crate) struct Quotas {
    panicked: Quota,
    timed_out: Quota,
    lease_lost: Quota,
    retried: Quota,
    dead: Quota,
    cancelled: Quota,
}

/// Counts an event; returns whether it gets its own line.
fn has_line(quota: &Quota, what: &str) -> bool {
    match quota.event(Instant::now()) {
        Line::None => false,
        Line::Own => true,
        Line::OwnAfter(more) => {
            tracing::warn!(more, "{what} in the last minute, beyond those named");
            true
        }
    }
}

pub(crate) fn panicked(counters: &Counters, attempt: &Attempt) {
    if has_line(&counters.lines.panicked, "handlers panicked") {
        about!(warn, attempt, "handler panicked");
    }
}

pub(crate) fn timed_out(counters: &Counters, attempt: &Attempt) {
    if has_line(&counters.lines.timed_out, "attempts ran into their deadline") {
        about!(warn, attempt, "the attempt ran into its deadline");
    }
}

pub(crate) fn lease_lost(counters: &Counters, attempt: &Attempt) {
    if has_line(&counters.lines.lease_lost, "leases lost") {
        about!(warn, attempt, "lease lost: the end of this attempt was refused");
    }
}

/// Logs the end of a task, once the store has written it.
pub(crate) fn settled(counters: &Counters, attempt: &Attempt, settlement: &Settlement) {
    let lines = &counters.lines;
    match settlement {
        Settlement::Done { .. } => {}
        Settlement::Retry { due_at, .. } => {
            if tracing::enabled!(tracing::Level::INFO) && has_line(&lines.retried, "attempts failed") {
                about!(info, attempt, again_at = %due_at, "the attempt failed; the task is tried again");
            }
        }
        Settlement::Dead { .. } => {
            if has_line(&lines.dead, "tasks died") {
                about!(warn, attempt, "the task is dead: `windlass tasks show ID` says why");
            }
        }
        Settlement::Cancelled { .. } => {
            if tracing::enabled!(tracing::Level::INFO) && has_line(&lines.cancelled, "tasks cancelled") {
                about!(info, attempt, "the task is cancelled");
            }
        }
        Settlement::Snooze { due_at } => {
            about!(debug, attempt, again_at = %due_at, "the handler asked for another run later");
        }
        Settlement::Release => about!(debug, attempt, "the task was handed back"),
    }
}
