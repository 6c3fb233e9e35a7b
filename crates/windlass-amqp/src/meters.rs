//! What a consumer counts. Relaxed atomics on the way of a delivery.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use windlass::quota::Quota;

use crate::ledger::Answer;

/// Whether a consumer gets deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It has a channel and is subscribed.
    Consuming,
    /// It lost its channel and tries to get another.
    Reconnecting,
    /// It takes nothing new and finishes what it has.
    Stopping,
}

/// A reading of what one consumer has done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerFigures {
    /// Its queue.
    pub queue: String,
    /// Its event type, or nothing.
    pub event_type: String,
    /// Whether it gets deliveries.
    pub state: State,
    /// Handlers that run at once, at most.
    pub workers: usize,
    /// Deliveries that the broker may send ahead.
    pub prefetch: u16,
    /// Handlers that may run at present: fewer than the workers only if the consumer is adaptive.
    pub limit: u64,
    /// Handlers that run.
    pub running: u64,
    /// Deliveries taken.
    pub deliveries: u64,
    /// Those that had been delivered before.
    pub redeliveries: u64,
    /// Deliveries that the broker was told are done.
    pub acked: u64,
    /// Deliveries that failed for good.
    pub rejected: u64,
    /// Deliveries that went back into the queue.
    pub requeued: u64,
    /// Results that came after their channel had gone: the broker delivers those messages again.
    pub unanswered: u64,
    /// Channels that were opened, the first included.
    pub sessions: u64,
}

/// The instruments of one consumer.
#[derive(Debug, Default)]
pub struct Meters {
    state: AtomicU8,
    /// Lines about deliveries that failed (SILENT-NEVER).
    pub failures: Quota,
    pub limit: AtomicU64,
    /// Handlers that ended, and the sum of their times.
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
    /// Nothing counted yet; so many handlers may run.
    pub fn limited_to(limit: usize) -> Self {
        Self { limit: AtomicU64::new(limit as u64), ..Self::default() }
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

    pub fn read(&self, plan: &crate::consumer::Plan) -> ConsumerFigures {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ConsumerFigures {
            queue: plan.queue.clone(),
            event_type: plan.event_type.clone(),
            state: self.state(),
            workers: plan.sizes.workers,
            prefetch: plan.sizes.prefetch,
            limit: get(&self.limit),
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

/// One more.
pub fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
