//! The subscribers to a store's hints, in the store's process: coalesced, so that a slow reader costs nothing
//! (HINTS-ONLY).

use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Poll, Waker},
};

use async_trait::async_trait;

use super::{Hint, Hints, LeaseRef};
use crate::time::Timestamp;

/// Cancel hints kept for a slow reader; its next renewal tells it of the others.
const CANCELS_MAX: usize = 1024;

/// What a subscriber has not read yet.
#[derive(Debug, Default)]
pub struct Unread {
    ready: bool,
    lanes: bool,
    due: Option<Timestamp>,
    cancels: VecDeque<(LeaseRef, String)>,
    /// The reader, if it waits.
    reader: Option<Waker>,
}

impl Unread {
    /// Tasks may be ready.
    pub fn ready(&mut self) {
        self.ready = true;
    }

    /// A lane appeared.
    pub fn lanes(&mut self) {
        self.lanes = true;
    }

    /// A task was scheduled.
    pub fn due(&mut self, due: Timestamp) {
        self.due = Some(self.due.map_or(due, |known| known.min(due)));
    }

    /// An operator or a caller asked a running attempt to end.
    pub fn cancel(&mut self, lease: LeaseRef, reason: &str) {
        if self.cancels.len() < CANCELS_MAX {
            self.cancels.push_back((lease, reason.to_owned()));
        }
    }

    fn pop(&mut self) -> Option<Hint> {
        if let Some((lease, reason)) = self.cancels.pop_front() {
            return Some(Hint::Cancel(lease, reason));
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
struct Subscriber(Mutex<Unread>);

impl Subscriber {
    fn lock(&self) -> MutexGuard<'_, Unread> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All subscribers of a process.
#[derive(Debug, Default)]
pub struct Subscribers(Mutex<Vec<Weak<Subscriber>>>);

impl Subscribers {
    /// Adds a subscriber; it is removed when it is dropped.
    pub fn subscribe(&self) -> Box<dyn Hints> {
        let subscriber = Arc::new(Subscriber::default());
        self.lock().push(Arc::downgrade(&subscriber));
        Box::new(Subscription(subscriber))
    }

    /// Whether there is no subscriber.
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Tasks may be ready.
    pub fn tell_ready(&self) {
        self.tell(Unread::ready);
    }

    /// A lane appeared; what is in it may be ready.
    pub fn tell_lanes(&self) {
        self.tell(|unread| (unread.lanes, unread.ready) = (true, true));
    }

    /// A task was scheduled.
    pub fn tell_due(&self, due: Timestamp) {
        self.tell(|unread| unread.due(due));
    }

    /// Tells every subscriber.
    pub fn tell(&self, change: impl Fn(&mut Unread)) {
        self.lock().retain(|subscriber| {
            let Some(subscriber) = subscriber.upgrade() else { return false };
            let mut unread = subscriber.lock();
            change(&mut unread);
            let reader = unread.reader.take();
            drop(unread);
            if let Some(reader) = reader {
                reader.wake();
            }
            true
        });
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Subscriber>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Subscription(Arc<Subscriber>);

#[async_trait]
impl Hints for Subscription {
    async fn next(&mut self) -> Hint {
        poll_fn(|context| {
            let mut unread = self.0.lock();
            if let Some(hint) = unread.pop() {
                return Poll::Ready(hint);
            }
            // Under the same lock: a hint that arrives now finds the reader.
            unread.reader = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }
}
