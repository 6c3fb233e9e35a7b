//! When an enqueue may be sent again after an outage, and for how long.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

use tokio::time::Instant;
use windlass_core::{Enqueued, Error, NewTask, Result};

use super::Client;
use crate::{inside::backoff::Backoff, trace::enqueue};

/// Shortest and longest pause between two tries: a store that is back is noticed within about a second.
const PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// Enqueues tasks, all or none. Retries for `retry_for` if that cannot add a task twice.
pub(super) async fn enqueue(
    client: &Client,
    tasks: Vec<NewTask>,
    retry_for: Option<Duration>,
) -> Result<Vec<Enqueued>> {
    let (store, tracer) = (&client.store, client.tracer.as_ref());
    let Some(retry_for) = retry_for else { return enqueue::enqueue(store, tracer, None, tasks).await };
    // A limit beyond the range of the clock is no limit.
    let deadline = Instant::now().checked_add(retry_for);
    let mut backoff = Backoff::new(PAUSE.0, PAUSE.1, RandomState::new().hash_one(0));
    loop {
        let error = match enqueue::enqueue(store, tracer, None, tasks.clone()).await {
            Err(error) if may_resend(&error, &tasks) => error,
            answer => return answer,
        };
        let pause = backoff.next();
        if deadline.is_some_and(|deadline| Instant::now() + pause > deadline) {
            return Err(error);
        }
        tracing::debug!(%error, pause_ms = pause.as_millis() as u64, "an enqueue is tried again");
        tokio::time::sleep(pause).await;
    }
}

/// Whether the same enqueue may be sent again: nothing changed, or every task has a key that finds it.
fn may_resend(error: &Error, tasks: &[NewTask]) -> bool {
    match error {
        Error::Unknown(_) => tasks.iter().all(|task| task.key.is_some()),
        error => error.is_retryable(),
    }
}
