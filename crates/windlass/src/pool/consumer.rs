//! A consumer: a tokio task that runs the pool's tasks one after another and parks when there is none.

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
use crate::pool::slots::Held;

/// After so many tasks a consumer yields to the runtime's other tasks: tasks that are ready at once would
/// otherwise keep a thread busy.
const TASKS_PER_TURN: u32 = 64;
/// A turn that takes longer ends early, and its tasks do not count as short.
const TURN_TIME: Duration = Duration::from_micros(200);
/// The clock is read once per so many tasks: a reading costs as much as a tenth of an empty task.
const TASKS_PER_LOOK: u32 = 8;

pub(super) struct Consumer {
    id: ConsumerId,
    shared: Arc<Shared>,
    seat: Seat,
    job: Option<Job>,
    /// The slot of the running task. The next task from the buffer takes it over without the shared counter.
    slot: Held,
    /// Whether it left tasks behind and has woken no other consumer for them.
    owes_call: bool,
}

/// What the shared state records about this consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seat {
    /// It was woken or spawned and has not run yet.
    Called,
    /// Its waker is among the parked ones, or was taken from there to wake it.
    Parked,
    /// It counts as running a task.
    Busy,
    /// Its task has ended and is not counted yet.
    Ended(End),
    /// It has found no task and holds nothing.
    Free,
}

impl Seat {
    /// Updates the state for the seat that the consumer leaves.
    fn leave(&mut self, id: ConsumerId, state: &mut State) {
        match std::mem::replace(self, Self::Free) {
            Self::Called => state.arrived(),
            // If its waker is still parked, something other than the pool has woken it.
            Self::Parked if !state.unpark(id) => state.arrived(),
            Self::Busy => state.cut_off(),
            Self::Ended(end) => state.ended(end),
            Self::Parked | Self::Free => {}
        }
    }
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pace {
    Short,
    Slow,
}

/// The tasks that a consumer has run in a row without a pending poll.
struct Turn {
    tasks: u32,
    since: Instant,
}

impl Turn {
    fn new() -> Self {
        Self { tasks: 0, since: Instant::now() }
    }

    /// Counts a task. Returns how the turn ended, if it is over.
    fn is_over(&mut self) -> Option<Pace> {
        self.tasks += 1;
        if self.tasks.is_multiple_of(TASKS_PER_LOOK) && self.since.elapsed() > TURN_TIME {
            return Some(Pace::Slow);
        }
        (self.tasks >= TASKS_PER_TURN).then_some(Pace::Short)
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
            *owes_call = state.tasks_are_short && state.queued() > 0;
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

    /// Yields to the runtime's other tasks. Meanwhile the consumer counts as called.
    fn end_turn(&mut self, pace: Pace, cx: &mut Context<'_>) {
        self.slot.release();
        let mut state = self.shared.lock();
        self.seat.leave(self.id, &mut state);
        state.tasks_are_short = pace == Pace::Short;
        state.called += 1;
        self.seat = Seat::Called;
        let call = state.call(&self.shared);
        drop(state);
        self.shared.make(call);
        // This only asks the runtime for another poll after all other tasks.
        let _pending = pin!(yield_now()).poll(cx);
    }

    fn end_task(&mut self, end: End) {
        self.seat = Seat::Ended(end);
        // The slot is kept until the task is dropped.
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
    /// Runs when the consumer retires, when it is aborted in the middle of a task, and when the runtime is
    /// dropped.
    fn drop(&mut self) {
        if let Some(job) = self.job.take() {
            discard(job);
        }
        self.slot.release();
        let mut state = self.shared.lock();
        self.seat.leave(self.id, &mut state);
        state.consumers.remove(&self.id);
        let stopping = state.phase != Phase::Open;
        // Spawn no new consumer here: a runtime that is being dropped drops it at once, and it would spawn
        // the next.
        let call = if state.parked.is_empty() { Call::Nobody } else { state.call(&self.shared) };
        drop(state);
        self.shared.make(call);
        if stopping {
            self.shared.ended.notify_one();
        }
    }
}
