//! State that callers and the writer share.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;
use windlass_core::{
    Error,
    source::hints::Subscribers,
    usage::{EnqueueMeter, PoolMeter},
};

use crate::{
    connection::{
        call::{Queue, Wait, Waiting},
        lock::Lock,
        options::Options,
        reader::{READERS, Readers},
    },
    leases::renew::Leases,
    operate::awaited::Awaited,
};

/// State that callers and the writer share.
pub(crate) struct Shared {
    pub queue: Queue,
    pub leases: Leases,
    pub awaited: Arc<Awaited>,
    pub subscribers: Subscribers,
    pub options: Options,
    /// Set once, with the reason, when the store has failed permanently.
    pub fatal: watch::Sender<Option<String>>,
    /// Set once, after the writer has ended and closed the file.
    pub ended: watch::Sender<bool>,
    pub readers: Option<Readers>,
    pub lock: Mutex<Option<Lock>>,
    pub meters: Meters,
}

/// Counters of the store's use.
#[derive(Debug)]
pub(crate) struct Meters {
    pub enqueues: EnqueueMeter,
    pub writer: Arc<PoolMeter>,
    pub readers: Arc<PoolMeter>,
}

impl Default for Meters {
    fn default() -> Self {
        let pool = |name, size| Arc::new(PoolMeter::new(name, size));
        Self {
            enqueues: EnqueueMeter::default(),
            writer: pool("writer", 1),
            readers: pool("readers", READERS as u32),
        }
    }
}

/// Releases the store when the writer ends, even if it panics.
pub(crate) struct Ending(pub Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let reason = "its writer thread panicked".to_owned();
            self.0.fatal.send_replace(Some(reason.clone()));
            self.0.queue.close(Error::Fatal(reason.clone()));
            let mut waiting = Waiting::default();
            self.0.queue.take_all(&mut waiting, Wait::No);
            while let Some(request) = waiting.pop() {
                request.fail(Error::Fatal(reason.clone()));
            }
        }
        self.0.lock.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.0.ended.send_replace(true);
    }
}
