//! The bytes of one connection. A task on the driver's thread moves them; whoever sends a statement from another thread gives
//! it a push with its own hands, because a thread that sleeps takes longer to wake than the statement takes to send.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, Waker},
};

use tokio_postgres::{Connection, Error, Socket};

use crate::tls;

/// A connection as the driver sees it.
pub(crate) type Line = Connection<Socket, tls::Stream<Socket>>;

/// See the module.
pub(crate) struct Wire {
    ends: Mutex<Ends>,
}

struct Ends {
    /// Gone when the connection has ended, or whoever moves it has.
    line: Option<Line>,
    /// Of the task that moves it: whatever happens on the socket is told to that one, whoever looked last.
    mover: Option<Waker>,
}

impl Wire {
    pub(crate) fn new(line: Line) -> Arc<Self> {
        Arc::new(Self { ends: Mutex::new(Ends { line: Some(line), mover: None }) })
    }

    /// Moves bytes until the connection ends.
    pub(crate) async fn run(self: Arc<Self>) -> Result<(), Error> {
        // Without somebody who moves it a connection is closed, and those who wait for answers are told.
        let _closes = Closes(&self);
        std::future::poll_fn(|cx| {
            let mut ends = self.lock();
            ends.mover = Some(cx.waker().clone());
            ends.advance(cx)
        })
        .await
    }

    /// Sends what was handed over; if somebody is at it, they do.
    pub(crate) fn push(&self) {
        let Ok(mut ends) = self.ends.try_lock() else { return };
        let Some(mover) = ends.mover.clone() else { return };
        if ends.advance(&mut Context::from_waker(&mover)).is_ready() {
            mover.wake();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Ends> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ends {
    fn advance(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let Some(line) = &mut self.line else { return Poll::Ready(Ok(())) };
        let moved = Pin::new(line).poll(cx);
        if moved.is_ready() {
            self.line = None;
        }
        moved
    }
}

/// Closes the connection when whoever moves it ends, however that comes about.
struct Closes<'a>(&'a Wire);

impl Drop for Closes<'_> {
    fn drop(&mut self) {
        // Dropped outside of the lock.
        let line = self.0.lock().line.take();
        drop(line);
    }
}
