//! The pool by behaviour: dispatch, waiting for room, panics and deadlines, slots taken in advance, stopping.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod dispatch;
mod ending;
mod reserve;
mod settings;
mod stop;
mod waiting;

use std::sync::Arc;

use tokio::sync::{Semaphore, mpsc};
use windlass::Pool;

fn pool(size: usize, buffer: usize) -> Pool {
    Pool::builder().size(size).buffer(buffer).build().unwrap()
}

/// Keeps tasks running until the test lets them go, and reports which have started.
struct Gate {
    open: Arc<Semaphore>,
    starting: mpsc::UnboundedSender<usize>,
    started: mpsc::UnboundedReceiver<usize>,
}

impl Gate {
    fn new() -> Self {
        let (starting, started) = mpsc::unbounded_channel();
        Self { open: Arc::new(Semaphore::new(0)), starting, started }
    }

    /// A task that reports its start and ends with its number when it is let go.
    fn task(&self, number: usize) -> impl Future<Output = usize> + Send + use<> {
        let (open, starting) = (self.open.clone(), self.starting.clone());
        async move {
            starting.send(number).unwrap();
            open.acquire().await.unwrap().forget();
            number
        }
    }

    /// The number of the next task that starts.
    async fn started(&mut self) -> usize {
        self.started.recv().await.unwrap()
    }

    fn let_go(&self, tasks: usize) {
        self.open.add_permits(tasks);
    }
}

/// Reports when it is dropped.
struct OnDrop(Option<tokio::sync::oneshot::Sender<()>>);

impl OnDrop {
    fn new() -> (Self, tokio::sync::oneshot::Receiver<()>) {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        (Self(Some(sender)), receiver)
    }
}

impl Drop for OnDrop {
    fn drop(&mut self) {
        let _ = self.0.take().unwrap().send(());
    }
}
