//! Serves the calls of many callers together: while some are served, the next ones gather. There is no timer,
//! so an idle store serves at once.

use tokio::sync::Notify;
use windlass_core::{Error, Result};

use crate::connection::{pool::closed, sync::Lock};

/// Calls that may wait; beyond that a call fails at once.
const WAITING_MAX: usize = 100_000;

/// Calls that wait until they are served together.
pub(crate) struct Calls<C> {
    /// What the calls are, for the error when there are too many.
    what: &'static str,
    waiting: Lock<Waiting<C>>,
    arrived: Notify,
}

struct Waiting<C> {
    calls: Vec<C>,
    /// The task that serves them has ended.
    is_closed: bool,
}

impl<C> Calls<C> {
    pub(crate) fn new(what: &'static str) -> Self {
        let waiting = Waiting { calls: Vec::new(), is_closed: false };
        Self { what, waiting: Lock::new(waiting), arrived: Notify::new() }
    }

    /// Adds a call.
    pub(crate) fn add(&self, call: C) -> Result<()> {
        {
            let mut waiting = self.waiting.lock();
            if waiting.is_closed {
                return Err(closed());
            }
            if waiting.calls.len() >= WAITING_MAX {
                let what = self.what;
                return Err(Error::Unavailable(format!("{WAITING_MAX} {what} wait for the server already")));
            }
            waiting.calls.push(call);
        }
        self.arrived.notify_one();
        Ok(())
    }

    /// Takes the oldest calls, as many as `fit`, but at least one: a call that is too large must not wait for
    /// ever.
    pub(crate) fn take(&self, fit: impl FnOnce(&[C]) -> usize) -> Vec<C> {
        let mut waiting = self.waiting.lock();
        let n = fit(&waiting.calls).max(1).min(waiting.calls.len());
        waiting.calls.drain(..n).collect()
    }

    /// Resolves when a call has been added since the last time.
    pub(crate) async fn arrived(&self) {
        self.arrived.notified().await;
    }

    /// A guard for the task that serves the calls. When the guard is dropped, new calls are refused, and
    /// waiting calls are dropped: their callers get an error.
    pub(crate) fn closes(&self) -> Closes<'_, C> {
        Closes(self)
    }
}

/// See [`Calls::closes`].
pub(crate) struct Closes<'a, C>(&'a Calls<C>);

impl<C> Drop for Closes<'_, C> {
    fn drop(&mut self) {
        let mut waiting = self.0.waiting.lock();
        waiting.is_closed = true;
        waiting.calls.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_is_too_large_is_taken_alone() {
        let calls = Calls::new("numbers");
        calls.add(1).unwrap();
        calls.add(2).unwrap();
        assert_eq!(calls.take(|_| 0), [1]);
        assert_eq!(calls.take(<[u32]>::len), [2]);
        assert!(calls.take(<[u32]>::len).is_empty());
    }

    #[test]
    fn calls_are_refused_when_nothing_serves_them() {
        let calls = Calls::new("numbers");
        drop(calls.closes());
        assert!(calls.add(1).is_err());
    }
}
