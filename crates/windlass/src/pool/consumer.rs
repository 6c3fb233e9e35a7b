//! A consumer: a tokio task that runs one task of the pool after the other and parks when there is none.

use std::{
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use tokio::task::yield_now;

use super::{
    shared::{Call, ConsumerId, Shared, State},
    stop::Phase,
    task::{End, Job, discard},
};
use crate::slots::Held;

/// Tasks that a consumer runs before it lets the runtime's other tasks have a turn: tasks that are ready at once would
/// otherwise keep a thread for themselves.
const TASKS_PER_TURN: u32 = 64;
/// A turn that takes longer ends early, and its tasks were not brisk.
const TURN_TIME: Duration = Duration::from_micros(200);
/// The clock is looked at once per so many tasks: a look costs as much as a tenth of an empty task.
const TASKS_PER_LOOK: u32 = 8;

pub(super) struct Consumer {
    id: ConsumerId,
    shared: Arc<Shared>,
    seat: Seat,
    job: Option<Job>,
    /// The slot of the task that runs. The next one from the buffer gets it without a detour over the counter.
    slot: Held,
    /// Whether it left work behind and has called nobody for it.
    owes_call: bool,
}

/// What the shared state believes about this consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seat {
    /// It was called and is on its way.
    Called,
    /// Its waker is among the parked ones, or was taken from there by a call.
    Parked,
    /// It counts as running a task.
    Busy,
    /// Its task has ended and is not counted yet.
    Ended(End),
    /// It has looked and holds nothing.
    Free,
}

impl Seat {
    /// Tells the state what became of the seat.
    fn leave(&mut self, id: ConsumerId, state: &mut State) {
        match std::mem::replace(self, Self::Free) {
            Self::Called => state.arrived(),
            // If it is still among the parked ones, something else than a call has woken it.
            Self::Parked if !state.unpark(id) => state.arrived(),
            Self::Busy => state.cut_off(),
            Self::Ended(end) => state.ended(end),
            Self::Parked | Self::Free => {}
        }
    }
}

/// How a turn went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pace {
    Brisk,
    Slow,
}

/// The tasks that a consumer has run without waiting once.
struct Turn {
    tasks: u32,
    since: Instant,
}

impl Turn {
    fn new() -> Self {
        Self { tasks: 0, since: Instant::now() }
    }

    /// Counts a task. Answers how the turn went if it is over.
    fn is_over(&mut self) -> Option<Pace> {
        self.tasks += 1;
        if self.tasks.is_multiple_of(TASKS_PER_LOOK) && self.since.elapsed() > TURN_TIME {
            return Some(Pace::Slow);
        }
        (self.tasks >= TASKS_PER_TURN).then_some(Pace::Brisk)
    }
}

enum Next {
    Task,
    Wait,
    Retire,
}

impl Consumer {
    pub(super) fn new(id: ConsumerId, shared: Arc<Shared>) -> Self {
        let slot = shared.slots.none();
        Self { id, shared, seat: Seat::Called, job: None, slot, owes_call: false }
    }

    fn take_next(&mut self, cx: &Context<'_>) -> Next {
        let Self { id, shared, seat, slot, owes_call, .. } = self;
        let mut guard = shared.lock();
        let state = &mut *guard;
        seat.leave(*id, state);
        let stopping = state.phase != Phase::Open;
        let (job, has_room) = state.next(slot);
        let (call, next) = if job.is_some() {
            state.running += 1;
            *seat = Seat::Busy;
            *owes_call = state.brisk && state.queued() > 0;
            (if *owes_call { Call::Nobody } else { state.call(shared) }, Next::Task)
        } else if state.phase != Phase::Stopped && state.park(*id, cx.waker()) {
            *seat = Seat::Parked;
            (Call::Nobody, Next::Wait)
        } else {
            (Call::Nobody, Next::Retire)
        };
        drop(guard);
        if has_room {
            shared.room_freed.notify_one();
        }
        if stopping {
            shared.ended.notify_one();
        }
        shared.make(call);
        self.job = job;
        next
    }

    /// Lets the runtime's other tasks have a turn. It counts as called meanwhile: it is on its way.
    fn end_turn(&mut self, pace: Pace, cx: &mut Context<'_>) {
        self.slot.release();
        let mut state = self.shared.lock();
        self.seat.leave(self.id, &mut state);
        state.brisk = pace == Pace::Brisk;
        state.called += 1;
        self.seat = Seat::Called;
        let call = state.call(&self.shared);
        drop(state);
        self.shared.make(call);
        // Asks the runtime for another turn after all others; there is nothing to wait for in it.
        let _pending = pin!(yield_now()).poll(cx);
    }

    fn end_task(&mut self, end: End) {
        self.seat = Seat::Ended(end);
        // Its slot is kept until the task is gone.
        if let Some(job) = self.job.take() {
            discard(job);
        }
    }
}

impl Future for Consumer {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        let mut turn = Turn::new();
        loop {
            if let Some(job) = &mut this.job {
                let Poll::Ready(end) = job.as_mut().poll(cx) else {
                    if std::mem::take(&mut this.owes_call) {
                        this.shared.call_for_queued();
                    }
                    return Poll::Pending;
                };
                this.end_task(end);
                if let Some(pace) = turn.is_over() {
                    this.end_turn(pace, cx);
                    return Poll::Pending;
                }
            }
            match this.take_next(cx) {
                Next::Task => {}
                Next::Wait => return Poll::Pending,
                Next::Retire => return Poll::Ready(()),
            }
        }
    }
}

impl Drop for Consumer {
    /// Reached when it retires, when it is aborted in the middle of a task, and when the runtime goes away.
    fn drop(&mut self) {
        if let Some(job) = self.job.take() {
            discard(job);
        }
        self.slot.release();
        let mut state = self.shared.lock();
        self.seat.leave(self.id, &mut state);
        state.consumers.remove(&self.id);
        let stopping = state.phase != Phase::Open;
        // Nobody new: on a runtime that goes away a new consumer is dropped at once, and would call the next.
        let call = if state.parked.is_empty() { Call::Nobody } else { state.call(&self.shared) };
        drop(state);
        self.shared.make(call);
        if stopping {
            self.shared.ended.notify_one();
        }
    }
}
