//! Hints to subscribers: coalesced, so that a slow reader costs nothing (HINTS-ONLY).

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use async_trait::async_trait;
use tokio::sync::Notify;
use windlass_core::{Hint, Hints, LeaseRef, Timestamp};

use crate::connection::tx::Effects;

/// Cancel hints kept for a slow reader; its next renewal brings the rest.
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

/// Every subscriber.
#[derive(Debug, Default)]
pub(crate) struct Subscribers {
    list: Mutex<Vec<Weak<Subscriber>>>,
}

impl Subscribers {
    /// Adds a subscriber, which is forgotten when it is dropped.
    pub(crate) fn subscribe(&self) -> Box<dyn Hints> {
        let subscriber = Arc::new(Subscriber::default());
        self.lock().push(Arc::downgrade(&subscriber));
        Box::new(Subscription { subscriber })
    }

    /// Whether there is no subscriber.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Tells every subscriber that tasks are about to become ready.
    pub(crate) fn tell_ready(&self) {
        self.tell(|unread| unread.ready = true);
    }

    /// Tells every subscriber that tasks become ready, while the commit still runs. A claim that arrives now
    /// is served right after the commit, so the wake-up adds no latency. If the commit fails, the hint was
    /// false, which does no harm.
    pub(crate) fn publish_early(&self, effects: &Effects) {
        let ready = effects.ready || effects.resumed;
        if ready || effects.lanes || effects.due.is_some() {
            self.tell(|unread| {
                unread.ready |= ready;
                unread.lanes |= effects.lanes;
                if let Some(due) = effects.due {
                    unread.due = Some(unread.due.map_or(due, |known| known.min(due)));
                }
            });
        }
    }

    /// Tells every subscriber which attempts should end. Only after the commit, because a worker cannot take
    /// it back.
    pub(crate) fn publish_cancels(&self, effects: &Effects) {
        if !effects.cancels.is_empty() {
            self.tell(|unread| {
                for (_, attempt, reason) in &effects.cancels {
                    if unread.cancels.len() < CANCELS_MAX {
                        unread.cancels.push_back((*attempt, reason.clone()));
                    }
                }
            });
        }
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
            // The guard ends before the await; a hint in between leaves a permit in the notifier.
            let hint = self.subscriber.lock().pop();
            if let Some(hint) = hint {
                return hint;
            }
            self.subscriber.arrived.notified().await;
        }
    }
}
