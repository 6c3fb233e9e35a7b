//! The thread of a worker that takes the samples, so that neither claims nor renewals wait for a file.

use std::{sync::Arc, thread, time::Duration};

use tokio::sync::oneshot;

use super::Controller;
use crate::{
    inside::home::Part,
    worker::shared::{Phase, Shared},
};

/// How often memory is read; a burst may go unnoticed for so long.
const EVERY: Duration = Duration::from_millis(250);
/// Shortest time between two requested samples: long enough for the started tasks to use memory.
const ASKED_MIN: Duration = Duration::from_millis(1);

/// Starts the thread. It ends when the worker has stopped.
///
/// # Errors
/// If the thread or its timer cannot be created.
pub(crate) fn spawn(shared: Arc<Shared>) -> std::io::Result<Part> {
    shared.config.home.start("windlass-sampler", async move {
        tokio::select! {
            () = shared.admission.keep_sampling() => {}
            () = shared.phase_reached(Phase::Stopped) => {}
        }
    })
}

/// A thread that takes samples for a process without a worker. It ends when this is dropped.
#[derive(Debug)]
pub struct Sampler {
    _stop: oneshot::Sender<()>,
}

impl Controller {
    /// Takes samples on its own thread, so that handlers that block every thread of the runtime do not delay
    /// them.
    ///
    /// # Errors
    /// If the thread or its timer cannot be created.
    pub fn start_sampling(&self) -> std::io::Result<Sampler> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let controller = self.clone();
        thread::Builder::new().name("windlass-sampler".into()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = controller.keep_sampling() => {}
                    _ = stopped => {}
                }
            });
        })?;
        Ok(Sampler { _stop: stop })
    }

    /// Takes samples until it is dropped. Cancel safe.
    pub async fn keep_sampling(&self) {
        loop {
            self.sample();
            tokio::time::sleep(ASKED_MIN).await;
            loop {
                tokio::select! {
                    () = self.inner.wanted.notified() => break,
                    () = tokio::time::sleep(EVERY) => {}
                }
                // Each worker that shares this controller has a sampler. Without this check each of them
                // would halve the limit once.
                if self.sampled_ago() >= EVERY / 2 {
                    break;
                }
            }
        }
    }
}
