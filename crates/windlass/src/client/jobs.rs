//! Jobs: create, list, limit, pause, cancel and remove.

use std::{fmt, time::Duration};

use windlass_core::{Error, JobChange, JobRecord, JobState, Name, Result, store::SharedStore};

/// Handles the jobs of a store. Cheap to clone.
///
/// A job exists from its first task on, or once a method here has set it.
///
/// ```
/// # use windlass::{Client, Task};
/// # #[derive(serde::Serialize, serde::Deserialize, Task)] struct Visit(String);
/// # #[tokio::main] async fn main() -> anyhow::Result<()> {
/// # let client = Client::new(windlass::open("sqlite::memory:").await?);
/// client.jobs().set_concurrency("example.com", 3).await?;
/// client.enqueue(Visit("https://example.com".into())).job("example.com").await?;
/// let job = client.jobs().get("example.com").await?;
/// assert_eq!((job.concurrency, job.running), (Some(3), 0));
/// client.jobs().pause("example.com").await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Jobs {
    store: SharedStore,
}

impl Jobs {
    /// The jobs of this store.
    pub fn new(store: SharedStore) -> Self {
        Self { store }
    }

    /// One page of jobs by name, after `after` if given, at most `limit` and at most
    /// [`PAGE_MAX`](windlass_core::store::PAGE_MAX).
    ///
    /// # Errors
    /// Any [`Error`] of the store.
    pub async fn list(&self, after: Option<&Name>, limit: u32) -> Result<Vec<JobRecord>> {
        self.store.gates().jobs(after, limit).await
    }

    /// One job.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none of this name.
    pub async fn get(&self, job: &str) -> Result<JobRecord> {
        self.known(&Name::new("job", job)?).await
    }

    /// Sets how many tasks of a job run at once at most, over all workers; `None` removes the limit. Creates
    /// a missing job. Applies at once to waiting tasks, and never to running ones.
    ///
    /// # Errors
    /// Any [`Error`] of the store.
    pub async fn set_concurrency(&self, job: &str, limit: impl Into<Option<u32>>) -> Result<JobRecord> {
        self.set(job, &JobChange { concurrency: Some(limit.into()), ..JobChange::default() }).await
    }

    /// Sets the shortest time between two starts of a job; `None` removes it. Creates a missing job.
    ///
    /// # Errors
    /// Any [`Error`] of the store.
    pub async fn set_delay(&self, job: &str, delay: impl Into<Option<Duration>>) -> Result<JobRecord> {
        self.set(job, &JobChange { delay: Some(delay.into()), ..JobChange::default() }).await
    }

    /// Creates a job, or changes several settings of it at once.
    ///
    /// # Errors
    /// Any [`Error`] of the store.
    pub async fn set(&self, job: &str, change: &JobChange) -> Result<JobRecord> {
        self.store.gates().set_job(&Name::new("job", job)?, change).await
    }

    /// Starts no more tasks of a job; running ones continue.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none of this name.
    pub async fn pause(&self, job: &str) -> Result<JobRecord> {
        self.change_known(job, JobState::Paused, false).await
    }

    /// Starts tasks of a paused or cancelled job again.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none of this name.
    pub async fn resume(&self, job: &str) -> Result<JobRecord> {
        self.change_known(job, JobState::Active, false).await
    }

    /// Cancels the waiting and the future tasks of a job; running ones continue.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none of this name.
    pub async fn cancel(&self, job: &str) -> Result<JobRecord> {
        self.change_known(job, JobState::Cancelled, false).await
    }

    /// The same, and asks running tasks to end.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none of this name.
    pub async fn cancel_now(&self, job: &str) -> Result<JobRecord> {
        self.change_known(job, JobState::Cancelled, true).await
    }

    /// Cancels the waiting tasks of a job, and deletes the job when its last running task has ended. Returns
    /// how many tasks were cancelled.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none of this name.
    pub async fn remove(&self, job: &str) -> Result<u64> {
        self.store.gates().remove_job(&Name::new("job", job)?, false).await
    }

    /// The same, and asks running tasks to end.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none of this name.
    pub async fn remove_now(&self, job: &str) -> Result<u64> {
        self.store.gates().remove_job(&Name::new("job", job)?, true).await
    }

    async fn known(&self, name: &Name) -> Result<JobRecord> {
        self.store.gates().job(name).await?.ok_or_else(|| Error::NotFound(format!("job {name}")))
    }

    /// Changes the state of an existing job only: a mistyped name must not create another one.
    async fn change_known(&self, job: &str, state: JobState, now: bool) -> Result<JobRecord> {
        let name = Name::new("job", job)?;
        self.known(&name).await?;
        let change = JobChange { state: Some(state), now, ..JobChange::default() };
        self.store.gates().set_job(&name, &change).await
    }
}

impl fmt::Debug for Jobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jobs").finish_non_exhaustive()
    }
}
