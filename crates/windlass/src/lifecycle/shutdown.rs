//! When to stop: the first signal drains, the second hands back at once.

use std::{future::Future, pin::Pin};

use async_trait::async_trait;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Tells a worker when to stop. Any future works: its end starts the drain.
#[async_trait]
pub trait Shutdown: Send + 'static {
    /// Resolves when the worker should stop claiming and finish its running tasks.
    async fn drain(self: Pin<&mut Self>);
    /// Resolves when the worker should hand back the tasks that still run. Called after [`Shutdown::drain`].
    async fn hand_back(self: Pin<&mut Self>);
}

#[async_trait]
impl<F: Future<Output = ()> + Send + 'static> Shutdown for F {
    async fn drain(self: Pin<&mut Self>) {
        self.await;
    }

    async fn hand_back(self: Pin<&mut Self>) {
        std::future::pending::<()>().await;
    }
}

/// SIGTERM or Ctrl-C: the first drains, the second hands back.
#[derive(Debug)]
pub struct Signals {
    terminate: Option<Signal>,
    interrupt: Option<Signal>,
}

/// Stops on SIGTERM or Ctrl-C; a second one hands back at once. Call it inside a tokio runtime.
///
/// ```no_run
/// # async fn f(worker: windlass::Worker) -> Result<(), windlass::WorkerError> {
/// worker.run(windlass::shutdown_signal()).await?;
/// # Ok(()) }
/// ```
pub fn shutdown_signal() -> Signals {
    Signals {
        terminate: signal(SignalKind::terminate()).ok(),
        interrupt: signal(SignalKind::interrupt()).ok(),
    }
}

impl Signals {
    /// Waits for the next of the two signals. If a signal cannot be registered, it never arrives.
    pub async fn next(&mut self) {
        tokio::select! {
            () = receive(&mut self.terminate) => {}
            () = receive(&mut self.interrupt) => {}
        }
    }
}

async fn receive(signal: &mut Option<Signal>) {
    let received = match signal {
        Some(signal) => signal.recv().await,
        None => None,
    };
    if received.is_none() {
        std::future::pending::<()>().await;
    }
}

#[async_trait]
impl Shutdown for Signals {
    async fn drain(self: Pin<&mut Self>) {
        self.get_mut().next().await;
    }

    async fn hand_back(self: Pin<&mut Self>) {
        self.get_mut().next().await;
    }
}
