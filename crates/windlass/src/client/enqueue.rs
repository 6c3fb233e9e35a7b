//! The builder of one enqueue.

use std::{
    fmt,
    future::{Future, IntoFuture},
    pin::Pin,
    time::Duration,
};

use serde::de::DeserializeOwned;
use windlass_core::{
    Enqueued, Error, Name, NewTask, OnFailure, Result, Start, TaskRecord, Timestamp, TraceContext,
    retry::RetryPolicy, store, task::Key,
};

use super::{Client, output, resend};

/// A task that `.await` enqueues, with settings that override those of its type.
///
/// A mistake in a setting is stored and reported when this is awaited, so that the calls chain.
#[must_use = "a task is enqueued only when this is awaited"]
pub struct Enqueue {
    client: Client,
    task: Result<NewTask>,
    retry_for: Option<Duration>,
}

impl Enqueue {
    pub(super) fn new(client: Client, task: Result<NewTask>) -> Self {
        Self { client, task, retry_for: None }
    }

    /// The job it belongs to.
    pub fn job(self, job: impl AsRef<str>) -> Self {
        self.name("job", job, |task, name| task.job = Some(name))
    }

    /// How many tasks of its job run at once at most, if this enqueue creates the job. An existing job keeps
    /// its own limit: [`Jobs::set_concurrency`](super::Jobs::set_concurrency) changes it.
    pub fn job_concurrency(self, limit: u32) -> Self {
        self.set(|task| task.job_concurrency = Some(limit))
    }

    /// The workflow it belongs to.
    pub fn workflow(self, workflow: impl AsRef<str>) -> Self {
        self.name("workflow", workflow, |task, name| task.workflow = Some(name))
    }

    /// What a failure means for the rest of its workflow. The first appended task decides; without this call
    /// it is [`OnFailure::Block`].
    pub fn on_failure(self, policy: OnFailure) -> Self {
        self.set(|task| task.on_failure = Some(policy))
    }

    /// The queue of the task.
    pub fn queue(self, queue: impl AsRef<str>) -> Self {
        self.name("queue", queue, |task, name| task.queue = name)
    }

    /// The priority: higher first.
    pub fn priority(self, priority: i32) -> Self {
        self.set(|task| task.priority = priority)
    }

    /// Starts after a delay, counted by the store's clock.
    pub fn delay(self, delay: Duration) -> Self {
        self.set(|task| task.start = Start::In(delay))
    }

    /// Starts no earlier than this time of the store's clock.
    pub fn at(self, at: Timestamp) -> Self {
        self.set(|task| task.start = Start::At(at))
    }

    /// The same key on the same queue gives the same task, however often it is enqueued; a task with that key
    /// but another kind or payload is refused.
    pub fn key(self, key: impl Into<String>) -> Self {
        let text = key.into();
        self.set(|task| task.key = Some(Key { text, ignore_conflict: false }))
    }

    /// Returns the existing task of the [key](Enqueue::key) also for another kind or payload. Call it after
    /// `key`.
    pub fn ignore_key_conflict(mut self) -> Self {
        let key = self.task.as_mut().ok().map(|task| task.key.as_mut());
        match key {
            Some(Some(key)) => key.ignore_conflict = true,
            Some(None) => self.task = Err(Error::invalid("ignore_key_conflict is given without key")),
            None => {}
        }
        self
    }

    /// How many attempts the task has.
    pub fn max_attempts(self, attempts: u32) -> Self {
        self.set(|task| task.max_attempts = Some(attempts))
    }

    /// How long one attempt may take.
    pub fn timeout(self, timeout: Duration) -> Self {
        self.set(|task| task.timeout = Some(timeout))
    }

    /// Delays between attempts.
    pub fn retry(self, policy: RetryPolicy) -> Self {
        self.set(|task| task.retry = Some(policy))
    }

