//! The client of an application: enqueue, look up, cancel, wait for the end.

mod enqueue;
mod enqueue_all;
mod jobs;
mod output;
mod queues;
mod resend;
mod schedules;
pub(crate) mod waiters;

use std::{fmt, time::Duration};

use serde::de::DeserializeOwned;
use windlass_core::{
    Error, NewTask, Result, TaskId, TaskRecord, repeat,
    store::{Redrive, SharedStore},
    task::Key,
};

pub use enqueue::Enqueue;
pub use enqueue_all::EnqueueAll;
pub use jobs::Jobs;
pub use queues::{Queue, Queues};
pub use schedules::{Schedule, Schedules};
pub use waiters::{WAIT_INTERVAL, Waiters};

use crate::{task::Task, trace::Tracer};

/// Enqueues tasks and looks them up. Cheap to clone; clones share their waits.
///
/// ```
/// use windlass::{Client, Task, TaskState};
///
/// #[derive(serde::Serialize, serde::Deserialize, Task)]
/// struct Greet(String);
///
/// # #[tokio::main] async fn main() -> anyhow::Result<()> {
/// let client = Client::new(windlass::open("sqlite::memory:").await?);
/// let greet = client.enqueue(Greet("Ada".into())).job("tenant-7").key("greet-ada").await?;
/// let again = client.enqueue(Greet("Ada".into())).job("tenant-7").key("greet-ada").await?;
/// assert_eq!((greet.id, again.existing), (again.id, true));
///
/// assert_eq!(client.cancel(greet.id, "not today").await?, TaskState::Cancelled);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Client {
    store: SharedStore,
    waiters: Waiters,
    tracer: Option<Tracer>,
}

impl Client {
    /// A client of this store.
    pub fn new(store: SharedStore) -> Self {
        Self { waiters: Waiters::new(store.clone()), store, tracer: None }
    }

    /// Records every enqueue as a span of a trace, which the tasks pass on to their workers.
    #[must_use]
    pub fn tracer(mut self, tracer: Tracer) -> Self {
        self.tracer = Some(tracer);
        self
    }

    /// The store of this client.
    pub fn store(&self) -> &SharedStore {
        &self.store
    }

    /// The recurring tasks.
    pub fn schedules(&self) -> Schedules {
        Schedules::new(self.store.clone())
    }

    /// The queues: how many tasks each has, pause and resume.
    pub fn queues(&self) -> Queues {
        Queues::new(self.store.clone())
    }

    /// The jobs: their limits and delays, how many tasks each has, pause, resume, cancel and remove.
    pub fn jobs(&self) -> Jobs {
        Jobs::new(self.store.clone())
    }

    /// Starts to enqueue a task: change settings of its type if needed, then `.await` it.
    ///
    /// When the future ends in success, the task is durably stored.
    #[expect(clippy::needless_pass_by_value, reason = "the client owns the task from here on")]
    pub fn enqueue<T: Task>(&self, task: T) -> Enqueue {
        Enqueue::new(self.clone(), task.new_task())
    }

    /// The same for a task without a type.
    pub fn enqueue_raw(&self, task: NewTask) -> Enqueue {
        Enqueue::new(self.clone(), Ok(task))
    }

    /// Enqueues many tasks in one commit, all or none, when it is awaited; the answers are in the order of
    /// the tasks.
    ///
    /// [`Client::enqueue_all_keyed`] gives each task a key, so that the call can be repeated.
    pub fn enqueue_all<T: Task>(&self, tasks: impl IntoIterator<Item = T>) -> EnqueueAll {
        EnqueueAll::new(self.clone(), tasks.into_iter().map(|task| task.new_task()).collect())
    }

