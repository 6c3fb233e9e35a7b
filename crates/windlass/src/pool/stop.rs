//! Stopping a pool.
//!
//! ```text
//! Open ──stop──► Draining ──90 % of the deadline──► Cancelled ──deadline──► Stopped
//!                    │   intake is closed;              │  what has not started      ▲  what still runs is aborted
//!                    │   contexts are live              │  is dropped, contexts      │
//!                    │                                  │  are cancelled             │
//!                    └───────────── everything has ended ─────────────────────────────┘
//! ```
//!
//! One task drives this however many callers stop the pool; all of them get its report.

use std::{fmt, sync::Arc, time::Duration};

use tokio::time::{Instant, sleep_until, timeout};

use super::{
    shared::Shared,
    task::{Job, discard},
};
use crate::cancel::CancelReason;

/// The part of the deadline that goes to draining; the rest is for cancelled tasks to clean up.
const DRAIN_PERCENT: u32 = 90;
/// How long a stop waits for aborted tasks to be dropped. A task that does not block its thread needs microseconds.
const ABORT_SETTLE: Duration = Duration::from_millis(50);
/// Stands for "no deadline" where the clock cannot say the caller's: thirty years.
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

/// What became of the tasks that a pool still had when it was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StopReport {
    /// Ended while their context was live.
    pub drained: u64,
    /// Ended after they were cancelled, or dropped then because they had not started.
    pub cancelled: u64,
    /// Cut off at the deadline.
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
    /// Stops the pool, or hastens a stop that is under way, and waits for its report.
    pub(super) async fn stop(self: &Arc<Self>, deadline: Duration) -> StopReport {
        let mut reported = self.report.subscribe();
        let by = StopBy::within(deadline);
        self.stop_by
            .send_modify(|current| *current = Some(current.map_or(by, |current| current.earlier(by))));
        if self.close() {
            // A task of its own: a caller that goes away in the middle must not leave the others waiting.
            self.runtime.spawn(drive(Arc::clone(self)));
        }
        match reported.wait_for(Option::is_some).await {
            Ok(report) => report.unwrap_or_default(),
            // Not reached: `self` keeps the sender.
            Err(_) => StopReport::default(),
        }
    }

    /// Closes the intake. Answers whether this call was the one that did.
    fn close(&self) -> bool {
        let mut state = self.lock();
        if state.phase != Phase::Open {
            return false;
        }
        state.phase = Phase::Draining;
        drop(state);
        // Whoever waits for room learns that there will be none.
        self.room_freed.notify_waiters();
        true
    }

    fn cancel(&self) {
        self.give_up_unstarted(Phase::Cancelled);
        self.cancellation.cancel(CancelReason::Shutdown);
    }

    /// Ends everything at once. Also what becomes of a pool that is dropped.
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
        // A parked one finds the pool stopped and retires; an abort gets the rest out of their tasks.
        for (_, waker) in parked {
            waker.wake();
        }
        for consumer in busy {
            consumer.abort();
        }
    }

    /// Enters a phase in which nothing starts any more, and drops what has not.
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
        // Slots in use without a running task are reserved ones, whose owner may still start something.
        state.queued() + state.running + self.slots.in_use() == 0
    }

    /// Waits until nothing is left. Answers whether that came before the time that `pick` picks.
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
