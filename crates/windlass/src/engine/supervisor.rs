//! Restarts the coordinator when it dies, and ends the worker when it dies too often.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use tokio::time::Instant;

use crate::{
    engine::coordinator::Coordinator,
    inside::backoff::Backoff,
    worker::{
        shared::Shared,
        status::{Counters, WorkerError},
    },
};

/// So many deaths within [`DEATH_WINDOW`] end the worker.
const DEATHS_MAX: usize = 5;
/// The time over which deaths are counted.
const DEATH_WINDOW: Duration = Duration::from_mins(1);

/// Runs coordinators until one ends without dying, which happens when the worker drains.
///
/// # Errors
/// [`WorkerError::CoordinatorDied`] after five deaths in a minute.
pub(crate) async fn supervise(shared: Arc<Shared>) -> Result<(), WorkerError> {
    let mut deaths: VecDeque<Instant> = VecDeque::new();
    let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5), 23);
    loop {
        let coordinator = Coordinator::new(shared.clone());
        let Err(death) = tokio::spawn(coordinator.run()).await else { return Ok(()) };
        Counters::add(&shared.counters.coordinator_deaths, 1);
        deaths.push_back(Instant::now());
        while deaths.front().is_some_and(|at| at.elapsed() > DEATH_WINDOW) {
            deaths.pop_front();
        }
        let last = cause(death);
        if deaths.len() >= DEATHS_MAX {
            return Err(WorkerError::CoordinatorDied { deaths: deaths.len(), last });
        }
        let pause = backoff.next();
        tracing::error!(cause = last, again_in = ?pause, "the coordinator died; it is restarted");
        tokio::time::sleep(pause).await;
    }
}

/// The text of a panic.
fn cause(death: tokio::task::JoinError) -> String {
    match death.try_into_panic() {
        Ok(panic) => crate::pool::guard::panic_message(panic),
        Err(error) => error.to_string(),
    }
}
