//! Where the loops of a worker run: each on a thread of its own, so that no handler can hold them up; in a simulation on the
//! runtime that the worker was started on, whose clock stands still while anybody has something to do.

use std::{future::Future, io, thread};

use tokio::sync::oneshot;
use windlass_core::Source;

/// Where the loops of a worker run.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Home {
    /// On threads of their own.
    #[default]
    Threads,
    /// On the runtime that the worker was started on, with chance from this seed: the same seed, the same run.
    ThisRuntime(u64),
}

impl Home {
    /// What pauses are spread by, so that workers do not move in step.
    pub(crate) fn seed(self) -> u64 {
        match self {
            Self::Threads => u64::from(std::process::id()),
            Self::ThisRuntime(seed) => seed,
        }
    }

    /// Starts a loop.
    ///
    /// # Errors
    /// If the thread or its timer cannot be had.
    pub(crate) fn start(
        self,
        name: &str,
        part: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<Part> {
        match self {
            Self::Threads => {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
                let thread = thread::Builder::new().name(name.to_owned());
                Ok(Part::Thread(thread.spawn(move || runtime.block_on(part))?))
            }
            Self::ThisRuntime(_) => Ok(Part::Task(tokio::spawn(part))),
        }
    }

    /// Starts the loop that claims: on the thread that moves the bytes of the source, if there is one.
    ///
    /// # Errors
    /// If the thread or its timer cannot be had.
    pub(crate) fn start_beside(
        self,
        source: &dyn Source,
        name: &str,
        part: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<Part> {
        if self != Self::Threads {
            return self.start(name, part);
        }
        let (end, ended) = oneshot::channel::<()>();
        let part = async move {
            // Dropped at the end, also if that is a panic.
            let _end = end;
            part.await;
        };
        match source.run_beside(Box::pin(part)) {
            None => Ok(Part::Beside(ended)),
            Some(part) => self.start(name, part),
        }
    }
}

/// A loop that runs.
pub(crate) enum Part {
    Thread(thread::JoinHandle<()>),
    Task(tokio::task::JoinHandle<()>),
    /// On a thread of the source.
    Beside(oneshot::Receiver<()>),
}

impl Part {
    /// Waits for its end.
    pub(crate) async fn ended(self) {
        // How it died, if it did, has been seen by those that watch it.
        match self {
            Self::Thread(thread) => {
                let _ = tokio::task::spawn_blocking(move || thread.join()).await;
            }
            Self::Task(task) => {
                let _ = task.await;
            }
            Self::Beside(ended) => {
                let _ = ended.await;
            }
        }
    }
}
