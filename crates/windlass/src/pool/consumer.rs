//! A consumer: a tokio task that runs one task of the pool after the other and parks when there is none.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use super::{
    shared::{Call, ConsumerId, Shared, State},
    stop::Phase,
    task::{End, Job, discard},
};
use crate::slots::Held;

/// Tasks that a consumer runs before it lets the runtime's other tasks have a turn: tasks that are ready at once would
/// otherwise keep a thread for themselves.
const TASKS_PER_TURN: usize = 64;

pub(super) struct Consumer {
    id: ConsumerId,
    shared: Arc<Shared>,
    seat: Seat,
    job: Option<Job>,
    /// The slot of the task that runs. The next one from the buffer gets it without a detour over the counter.
    slot: Held,
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
            Self::Called => state.called -= 1,
            // If it is still among the parked ones, something else than a call has woken it.
            Self::Parked if !state.unpark(id) => state.called -= 1,
            Self::Busy => state.cut_off(),
            Self::Ended(end) => state.ended(end),
            Self::Parked | Self::Free => {}
        }
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
        Self { id, shared, seat: Seat::Called, job: None, slot }
    }

    fn take_next(&mut self, cx: &Context<'_>) -> Next {
        let Self { id, shared, seat, slot, .. } = self;
        let mut guard = shared.lock();
        let state = &mut *guard;
        seat.leave(*id, state);
        let stopping = state.phase != Phase::Open;
        let (job, has_room) = state.next(slot);
        let (call, next) = if job.is_some() {
            state.running += 1;
            *seat = Seat::Busy;
            (state.call(shared), Next::Task)
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

    fn end_task(&mut self, end: End) {
        self.seat = Seat::Ended(end);
        // Its slot is kept until the task is gone.
        self.job.take().map(discard);
    }
}

impl Future for Consumer {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        let mut turn = 0;
        loop {
            if let Some(job) = &mut this.job {
                let end = ready!(job.as_mut().poll(cx));
                this.end_task(end);
                turn += 1;
                if turn == TASKS_PER_TURN {
                    cx.waker().wake_by_ref();
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
        self.job.take().map(discard);
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
