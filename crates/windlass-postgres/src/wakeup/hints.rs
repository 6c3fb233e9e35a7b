//! Hints to subscribers: coalesced, so that a slow reader costs nothing (HINTS-ONLY).

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use async_trait::async_trait;
use tokio::sync::Notify;
use windlass_core::{Hint, Hints, LeaseRef, Timestamp};

/// Cancel hints kept for a slow reader; the next renewal tells it of the others.
const CANCELS_MAX: usize = 1024;

/// What a subscriber has not read yet.
#[derive(Debug, Default)]
struct Unread {
    ready: bool,
    lanes: bool,
    due: Option<Timestamp>,
    cancels: VecDeque<(LeaseRef, String)>,
}

impl Unread {
    fn pop(&mut self) -> Option<Hint> {
        if let Some((attempt, reason)) = self.cancels.pop_front() {
            return Some(Hint::Cancel(attempt, reason));
        }
        if std::mem::take(&mut self.lanes) {
            return Some(Hint::Lanes);
        }
        if std::mem::take(&mut self.ready) {
            return Some(Hint::Ready);
        }
        self.due.take().map(Hint::Due)
    }
}

#[derive(Debug, Default)]
struct Subscriber {
    unread: Mutex<Unread>,
    arrived: Notify,
}

impl Subscriber {
    fn lock(&self) -> MutexGuard<'_, Unread> {
        self.unread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All subscribers of this process.
#[derive(Debug, Default)]
pub(crate) struct Subscribers {
    list: Mutex<Vec<Weak<Subscriber>>>,
}

impl Subscribers {
    /// Adds a subscriber; it is removed when it is dropped.
    pub(crate) fn subscribe(&self) -> Box<dyn Hints> {
        let subscriber = Arc::new(Subscriber::default());
        self.lock().push(Arc::downgrade(&subscriber));
        Box::new(Subscription { subscriber })
    }

    /// Tasks may be ready.
    pub(crate) fn tell_ready(&self) {
        self.tell(|unread| unread.ready = true);
    }

    /// A lane appeared; what is in it may be ready.
    pub(crate) fn tell_lanes(&self) {
        self.tell(|unread| (unread.lanes, unread.ready) = (true, true));
    }

    /// A task was scheduled.
    pub(crate) fn tell_due(&self, due: Timestamp) {
        self.tell(|unread| unread.due = Some(unread.due.map_or(due, |known| known.min(due))));
    }

    /// An operator or a caller asked a running attempt to end.
    pub(crate) fn tell_cancel(&self, lease: LeaseRef, reason: &str) {
        self.tell(|unread| {
            if unread.cancels.len() < CANCELS_MAX {
                unread.cancels.push_back((lease, reason.to_owned()));
            }
        });
    }

    fn tell(&self, change: impl Fn(&mut Unread)) {
        self.lock().retain(|subscriber| {
            let Some(subscriber) = subscriber.upgrade() else { return false };
            change(&mut subscriber.lock());
            subscriber.arrived.notify_one();
            true
        });
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Subscriber>>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Subscription {
    subscriber: Arc<Subscriber>,
}

#[async_trait]
impl Hints for Subscription {
    async fn next(&mut self) -> Hint {
        loop {
            // The guard ends before the await; a hint that arrives in between leaves a permit behind.
            let hint = self.subscriber.lock().pop();
            if let Some(hint) = hint {
                return hint;
            }
            self.subscriber.arrived.notified().await;
        }
    }
}
