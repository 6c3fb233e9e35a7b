//! The bytes of one connection. A task on the driver's thread moves them; whoever sends a statement from another thread moves
//! it with its own hands, because a thread that sleeps takes longer to wake than the statement takes to send.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use tokio::task::unconstrained;
use tokio_postgres::{Connection, Error, Socket};

use crate::connection::{caller_waker::Bell, error, tls};

/// A connection as the driver sees it.
pub(crate) type Line = Connection<Socket, tls::Stream<Socket>>;

/// See the module.
pub(crate) struct Wire {
    /// Gone when the connection has ended, or whoever moves it has.
    line: Mutex<Option<Line>>,
    /// Wakes the task that moves it: whatever happens on the socket is told to that one, whoever looked last.
    bell: Arc<Bell>,
}

impl Wire {
    pub(crate) fn new(line: Line) -> Arc<Self> {
        Arc::new(Self { line: Mutex::new(Some(line)), bell: Arc::default() })
    }

    /// Moves bytes until the connection ends.
    pub(crate) async fn run(self: Arc<Self>) -> Result<(), Error> {
        // Without somebody who moves it a connection is closed, and those who wait for answers are told.
        let _closes = Closes(&self);
        std::future::poll_fn(|cx| {
            self.bell.wakes(cx.waker());
            self.advance(&mut self.lock())
        })
        .await
    }

    /// Hands something over and sends it; if somebody is at it, they do.
    pub(crate) fn send<T>(&self, hand_over: impl FnOnce() -> T) -> T {
        let Some(hold) = self.bell.hold() else { return hand_over() };
        let answer = hand_over();
        if hold.take() {
            match self.line.try_lock().map(|mut line| self.advance(&mut line)) {
                Ok(Poll::Pending) => {}
                Ok(Poll::Ready(Err(error))) => {
                    tracing::debug!(error = %error::text_of(&error), "a connection ended");
                    self.bell.ring();
                }
                Ok(Poll::Ready(Ok(()))) | Err(_) => self.bell.ring(),
            }
        }
        answer
    }

    fn advance(&self, line: &mut Option<Line>) -> Poll<Result<(), Error>> {
        let Some(open) = line else { return Poll::Ready(Ok(())) };
        let waker = Waker::from(Arc::clone(&self.bell));
        // Not on the budget of a caller: what that has left undone nobody else would know of.
        let mut open = unconstrained(open);
        let moved = Pin::new(&mut open).poll(&mut Context::from_waker(&waker));
        if moved.is_ready() {
            *line = None;
        }
        moved
    }

    fn lock(&self) -> MutexGuard<'_, Option<Line>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes the connection when whoever moves it ends, however that comes about.
struct Closes<'a>(&'a Wire);

impl Drop for Closes<'_> {
    fn drop(&mut self) {
        // Dropped outside of the lock.
        let line = self.0.lock().take();
        drop(line);
    }
}
