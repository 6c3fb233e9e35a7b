//! State of this process that many callers share: locks, times until which something rests, and how long a
//! connection waits for its server.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use crate::connection::options::Clock;

/// A mutex that a panic does not spoil: its holders leave the value whole at every step.
#[derive(Debug, Default)]
pub(crate) struct Lock<T>(Mutex<T>);

impl<T> Lock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A time until which something rests, by the clock of the store.
pub(crate) struct Pause {
    clock: Clock,
    until: Lock<Option<Instant>>,
}

impl Pause {
    /// It is over from the beginning.
    pub(crate) fn new(clock: &Clock) -> Self {
        Self { clock: Arc::clone(clock), until: Lock::default() }
    }

    pub(crate) fn now(&self) -> Instant {
        (self.clock)()
    }

    pub(crate) fn is_over(&self) -> bool {
        let until = *self.until.lock();
        until.is_none_or(|until| self.now() >= until)
    }

    /// Begins it anew.
    pub(crate) fn begin(&self, length: Duration) {
        self.until(self.now() + length);
    }

    pub(crate) fn until(&self, end: Instant) {
        *self.until.lock() = Some(end);
    }

    pub(crate) fn end(&self) {
        *self.until.lock() = None;
    }

    /// Whether it is over. Then the next one begins, so that one caller alone has the turn.
    pub(crate) fn turn(&self, length: Duration) -> bool {
        let mut until = self.until.lock();
        let is_over = until.is_none_or(|until| self.now() >= until);
        if is_over {
            *until = Some(self.now() + length);
        }
        is_over
    }
}

/// How long a statement may take before its connection is closed. Nothing else notices a peer that has become
/// silent.
#[derive(Debug)]
pub(crate) struct Patience(AtomicU64);

impl Patience {
    pub(crate) fn new(limit: Duration) -> Self {
        Self(AtomicU64::new(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)))
    }

    /// Lowers the limit, from now on.
    pub(crate) fn lower(&self, limit: Duration) {
        let limit = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        self.0.fetch_min(limit.max(1), Ordering::Relaxed);
    }

    pub(crate) fn limit(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
    }
}
