//! The counters of a consumer: relaxed atomics, because every delivery updates them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicU16, AtomicU64, Ordering},
    },
    time::Duration,
};

use windlass::{
    Name, Pool,
    admission::Controller,
    inside::Quota,
    telemetry::{ConsumerReading, ConsumerTimes},
};

use crate::session::ledger::Answer;

/// Whether a consumer gets deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It has a channel and is subscribed.
    Consuming,
    /// It lost its channel and tries to open another.
    Reconnecting,
    /// It takes no new deliveries and finishes those that it has.
    Stopping,
}

/// A reading of one consumer's counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerFigures {
    /// Its queue.
    pub queue: String,
    /// Its event type, or empty.
    pub event_type: String,
    /// Whether it gets deliveries.
    pub state: State,
    /// Handlers that run at once, at most.
    pub workers: usize,
    /// Deliveries that the broker may send ahead, as configured.
    pub prefetch: u16,
    /// The prefetch in use: less if deliveries sent ahead would take more than a tenth of the memory.
    pub prefetch_in_force: u16,
    /// Messages that wait at the broker, as of its last answer; `None` while unknown.
    pub queue_messages: Option<u64>,
    /// Handlers that may run now: fewer than the workers if the consumer is adaptive or admission control
    /// allows fewer.
    pub limit: u64,
    /// Handlers that run.
    pub running: u64,
    /// Deliveries taken.
    pub deliveries: u64,
    /// Deliveries that the broker had delivered before.
    pub redeliveries: u64,
    /// Deliveries that were acknowledged.
    pub acked: u64,
    /// Deliveries that were rejected for good.
    pub rejected: u64,
    /// Deliveries that were returned to the queue.
    pub requeued: u64,
    /// Results that came after their channel was lost: the broker delivers those messages again.
    pub unanswered: u64,
    /// Channels that were opened, the first included.
    pub sessions: u64,
}

/// The instruments of one consumer.
#[derive(Debug, Default)]
pub struct Meters {
    state: AtomicU8,
    /// Limits log lines about failed deliveries (SILENT-NEVER).
    pub failures: Quota,
    pub limit: AtomicU64,
    prefetch: AtomicU16,
    depth: AtomicU64,
    pub times: Arc<ConsumerTimes>,
    /// The controller that gets the handler times, and the name to report them under.
    latency: Option<(Controller, Name)>,
    /// Handlers that ended, and the sum of their run times.
    pub ended: AtomicU64,
    pub busy_nanos: AtomicU64,
    pub running: AtomicU64,
    pub deliveries: AtomicU64,
    pub redeliveries: AtomicU64,
    pub acked: AtomicU64,
    pub rejected: AtomicU64,
    pub requeued: AtomicU64,
    pub unanswered: AtomicU64,
    pub sessions: AtomicU64,
}

impl Meters {
    /// All counters at zero.
    pub fn new(plan: &crate::consumer::Plan, admission: &Controller) -> Self {
        let limit = plan.adaptive_min.unwrap_or(plan.sizes.workers);
        // Deliveries have no kind; the event type comes closest.
        let text = if plan.event_type.is_empty() { &plan.queue } else { &plan.event_type };
        let name = Name::new("kind", text).ok().filter(|_| admission.watches_latency());
        Self {
            limit: AtomicU64::new(limit as u64),
            prefetch: AtomicU16::new(plan.sizes.prefetch),
            depth: AtomicU64::new(UNKNOWN),
            latency: name.map(|name| {
                admission.watch(std::slice::from_ref(&name));
                (admission.clone(), name)
            }),
            ..Self::default()
        }
    }

    /// A handler has ended.
    pub fn ran(&self, took: Duration) {
        count(&self.ended);
        self.busy_nanos.fetch_add(took.as_nanos() as u64, Ordering::Relaxed);
        self.times.handled(took);
        if let Some((admission, name)) = &self.latency {
            admission.note(name, took);
        }
    }

    /// Notes how many messages wait at the broker; `None` if unknown.
    pub fn note_depth(&self, depth: Option<u64>) {
        self.depth.store(depth.unwrap_or(UNKNOWN), Ordering::Relaxed);
    }

    /// Notes the prefetch in use.
    pub fn note_prefetch(&self, prefetch: u16) {
        self.prefetch.store(prefetch, Ordering::Relaxed);
    }

    pub fn set_state(&self, state: State) {
        self.state.store(state as u8, Ordering::Relaxed);
    }

    pub fn state(&self) -> State {
        match self.state.load(Ordering::Relaxed) {
            0 => State::Consuming,
            1 => State::Reconnecting,
            _ => State::Stopping,
        }
    }

    pub fn answered(&self, answer: Answer) {
        let counter = match answer {
            Answer::Ack => &self.acked,
            Answer::Reject => &self.rejected,
            Answer::Requeue => &self.requeued,
        };
        count(counter);
    }

    pub fn read(&self, plan: &crate::consumer::Plan, pool: &Pool) -> ConsumerFigures {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ConsumerFigures {
            queue: plan.queue.clone(),
            event_type: plan.event_type.clone(),
            state: self.state(),
            workers: plan.sizes.workers,
            prefetch: plan.sizes.prefetch,
            prefetch_in_force: self.prefetch.load(Ordering::Relaxed),
            queue_messages: Some(get(&self.depth)).filter(|depth| *depth != UNKNOWN),
            limit: get(&self.limit).min(pool.allowed() as u64),
            running: get(&self.running),
            deliveries: get(&self.deliveries),
            redeliveries: get(&self.redeliveries),
            acked: get(&self.acked),
            rejected: get(&self.rejected),
            requeued: get(&self.requeued),
            unanswered: get(&self.unanswered),
            sessions: get(&self.sessions),
        }
    }
}

impl Meters {
    /// The same for a monitor.
    pub fn reading(&self, plan: &crate::consumer::Plan, pool: &Pool) -> ConsumerReading {
        let figures = self.read(plan, pool);
        ConsumerReading {
            queue: figures.queue,
            event_type: figures.event_type,
            is_consuming: figures.state == State::Consuming,
            workers: figures.workers as u64,
            allowed: figures.limit,
            busy: figures.running,
            prefetch: u64::from(figures.prefetch_in_force),
            deliveries: figures.deliveries,
            redeliveries: figures.redeliveries,
            answered: [figures.acked, figures.rejected, figures.requeued],
            unanswered: figures.unanswered,
            channels: figures.sessions,
            queue_messages: figures.queue_messages,
            times: Arc::clone(&self.times),
        }
    }
}

/// Stands for an unknown depth.
const UNKNOWN: u64 = u64::MAX;

/// Adds one.
pub fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
