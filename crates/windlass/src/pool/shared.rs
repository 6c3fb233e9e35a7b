//! State that the callers and consumers of a pool share: two queues, the parked consumers, and when to wake
//! which.
//!
//! ```text
//!            a slot is free                       no slot is free
//! dispatch ───────────────► starting ──► consumer ◄── buffered ◄─────────────── dispatch
//!             Reserved::start ──┘         (a task from the buffer takes a slot as it starts)
//! ```
//!
//! A caller that adds a task wakes one parked consumer, or spawns one, unless enough have been called and not
//! yet run: as many as the runtime has threads, or one while tasks are short. A consumer that leaves tasks
//! behind calls the next. It does so before it runs its own task, or, while tasks are short, only if that
//! task is not ready at once.
//!
//! Tasks are *short* if a consumer has just run a whole turn of them without a pending poll. Waking
//! another thread for such a task costs far more than the task; a burst of them then costs a few wake-ups
//! instead of one each.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    task::Waker,
};

use tokio::{
    runtime,
    sync::{Notify, watch},
    task::AbortHandle,
    time::Instant,
};

use super::{
    consumer::Consumer,
    gauges::Gauges,
    refusals::{self, Refusals},
    stop::{Phase, StopBy, StopReport},
    task::{End, Job, Task, discard},
};
use crate::{
    admission::Controller,
    handler::cancel::Cancellation,
    pool::slots::{Held, Slots},
};

/// Most parked consumers that are kept for the next burst; others end when they have no task.
const MAX_PARKED: usize = 1024;

pub(super) type ConsumerId = u64;

pub(super) struct Shared {
    pub(super) slots: Slots,
    pub(super) slot_freed: Arc<Notify>,
    /// The controller that sets how many of the slots may be used, if there is one.
    pub(super) admission: OnceLock<Controller>,
    /// Places of the buffer.
    pub(super) buffer: usize,
    /// Wakes one of the callers that wait for room.
    pub(super) room_freed: Notify,
    /// Set when the drain of a stop is over.
    pub(super) cancellation: Cancellation,
    /// Signals, while the pool stops, that a task or a consumer has ended.
    pub(super) ended: Notify,
    /// When the stop must be over; none before a stop is requested.
    pub(super) stop_by: watch::Sender<Option<StopBy>>,
    pub(super) report: watch::Sender<Option<StopReport>>,
    pub(super) runtime: runtime::Handle,
    threads: usize,
    state: Mutex<State>,
}

pub(super) struct State {
    pub(super) phase: Phase,
    /// Tasks with a slot that no consumer has taken yet.
    pub(super) starting: VecDeque<Job>,
    /// One slot for each of them.
    pub(super) starting_slots: Held,
    /// Tasks without a slot.
    pub(super) buffered: VecDeque<Job>,
    /// Callers that wait for room in the buffer.
    pub(super) waiting: usize,
    /// Last in, first out: the most recently parked consumer has the warmest cache.
    pub(super) parked: Vec<(ConsumerId, Waker)>,
    /// All consumers; without a handle while one is being spawned.
    pub(super) consumers: HashMap<ConsumerId, Option<AbortHandle>>,
    next_consumer: ConsumerId,
    /// Consumers that were called and have not looked at the queues yet.
    pub(super) called: usize,
    /// So many of them no longer count: the tasks have waited too long for them.
    stuck: usize,
    /// The time since which tasks with a slot have waited without a break, or of the last call because of
    /// that; and the number of tasks taken by then.
    waits: Option<(Instant, u64)>,
    /// Whether the latest tasks were short.
    pub(super) tasks_are_short: bool,
    pub(super) running: usize,
    pub(super) counts: Counts,
    refusals: Refusals,
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    accepted: u64,
    completed: u64,
    panicked: u64,
    deadline_exceeded: u64,
    pub(super) aborted: u64,
    pub(super) report: StopReport,
}

/// Why a task was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    Full,
    Closed,
}

/// Which consumer to call once the lock is released.
pub(super) enum Call {
    Nobody,
    Parked(Waker),
    New(ConsumerId),
}