    /// Waits out a short outage: retries with growing pauses, for at most `limit` in total, if that cannot
    /// add the task twice. Without this call the first error is returned.
    ///
    /// It retries after [`Error::Unavailable`] and [`Error::StoreFull`], which say that nothing changed.
    /// [`Error::Unknown`] says that the task may have been added. After that it retries only if the task has
    /// a [key](Enqueue::key); if the lost call had added the task, the answer is `existing`. Every other
    /// error is returned at once; when the time is over, the last error is. A call that is running then is
    /// awaited.
    ///
    /// [`Enqueue::within`] does not retry: the caller's transaction is over after its first error.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use windlass::{Client, Task};
    /// # #[derive(serde::Serialize, serde::Deserialize, Task)] struct Greet(String);
    /// # #[tokio::main] async fn main() -> anyhow::Result<()> {
    /// # let client = Client::new(windlass::open("sqlite::memory:").await?);
    /// client.enqueue(Greet("Ada".into())).key("greet-ada").retry_for(Duration::from_secs(30)).await?;
    /// # Ok(()) }
    /// ```
    pub fn retry_for(mut self, limit: Duration) -> Self {
        self.retry_for = Some(limit);
        self
    }

    /// The caller's position in a trace: the task's attempts become part of it.
    pub fn trace(self, trace: impl Into<Option<TraceContext>>) -> Self {
        let trace = trace.into();
        self.set(|task| task.trace = trace)
    }

    /// Enqueues the task inside a transaction of the caller, instead of `.await`: the task exists if, and
    /// only if, that transaction commits. The store must be a PostgreSQL schema in the database of the
    /// transaction. The transaction is one of tokio-postgres or, with the feature `sqlx`, of sqlx.
    ///
    /// ```no_run
    /// # use windlass::{Client, Task};
    /// # #[derive(serde::Serialize, serde::Deserialize, Task)] struct Greet(String);
    /// # async fn order(client: Client, db: &mut tokio_postgres::Client) -> anyhow::Result<()> {
    /// let mut tx = db.transaction().await?;
    /// tx.execute("INSERT INTO customer (name) VALUES ('Ada')", &[]).await?;
    /// client.enqueue(Greet("Ada".into())).key("greet-ada").within(&mut tx).await?;
    /// tx.commit().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the client's store is not PostgreSQL, else as for the enqueue. After an
    /// error the transaction can only be rolled back, as after any failed statement.
    #[cfg(feature = "postgres")]
    pub async fn within<W: windlass_postgres::Within + ?Sized>(
        self,
        transaction: &mut W,
    ) -> Result<Enqueued> {
        let store = &self.client.store;
        let schema = store.schema().ok_or_else(|| {
            Error::Unsupported(
                "the store of this client is not in PostgreSQL; within(…) needs one that is".into(),
            )
        })?;
        let schema = windlass_postgres::Schema::new(schema).map_err(Error::Invalid)?;
        windlass_postgres::enqueue_within(transaction, &schema, store.rules(), &self.task?).await
    }

    /// Enqueues the task and waits until it has ended, without a time limit.
    ///
    /// # Errors
    /// As for the enqueue, and as [`Client::wait`]. A task that ended without success is not an error: check
    /// [`TaskRecord::state`].
    pub async fn wait(self) -> Result<TaskRecord> {
        let client = self.client.clone();
        let enqueued = self.await?;
        client.ended(enqueued.id).await
    }

    /// Enqueues the task, waits for success and reads the handler's output.
    ///
    /// # Errors
    /// As for the enqueue, and as [`Client::output`].
    pub async fn output<T: DeserializeOwned>(self) -> Result<T> {
        output::read(&self.wait().await?)
    }

    fn set(mut self, set: impl FnOnce(&mut NewTask)) -> Self {
        if let Ok(task) = &mut self.task {
            set(task);
        }
        self
    }

    fn name(mut self, what: &str, text: impl AsRef<str>, set: impl FnOnce(&mut NewTask, Name)) -> Self {
        self.task = self.task.and_then(|mut task| {
            set(&mut task, Name::new(what, text)?);
            Ok(task)
        });
        self
    }
}

impl IntoFuture for Enqueue {
    type Output = Result<Enqueued>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            store::only(resend::enqueue(&self.client, vec![self.task?], self.retry_for).await?)
        })
    }
}

impl fmt::Debug for Enqueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never the payload: it may be a secret.
        let kind = self.task.as_ref().map(|task| &task.kind);
        f.debug_struct("Enqueue").field("kind", &kind).finish_non_exhaustive()
    }
}
