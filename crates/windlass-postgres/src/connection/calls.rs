//! A line of callers whom one task serves, many at a time: while some are served the next gather. There is no timer, so an
//! idle store serves at once; and a caller who finds nobody there may serve themselves.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use windlass_core::{Error, Result};

use crate::connection::pool::closed;

/// Callers that may wait; beyond that a call fails at once.
const WAITING_MAX: usize = 100_000;

/// Callers who wait to be served together.
pub(crate) struct Line<C> {
    /// What they bring, for whoever is told that there are too many.
    what: &'static str,
    waiting: Mutex<Waiting<C>>,
    arrived: Notify,
}

/// Who is at it now.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Serving {
    Nobody,
    /// Whoever serves the line.
    Server,
    /// A caller, for themselves.
    Caller,
}

struct Waiting<C> {
    calls: Vec<C>,
    serving: Serving,
    /// Nobody serves any more.
    is_closed: bool,
}

impl<C> Line<C> {
    pub(crate) fn new(what: &'static str) -> Self {
        let waiting = Waiting { calls: Vec::new(), serving: Serving::Nobody, is_closed: false };
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

    /// Takes from the front, as many as `fit`; nobody is left standing for ever because too much was brought at once. Nobody is
    /// taken while a caller serves themselves; whoever was taken the last time has been served.
    pub(crate) fn take(&self, fit: impl FnOnce(&[C]) -> usize) -> Vec<C> {
        let mut waiting = self.lock();
        if waiting.serving == Serving::Caller {
            return Vec::new();
        }
        let n = fit(&waiting.calls).max(1).min(waiting.calls.len());
        waiting.serving = if n > 0 { Serving::Server } else { Serving::Nobody };
        waiting.calls.drain(..n).collect()
    }

    /// For a caller who finds nobody in line and nobody being served: the right to serve themselves, while the next gather.
    pub(crate) fn enter(self: &Arc<Self>) -> Option<Turn<C>> {
        let mut waiting = self.lock();
        let is_free = waiting.calls.is_empty() && waiting.serving == Serving::Nobody && !waiting.is_closed;
        is_free.then(|| {
            waiting.serving = Serving::Caller;
            Turn(Arc::clone(self))
        })
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

/// See [`Line::enter`]; whoever came meanwhile is served when it is dropped.
pub(crate) struct Turn<C>(Arc<Line<C>>);

impl<C> Drop for Turn<C> {
    fn drop(&mut self) {
        let mut waiting = self.0.lock();
        waiting.serving = Serving::Nobody;
        if !waiting.calls.is_empty() {
            self.0.arrived.notify_one();
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> Arc<Line<u32>> {
        Arc::new(Line::new("numbers"))
    }

    #[test]
    fn a_caller_serves_themselves_only_where_nobody_stands_or_is_served() {
        let line = line();
        let turn = line.enter().unwrap();
        assert!(line.enter().is_none());
        line.join(1).unwrap();
        assert!(line.take(<[u32]>::len).is_empty(), "one at a time");
        drop(turn);
        assert!(line.enter().is_none(), "whoever stands in line comes first");
        assert_eq!(line.take(<[u32]>::len), [1]);
        assert!(line.enter().is_none(), "being served");
        assert!(line.take(<[u32]>::len).is_empty());
        assert!(line.enter().is_some());
    }

    #[tokio::test]
    async fn whoever_came_during_a_turn_is_told_of_its_end() {
        let line = line();
        let turn = line.enter().unwrap();
        line.join(1).unwrap();
        line.arrived().await;
        drop(turn);
        line.arrived().await;
        assert_eq!(line.take(<[u32]>::len), [1]);
    }

    #[test]
    fn nobody_enters_a_closed_line() {
        let line = line();
        drop(line.closes());
        assert!(line.enter().is_none());
        assert!(line.join(1).is_err());
    }
}