impl Shared {
    pub(super) fn new(size: usize, buffer: usize, runtime: runtime::Handle) -> Self {
        let slot_freed = Arc::new(Notify::new());
        let slots = Slots::new(size, notifier(&slot_freed));
        let state = State {
            phase: Phase::Open,
            starting: VecDeque::new(),
            starting_slots: slots.none(),
            buffered: VecDeque::new(),
            waiting: 0,
            parked: Vec::new(),
            consumers: HashMap::new(),
            next_consumer: 0,
            called: 0,
            stuck: 0,
            waits: None,
            tasks_are_short: false,
            running: 0,
            counts: Counts::default(),
            refusals: Refusals::default(),
        };
        Self {
            slots,
            slot_freed,
            admission: OnceLock::new(),
            buffer,
            room_freed: Notify::new(),
            cancellation: Cancellation::new(),
            ended: Notify::new(),
            stop_by: watch::Sender::new(None),
            report: watch::Sender::new(None),
            threads: runtime.metrics().num_workers().max(1),
            runtime,
            state: Mutex::new(state),
        }
    }

    /// No task and nothing that panics runs under this lock. A slot returned under it may wake the waiter of
    /// [`Pool::freed`](super::Pool::freed), which only puts that waiter on its runtime's queue.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Accepts a task: with a slot if one is free, else into the buffer if it has room. Never waits.
    pub(super) fn admit<F>(self: &Arc<Self>, task: Box<Task<F>>) -> Result<(), (Box<Task<F>>, Refusal)>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        let mut guard = self.lock();
        let state = &mut *guard;
        if state.phase != Phase::Open {
            return Err((task, Refusal::Closed));
        }
        // Not past the tasks in the buffer: a pool of size 1 keeps the order.
        if state.buffered.is_empty() && state.starting_slots.reserve_more(1) == 1 {
            state.starting.push_back(Box::into_pin(task));
        } else if state.buffered.len() < self.buffer {
            state.buffered.push_back(Box::into_pin(task));
            self.held_up();
        } else {
            return Err((task, Refusal::Full));
        }
        state.counts.accepted += 1;
        let call = state.call(self);
        drop(guard);
        self.make(call);
        Ok(())
    }

    /// Tells the controller if a task waits although slots are free. Takes no lock.
    pub(super) fn held_up(&self) {
        if let Some(admission) = self.admission.get() {
            admission.held_up();
        }
    }

    /// Starts a task with one of the caller's slots. Returns whether it will run; if not, it was dropped.
    pub(super) fn start(self: &Arc<Self>, job: Job, slots: &mut Held) -> bool {
        let mut guard = self.lock();
        let state = &mut *guard;
        if !state.phase.starts_tasks() || slots.hand_over(&mut state.starting_slots, 1) == 0 {
            drop(guard);
            discard(job);
            return false;
        }
        state.starting.push_back(job);
        state.counts.accepted += 1;
        let call = state.call(self);
        drop(guard);
        self.make(call);
        true
    }

    /// Counts a task that was returned because there was no room.
    pub(super) fn refuse(&self) {
        let now = Instant::now();
        let due = self.lock().refusals.count(now);
        if let Some(refused) = due {
            refusals::log(refused, self.slots.total(), self.buffer);
        }
    }

    /// Calls a consumer for the waiting tasks.
    pub(super) fn call_for_queued(self: &Arc<Self>) {
        let call = self.lock().call(self);
        self.make(call);
    }

    /// Slots were returned without the end of a task: the buffer or a stop may have waited for them.
    pub(super) fn slots_came_back(self: &Arc<Self>) {
        self.call_for_queued();
        if self.lock().phase != Phase::Open {
            self.ended.notify_one();
        }
    }

    /// Since when tasks with a slot wait for a consumer, measured from the first call that saw them wait;
    /// `None` if none does.
    pub(super) fn waits_since(&self) -> Option<Instant> {
        let mut state = self.lock();
        if state.starting.is_empty() {
            state.waits = None;
            return None;
        }
        let taken = state.taken();
        Some(state.waits.get_or_insert_with(|| (Instant::now(), taken)).0)
    }

    /// Tasks have waited too long to count as short: calls as many consumers as there are threads.
    ///
    /// If no task was taken meanwhile, the calls also replace those made before. The reason: the runtime
    /// keeps the task that a thread woke last, and the task that yielded, on that thread; while a handler
    /// blocks the thread, no other thread can run them.
    pub(super) fn call_unhurried(self: &Arc<Self>) {
        let mut calls = Vec::with_capacity(self.threads);
        let mut state = self.lock();
        state.tasks_are_short = false;
        let taken = state.taken();
        if state.waits.replace((Instant::now(), taken)).is_some_and(|(_, before)| before == taken) {
            state.stuck = state.called;
        }
        for _ in 0..self.threads {
            calls.push(state.call(self));
        }
        drop(state);
        for call in calls {
            self.make(call);
        }
    }

    /// Wakes or spawns the consumer that [`State::call`] has picked. Must not be called under the lock.
    pub(super) fn make(self: &Arc<Self>, call: Call) {
        match call {
            Call::Nobody => {}
            Call::Parked(waker) => waker.wake(),
            Call::New(id) => {
                let handle = self.runtime.spawn(Consumer::new(id, Arc::clone(self))).abort_handle();
                let mut state = self.lock();
                // The consumer may have ended already; then its entry is gone.
                if let Some(entry) = state.consumers.get_mut(&id) {
                    *entry = Some(handle);
                }
            }
        }
    }

    /// Accepted tasks that have ended in any way.
    pub(super) fn ended_count(&self) -> u64 {
        let counts = &self.lock().counts;
        counts.completed + counts.panicked + counts.deadline_exceeded + counts.aborted
    }

    pub(super) fn gauges(&self) -> Gauges {
        let state = self.lock();
        let (starting, running) = (state.starting.len(), state.running);
        let in_use = self.slots.in_use().max(starting + running);
        Gauges {
            size: self.slots.total(),
            running,
            starting,
            reserved: in_use - starting - running,
            idle: self.slots.total().saturating_sub(in_use),
            buffer: self.buffer,
            buffered: state.buffered.len(),
            consumers: state.consumers.len(),
            accepted: state.counts.accepted,
            rejected: state.refusals.total(),
            completed: state.counts.completed,
            panicked: state.counts.panicked,
            deadline_exceeded: state.counts.deadline_exceeded,
            aborted: state.counts.aborted,
        }
    }
}

