//! Group commit: while one batch is on its way the next gathers, and goes as soon as the first returns. An
//! idle store writes at once, a busy one writes large batches, and there is no timer.

use std::sync::Arc;

use tokio::sync::oneshot;
use windlass_core::{Enqueued, Error, NewTask, Result};

use crate::{
    connection::{calls::Calls, pool::closed},
    enqueue::{self, keyed},
    shared::{Shared, Weakly},
};

/// Tasks that one commit takes together.
const TASKS_MAX: usize = 2_000;
/// Payload bytes that one commit takes together.
const BYTES_MAX: usize = 4 << 20;

/// What a caller brought.
struct Call {
    tasks: Vec<NewTask>,
    answer: oneshot::Sender<Result<Vec<Enqueued>>>,
}

/// Callers whose tasks are written together.
pub(crate) struct Gather {
    sort: Sort,
    calls: Calls<Call>,
}

/// Keyed tasks are gathered apart from others: they may wait for locks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sort {
    Plain,
    Keyed,
}

impl Gather {
    pub(crate) fn new(sort: Sort) -> Self {
        Self { sort, calls: Calls::new("enqueues") }
    }

    /// Adds tasks to the next batch and waits for its commit. A dropped call may still take effect.
    pub(crate) async fn add(&self, tasks: Vec<NewTask>) -> Result<Vec<Enqueued>> {
        let (answer, answered) = oneshot::channel();
        self.calls.add(Call { tasks, answer })?;
        answered.await.unwrap_or_else(|_| Err(closed()))
    }
}

/// How many calls go into one commit.
fn fit(calls: &[Call]) -> usize {
    let (mut tasks, mut bytes) = (0, 0);
    let fits = calls.iter().take_while(|call| {
        tasks += call.tasks.len();
        bytes += call.tasks.iter().map(|task| task.payload.len()).sum::<usize>();
        tasks <= TASKS_MAX && bytes <= BYTES_MAX
    });
    fits.count()
}

/// Writes the waiting calls until the store is closed.
pub(crate) async fn run(gather: Arc<Gather>, shared: Weakly) {
    let _closes = gather.calls.closes();
    loop {
        let calls = gather.calls.take(fit);
        if calls.is_empty() {
            tokio::select! {
                () = gather.calls.arrived() => {}
                () = shared.closed() => break,
            }
            continue;
        }
        let Some(shared) = shared.upgrade() else { break };
        write(&shared, gather.sort, calls).await;
    }
}

async fn write(shared: &Shared, sort: Sort, mut calls: Vec<Call>) {
    if calls.len() == 1
        && let Some(call) = calls.pop()
    {
        let _ = call.answer.send(add(shared, sort, &call.tasks).await);
        return;
    }
    let all: Vec<NewTask> = calls.iter().flat_map(|call| call.tasks.iter().cloned()).collect();
    match add(shared, sort, &all).await {
        Ok(answers) => {
            let mut answers = answers.into_iter();
            for call in calls {
                let share = answers.by_ref().take(call.tasks.len()).collect();
                let _ = call.answer.send(Ok(share));
            }
        }
        // The answer was lost for all callers.
        Err(error @ Error::Unknown(_)) => {
            for call in calls {
                let _ = call.answer.send(Err(error.clone()));
            }
        }
        // Nothing was written. A bad task of one caller must fail only that caller.
        Err(_) => {
            for call in calls {
                let _ = call.answer.send(add(shared, sort, &call.tasks).await);
            }
        }
    }
}

async fn add(shared: &Shared, sort: Sort, tasks: &[NewTask]) -> Result<Vec<Enqueued>> {
    match sort {
        Sort::Plain => enqueue::add(shared, tasks).await,
        Sort::Keyed => keyed::add(shared, tasks).await,
    }
}
