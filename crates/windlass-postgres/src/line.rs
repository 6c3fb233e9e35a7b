//! A line of callers whom one task serves, many at a time: while some are served the next gather. There is no timer, so an
//! idle store serves at once.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use windlass_core::{Error, Result};

use crate::pool::closed;

/// Callers that may wait; beyond that a call fails at once.
const WAITING_MAX: usize = 100_000;

/// Callers who wait to be served together.
pub(crate) struct Line<C> {
    /// What they bring, for whoever is told that there are too many.
    what: &'static str,
    waiting: Mutex<Waiting<C>>,
    arrived: Notify,
}

struct Waiting<C> {
    calls: Vec<C>,
    /// Nobody serves any more.
    is_closed: bool,
}

impl<C> Line<C> {
    pub(crate) fn new(what: &'static str) -> Self {
        let waiting = Waiting { calls: Vec::new(), is_closed: false };
        Self { what, waiting: Mutex::new(waiting), arrived: Notify::new() }
    }

    /// Stands in line.
    pub(crate) fn join(&self, call: C) -> Result<()> {
        {
            let mut waiting = self.lock();
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

    /// Takes from the front, as many as `fit`; nobody is left standing for ever because too much was brought at once.
    pub(crate) fn take(&self, fit: impl FnOnce(&[C]) -> usize) -> Vec<C> {
        let mut waiting = self.lock();
        let n = fit(&waiting.calls).max(1).min(waiting.calls.len());
        waiting.calls.drain(..n).collect()
    }

    /// Resolves when somebody has come since the last time.
    pub(crate) async fn arrived(&self) {
        self.arrived.notified().await;
    }

    /// Closes the line when whoever serves it ends, however that comes about.
    pub(crate) fn closes(&self) -> Closes<'_, C> {
        Closes(self)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting<C>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See [`Line::closes`].
pub(crate) struct Closes<'a, C>(&'a Line<C>);

impl<C> Drop for Closes<'_, C> {
    fn drop(&mut self) {
        // Whoever still waits is told, by dropping the other end.
        let mut waiting = self.0.lock();
        waiting.is_closed = true;
        waiting.calls.clear();
    }
}