impl State {
    /// Accepted tasks that no consumer has taken.
    pub(super) fn queued(&self) -> usize {
        self.starting.len() + self.buffered.len()
    }

    /// Tasks that a consumer has taken, or that were dropped.
    pub(super) fn taken(&self) -> u64 {
        self.counts.accepted - self.queued() as u64
    }

    /// A called consumer has run.
    pub(super) fn arrived(&mut self) {
        self.called -= 1;
        self.stuck = self.stuck.min(self.called);
    }

    /// Picks the consumer to call for the waiting tasks, if one is needed.
    pub(super) fn call(&mut self, shared: &Shared) -> Call {
        let enough = if self.tasks_are_short { 1 } else { shared.threads };
        if self.called - self.stuck >= enough.min(self.queued()) {
            return Call::Nobody;
        }
        if let Some((_, waker)) = self.parked.pop() {
            self.called += 1;
            return Call::Parked(waker);
        }
        if self.consumers.len() < shared.slots.total() {
            self.called += 1;
            let id = self.next_consumer;
            self.next_consumer += 1;
            self.consumers.insert(id, None);
            return Call::New(id);
        }
        // All are busy: the first that ends its task takes the next.
        Call::Nobody
    }

    /// The next task, with its slot in `slot`, which may hold the slot of the task that has just ended.
    /// Without a next task `slot` becomes empty. Also returns whether a caller that waits for room can enter
    /// now.
    pub(super) fn next(&mut self, slot: &mut Held) -> (Option<Job>, bool) {
        if let Some(job) = self.starting.pop_front() {
            slot.release();
            self.starting_slots.hand_over(slot, 1);
            return (Some(job), false);
        }
        // More tasks run than the limit allows: return this slot; the task waits in the buffer.
        slot.release_excess();
        if self.buffered.is_empty() || (slot.len() == 0 && slot.reserve_more(1) == 0) {
            slot.release();
            return (None, false);
        }
        (self.buffered.pop_front(), self.waiting > 0)
    }

