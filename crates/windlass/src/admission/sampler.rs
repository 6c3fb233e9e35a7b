//! Who takes the samples: a thread of the worker, so that neither claims nor renewals wait for a file.

use std::{sync::Arc, thread, time::Duration};

use tokio::sync::oneshot;

use super::Controller;
use crate::{
    home::Part,
    worker::shared::{Phase, Shared},
};

/// How often memory is read: as long as a burst may go unseen.
const EVERY: Duration = Duration::from_millis(250);
/// Shortest time between two samples that somebody asked for: long enough for what was started to show.
const ASKED_MIN: Duration = Duration::from_millis(1);

/// Starts the thread. It ends when the worker has stopped.
///
/// # Errors
/// If the thread or its timer cannot be had.
pub(crate) fn spawn(shared: Arc<Shared>) -> std::io::Result<Part> {
    shared.config.home.start("windlass-sampler", async move {
        tokio::select! {
            () = shared.admission.keep_sampling() => {}
            () = shared.phase_reached(Phase::Stopped) => {}
        }
    })
}

/// A thread that takes samples for whoever has no worker that does. It ends when this is dropped.
#[derive(Debug)]
pub struct Sampler {
    _stop: oneshot::Sender<()>,
}

impl Controller {
    /// Takes samples on a thread of its own, so that handlers that block every thread of the runtime do not hold them up.
    ///
    /// # Errors
    /// If the thread or its timer cannot be had.
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

    /// Takes samples for ever. Cancel safe.
    pub async fn keep_sampling(&self) {
        loop {
            self.sample();
            tokio::time::sleep(ASKED_MIN).await;
            loop {
                tokio::select! {
                    () = self.inner.wanted.notified() => break,
                    () = tokio::time::sleep(EVERY) => {}
                }
                // Workers that share a controller each have a sampler, and memory must not halve once for each of them.
                if self.sampled_ago() >= EVERY / 2 {
                    break;
                }
            }
        }
    }
}
