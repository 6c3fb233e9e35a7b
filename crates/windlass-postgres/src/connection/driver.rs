//! The threads on which connections are driven. They are apart from the callers' runtimes: a runtime that
//! ends or blocks closes no connection.

use std::thread::JoinHandle;

use tokio::{runtime::Handle, sync::oneshot};

use crate::connection::sync::Lock;

/// A thread that reads and writes the sockets of connections.
pub(crate) struct Driver {
    handle: Handle,
    stop: Lock<Option<(oneshot::Sender<()>, JoinHandle<()>)>>,
}

impl Driver {
    /// Starts a thread of this name.
    pub(crate) fn start(name: &str) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            let _ = runtime.block_on(stopped);
            runtime.shutdown_background();
        })?;
        Ok(Self { handle, stop: Lock::new(Some((stop, thread))) })
    }

    /// The runtime of the thread.
    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let stop = self.stop.lock().take();
        if let Some((stop, thread)) = stop {
            let _ = stop.send(());
            // The last handle may be dropped on this very thread, by a task that runs on it.
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}