    /// The same with a key for each task. After an error that leaves open whether the call took effect, the
    /// caller may repeat it: existing tasks are answered with `existing`, and none is added twice.
    ///
    /// ```
    /// # use windlass::{Client, Task};
    /// # #[derive(serde::Serialize, serde::Deserialize, Task)] struct Invoice(u32);
    /// # #[tokio::main] async fn main() -> anyhow::Result<()> {
    /// # let client = Client::new(windlass::open("sqlite::memory:").await?);
    /// let invoices = || (1..=3).map(|n| (format!("invoice-{n}"), Invoice(n)));
    /// let first = client.enqueue_all_keyed(invoices()).await?;
    /// let again = client.enqueue_all_keyed(invoices()).await?;
    /// assert!(again.iter().all(|task| task.existing));
    /// assert_eq!(again[2].id, first[2].id);
    /// # Ok(()) }
    /// ```
    pub fn enqueue_all_keyed<K: Into<String>, T: Task>(
        &self,
        tasks: impl IntoIterator<Item = (K, T)>,
    ) -> EnqueueAll {
        let keyed = |(key, task): (K, T)| {
            let key = Key { text: key.into(), ignore_conflict: false };
            Ok(NewTask { key: Some(key), ..task.new_task()? })
        };
        EnqueueAll::new(self.clone(), tasks.into_iter().map(keyed).collect())
    }

    /// The same for tasks without a type, of any kinds and queues.
    pub fn enqueue_all_raw(&self, tasks: Vec<NewTask>) -> EnqueueAll {
        EnqueueAll::new(self.clone(), Ok(tasks))
    }

    /// One task, unfinished or from the history.
    ///
    /// # Errors
    /// Any [`Error`] of the store; a missing task is `None`.
    pub async fn task(&self, id: TaskId) -> Result<Option<TaskRecord>> {
        self.store.task(id).await
    }

    /// Ends a task that has not started, and asks a running one to end; returns its current state.
    ///
    /// # Errors
    /// [`Error::NotFound`], or [`Error::Conflict`] if it has ended already.
    pub async fn cancel(&self, id: TaskId, reason: &str) -> Result<windlass_core::State> {
        only(id, self.store.cancel(&[id], reason).await?)
    }

    /// Gives a dead task a fresh budget of attempts.
    ///
    /// # Errors
    /// [`Error::NotFound`], or [`Error::Conflict`] if it is not dead.
    pub async fn retry(&self, id: TaskId) -> Result<windlass_core::State> {
        only(id, self.store.redrive(&[Redrive { id, delay: Duration::ZERO }]).await?)
    }

    /// Adds a task that does the same as one that is done or cancelled, and returns its id. An ended task never runs
    /// again. Each task is repeated once: a third run repeats the second.
    ///
    /// # Errors
    /// [`Error::NotFound`], or [`Error::Conflict`] if it is dead, has not ended or is repeated already.
    pub async fn repeat(&self, id: TaskId) -> Result<TaskId> {
        let task = self.store.task(id).await?.ok_or_else(|| not_found(id))?;
        let added = self.enqueue_raw(repeat::copy(&task, Duration::ZERO)?).await?;
        if added.existing {
            return Err(Error::Conflict(format!("task {id} is already repeated by task {}", added.id)));
        }
        Ok(added.id)
    }

    /// Waits until the task has ended, at most `timeout`, and returns the task in its current state: check
    /// [`TaskRecord::state`]. Any number of waiters cost one query per interval. Cancel safe.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the task does not exist (any more), or any other error of the store.
    pub async fn wait(&self, id: TaskId, timeout: Duration) -> Result<TaskRecord> {
        match tokio::time::timeout(timeout, self.waiters.ended(id)).await {
            Ok(ended) => ended,
            Err(_) => self.store.task(id).await?.ok_or_else(|| not_found(id)),
        }
    }

    /// Waits like [`Client::wait`] for success, and reads the handler's output. A task without output reads
    /// as `()` or `None`.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the task ended without success or not in time, [`Error::Invalid`] if its output
    /// is not a `T`, else as [`Client::wait`].
    pub async fn output<T: DeserializeOwned>(&self, id: TaskId, timeout: Duration) -> Result<T> {
        output::read(&self.wait(id, timeout).await?)
    }

    /// Waits without a limit.
    async fn ended(&self, id: TaskId) -> Result<TaskRecord> {
        self.waiters.ended(id).await
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

/// The answer for one task of a bulk operation.
fn only(id: TaskId, changed: Vec<windlass_core::store::Changed>) -> Result<windlass_core::State> {
    changed.into_iter().find(|change| change.id == id).ok_or_else(|| not_found(id))?.result
}

pub(crate) fn not_found(id: TaskId) -> Error {
    Error::NotFound(format!("task {id}"))
}