    /// Parks a consumer. Returns false if there are too many parked ones and it must end.
    pub(super) fn park(&mut self, id: ConsumerId, waker: &Waker) -> bool {
        let stays = self.parked.len() < MAX_PARKED;
        if stays {
            self.parked.push((id, waker.clone()));
        }
        stays
    }

    /// Removes a consumer from the parked ones. Returns false if it was not there, because it has been
    /// called.
    pub(super) fn unpark(&mut self, id: ConsumerId) -> bool {
        let place = self.parked.iter().rposition(|(parked, _)| *parked == id);
        place.map(|place| self.parked.remove(place)).is_some()
    }

    /// Counts a task that ended without being aborted.
    pub(super) fn ended(&mut self, end: End) {
        self.running -= 1;
        let counts = &mut self.counts;
        match self.phase {
            Phase::Open => {}
            Phase::Draining => counts.report.drained += 1,
            Phase::Cancelled => counts.report.cancelled += 1,
            // It was counted as aborted already.
            Phase::Stopped => return,
        }
        *match end {
            End::Completed => &mut counts.completed,
            End::Panicked => &mut counts.panicked,
            End::DeadlineExceeded => &mut counts.deadline_exceeded,
        } += 1;
    }

    /// Counts a task that was aborted while it ran.
    pub(super) fn cut_off(&mut self) {
        self.running -= 1;
        // A stop that aborts has counted it already; otherwise the runtime was dropped, or the consumer was
        // aborted.
        if self.phase != Phase::Stopped {
            self.counts.give_up(self.phase, 1);
        }
    }
}

impl Counts {
    /// Counts accepted tasks that are dropped before their end.
    pub(super) fn give_up(&mut self, phase: Phase, tasks: usize) {
        self.aborted += tasks as u64;
        match phase {
            Phase::Open => {}
            Phase::Cancelled => self.report.cancelled += tasks as u64,
            Phase::Draining | Phase::Stopped => self.report.aborted += tasks as u64,
        }
    }
}

fn notifier(notify: &Arc<Notify>) -> impl Fn() + Send + Sync + 'static {
    let notify = Arc::clone(notify);
    move || notify.notify_one()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Consumers that were called and never run, as if a task blocked their thread: the test does not drive
    /// the runtime.
    #[test]
    fn consumers_that_never_run_are_replaced() {
        let runtime = runtime::Builder::new_current_thread().build().unwrap();
        let shared = Arc::new(Shared::new(8, 0, runtime.handle().clone()));
        let mut slots = shared.slots.reserve(8);
        for _ in 0..8 {
            assert!(shared.start(Box::pin(Task::new(async {}, None, None)), &mut slots));
        }
        assert_eq!(shared.gauges().consumers, 1, "one is on its way, as many as there are threads");

        let since = shared.waits_since();
        assert!(since.is_some());
        assert_eq!(shared.waits_since(), since, "however often it is asked for");
        shared.lock().waits = since.map(|since| (since, 1));
        shared.call_unhurried();
        assert_eq!(shared.gauges().consumers, 1, "a task was taken meanwhile, so a consumer runs");
        shared.call_unhurried();
        assert_eq!(shared.gauges().consumers, 2);
        shared.call_unhurried();
        assert_eq!(shared.gauges().consumers, 3);

        runtime.block_on(async {
            while shared.waits_since().is_some() {
                tokio::task::yield_now().await;
            }
        });
        let state = shared.lock();
        assert_eq!(
            (state.taken(), state.called, state.stuck),
            (8, 0, 0),
            "all came in the end, and count as one again"
        );
    }
}
