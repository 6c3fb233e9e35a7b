//! Hints to whoever subscribed: coalesced, so that a slow reader costs nothing (HINTS-ONLY).

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use async_trait::async_trait;
use tokio::sync::Notify;
use windlass_core::{Hint, Hints, LeaseRef, Timestamp};

use crate::tx::Effects;

/// Cancel hints kept for a slow reader; the next renewal tells it of the rest.
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

/// Everybody who listens.
#[derive(Debug, Default)]
pub(crate) struct Subscribers {
    list: Mutex<Vec<Weak<Subscriber>>>,
}

impl Subscribers {
    /// Adds a listener; it is forgotten when it is dropped.
    pub(crate) fn subscribe(&self) -> Box<dyn Hints> {
        let subscriber = Arc::new(Subscriber::default());
        self.lock().push(Arc::downgrade(&subscriber));
        Box::new(Subscription { subscriber })
    }

    /// Tells everybody what a committed transaction brought about.
    pub(crate) fn publish(&self, effects: &Effects) {
        if !effects.ready && !effects.lanes && effects.due.is_none() && effects.cancels.is_empty() {
            return;
        }
        self.lock().retain(|subscriber| {
            let Some(subscriber) = subscriber.upgrade() else { return false };
            let mut unread = subscriber.lock();
            unread.ready |= effects.ready;
            unread.lanes |= effects.lanes;
            if let Some(due) = effects.due {
                unread.due = Some(unread.due.map_or(due, |known| known.min(due)));
            }
            for (_, attempt, reason) in &effects.cancels {
                if unread.cancels.len() < CANCELS_MAX {
                    unread.cancels.push_back((*attempt, reason.clone()));
                }
            }
            drop(unread);
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
            // The guard ends before the await; a hint that comes in between leaves a permit behind.
            let hint = self.subscriber.lock().pop();
            if let Some(hint) = hint {
                return hint;
            }
            self.subscriber.arrived.notified().await;
        }
    }
}
