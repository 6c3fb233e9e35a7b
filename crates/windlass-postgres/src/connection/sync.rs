//! State of this process that many callers share: locks, and times until which something rests.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
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
