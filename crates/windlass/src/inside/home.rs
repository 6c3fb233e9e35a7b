//! Where the loops of a worker run: on their own threads, so that no handler can delay them. In a simulation
//! they run on the runtime that started the worker, whose clock stands still while any task is ready.

use std::{future::Future, io, thread};

use tokio::sync::oneshot;
use windlass_core::Source;

/// Where the loops of a worker run.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Home {
    /// On their own threads.
    #[default]
    Threads,
    /// On the runtime that started the worker, with random numbers from this seed: the same seed gives the
    /// same run.
    ThisRuntime(u64),
}

impl Home {
    /// The seed that spreads pauses, so that workers do not act at the same time.
    pub(crate) fn seed(self) -> u64 {
        match self {
            Self::Threads => u64::from(std::process::id()),
            Self::ThisRuntime(seed) => seed,
        }
    }

    /// Starts a loop.
    ///
    /// # Errors
    /// If the thread or its timer cannot be created.
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

    /// Starts the loop that claims: on the I/O thread of the source, if there is one.
    ///
    /// # Errors
    /// If the thread or its timer cannot be created.
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
            // Dropped at the end, even after a panic.
            let _end = end;
            part.await;
        };
        match source.run_beside(Box::pin(part)) {
            None => Ok(Part::Beside(ended)),
            Some(part) => self.start(name, part),
        }
    }
}

/// A running loop.
pub(crate) enum Part {
    Thread(thread::JoinHandle<()>),
    Task(tokio::task::JoinHandle<()>),
    /// On a thread of the source.
    Beside(oneshot::Receiver<()>),
}

impl Part {
    /// Waits for its end.
    pub(crate) async fn ended(self) {
        // Other code watches the loop and has seen how it ended.
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
