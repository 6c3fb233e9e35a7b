//! Stopping a pool.
//!
//! ```text
//! Open ──stop──► Draining ──90 % of the deadline──► Cancelled ──deadline──► Stopped
//!                    │   intake is closed;              │  unstarted tasks are       ▲  running tasks
//!                    │   contexts are live              │  dropped, contexts are     │  are aborted
//!                    │                                  │  cancelled                 │
//!                    └───────────── all tasks have ended ─────────────────────────────┘
//! ```
//!
//! One task performs the stop, however many callers ask for it; all of them get its report.

use std::{fmt, sync::Arc, time::Duration};

use tokio::time::{Instant, sleep_until, timeout};

use super::{
    shared::Shared,
    task::{Job, discard},
};
use crate::handler::cancel::CancelReason;

/// The share of the deadline for draining; the rest is for cancelled tasks to clean up.
const DRAIN_PERCENT: u32 = 90;
/// How long a stop waits for aborted tasks to be dropped. A task that does not block its thread needs
/// microseconds.
const ABORT_SETTLE: Duration = Duration::from_millis(50);
/// Stands for "no deadline" if the caller's is beyond the range of the clock: thirty years.
const FAR: Duration = Duration::from_hours(24 * 365 * 30);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Open,
    Draining,
    Cancelled,
    Stopped,
}

impl Phase {
    pub(super) fn starts_tasks(self) -> bool {
        matches!(self, Self::Open | Self::Draining)
    }
}

/// How the tasks ended that a pool still had when it was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StopReport {
    /// Ended while their context was live.
    pub drained: u64,
    /// Ended after they were cancelled, or dropped then because they had not started.
    pub cancelled: u64,
    /// Aborted at the deadline.
    pub aborted: u64,
}

impl fmt::Display for StopReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { drained, cancelled, aborted } = self;
        write!(f, "{drained} drained, {cancelled} cancelled, {aborted} aborted")
    }
}

/// When a stop cancels, and when it aborts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StopBy {
    cancel: Instant,
    abort: Instant,
}

impl StopBy {
    fn within(deadline: Duration) -> Self {
        let (now, deadline) = (Instant::now(), deadline.min(FAR));
        Self { cancel: now + deadline / 100 * DRAIN_PERCENT, abort: now + deadline }
    }

    fn earlier(self, other: Self) -> Self {
        Self { cancel: self.cancel.min(other.cancel), abort: self.abort.min(other.abort) }
    }
}

impl Shared {
    /// Stops the pool, or shortens the deadline of a running stop, and waits for its report.
    pub(super) async fn stop(self: &Arc<Self>, deadline: Duration) -> StopReport {
        let mut reported = self.report.subscribe();
        let by = StopBy::within(deadline);
        self.stop_by
            .send_modify(|current| *current = Some(current.map_or(by, |current| current.earlier(by))));
        if self.close() {
            // A spawned task: if a caller is dropped, the other callers must still get the report.
            self.runtime.spawn(drive(Arc::clone(self)));
        }
        match reported.wait_for(Option::is_some).await {
            Ok(report) => report.unwrap_or_default(),
            // Not reached: `self` keeps the sender.
            Err(_) => StopReport::default(),
        }
    }

    /// Closes the intake. Returns whether this call was the first.
    fn close(&self) -> bool {
        let mut state = self.lock();
        if state.phase != Phase::Open {
            return false;
        }
        state.phase = Phase::Draining;
        drop(state);
        // Callers that wait for room learn that there will be none.
        self.room_freed.notify_waiters();
        true
    }

    fn cancel(&self) {
        self.give_up_unstarted(Phase::Cancelled);
        self.cancellation.cancel(CancelReason::Shutdown);
    }

    /// Ends everything at once. A dropped pool ends this way too.
    pub(super) fn abort(&self) {
        self.close();
        self.give_up_unstarted(Phase::Stopped);
        self.cancellation.cancel(CancelReason::Shutdown);
        let (parked, busy) = {
            let mut state = self.lock();
            let parked = std::mem::take(&mut state.parked);
            state.called += parked.len();
            let busy: Vec<_> = state.consumers.values_mut().filter_map(Option::take).collect();
            (parked, busy)
        };
        // A parked consumer sees that the pool has stopped and retires; the abort stops the others within
        // their tasks.
        for (_, waker) in parked {
            waker.wake();
        }
        for consumer in busy {
            consumer.abort();
        }
    }

    /// Enters a phase in which no task starts any more, and drops the unstarted ones.
    fn give_up_unstarted(&self, phase: Phase) {
        let mut slots = self.slots.none();
        let jobs: Vec<Job> = {
            let mut state = self.lock();
            if state.phase == Phase::Stopped {
                return;
            }
            state.phase = phase;
            let mut jobs: Vec<Job> = std::mem::take(&mut state.starting).into();
            jobs.extend(std::mem::take(&mut state.buffered));
            state.starting_slots.hand_over(&mut slots, usize::MAX);
            let running = if phase == Phase::Stopped { state.running } else { 0 };
            state.counts.give_up(phase, jobs.len() + running);
            jobs
        };
        jobs.into_iter().for_each(discard);
        slots.release();
        self.ended.notify_one();
    }

    fn is_at_rest(&self) -> bool {
        let state = self.lock();
        // Slots in use without a running task are reserved; their owner may still start a task.
        state.queued() + state.running + self.slots.in_use() == 0
    }

    /// Waits until no task is left. Returns whether that came before the time that `pick` returns.
    async fn rests_before(&self, pick: impl Fn(StopBy) -> Instant) -> bool {
        let mut stop_by = self.stop_by.subscribe();
        loop {
            if self.is_at_rest() {
                return true;
            }
            let Some(by) = *stop_by.borrow_and_update() else { return false };
            tokio::select! {
                () = self.ended.notified() => {}
                _ = stop_by.changed() => {}
                () = sleep_until(pick(by)) => return self.is_at_rest(),
            }
        }
    }
}

async fn drive(shared: Arc<Shared>) {
    if !shared.rests_before(|by| by.cancel).await {
        shared.cancel();
        shared.rests_before(|by| by.abort).await;
    }
    shared.abort();
    let _ = timeout(ABORT_SETTLE, async {
        while !shared.lock().consumers.is_empty() {
            shared.ended.notified().await;
        }
    })
    .await;
    let report = shared.lock().counts.report;
    shared.report.send_replace(Some(report));
}
