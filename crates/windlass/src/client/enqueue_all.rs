//! The builder of an enqueue of many tasks in one commit.

use std::{
    fmt,
    future::{Future, IntoFuture},
    pin::Pin,
    time::Duration,
};

use windlass_core::{Enqueued, Error, NewTask, Result};

use super::{Client, resend};

/// Tasks that `.await` enqueues in one commit, all or none; the answers are in the order of the tasks.
///
/// # Errors
/// Any [`Error`]; [`Error::Invalid`] also for more tasks than the store accepts at once.
#[must_use = "tasks are enqueued only when this is awaited"]
pub struct EnqueueAll {
    client: Client,
    tasks: Result<Vec<NewTask>>,
    retry_for: Option<Duration>,
}

impl EnqueueAll {
    pub(super) fn new(client: Client, tasks: Result<Vec<NewTask>>) -> Self {
        Self { client, tasks, retry_for: None }
    }

    /// Waits out a short outage, as [`Enqueue::retry_for`](super::Enqueue::retry_for) does. After an error
    /// that leaves open whether the call took effect, it retries only if every task has a key
    /// ([`Client::enqueue_all_keyed`](super::Client::enqueue_all_keyed)).
    pub fn retry_for(mut self, limit: Duration) -> Self {
        self.retry_for = Some(limit);
        self
    }

    async fn send(self) -> Result<Vec<Enqueued>> {
        let tasks = self.tasks?;
        let (given, most) = (tasks.len(), self.client.store.rules().batch_max);
        if given > most {
            return Err(Error::invalid(format!("{given} tasks in one call; at most {most} are allowed")));
        }
        if given == 0 {
            return Ok(Vec::new());
        }
        resend::enqueue(&self.client, tasks, self.retry_for).await
    }
}

impl IntoFuture for EnqueueAll {
    type Output = Result<Vec<Enqueued>>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

impl fmt::Debug for EnqueueAll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never the payloads: they may be secrets.
        let tasks = self.tasks.as_ref().map(Vec::len);
        f.debug_struct("EnqueueAll").field("tasks", &tasks).finish_non_exhaustive()
    }
}
