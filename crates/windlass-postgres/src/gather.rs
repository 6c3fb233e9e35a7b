//! Group commit: while one batch is on its way the next gathers; when it returns, all that gathered goes at once. An idle
//! store writes at once, a busy one writes large batches, and there is no timer.
//!
//! A caller who comes alone writes with their own hands: no other thread has to wake up for it. Should they leave before the end, the
//! driver goes on with it.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use tokio::{runtime::Handle, sync::oneshot};
use windlass_core::{Enqueued, Error, NewTask, Result};

use crate::{
    enqueue, keys,
    line::Line,
    pool::closed,
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

/// A line of callers whose tasks are written together.
pub(crate) struct Gather {
    sort: Sort,
    line: Arc<Line<Call>>,
}

/// Keyed tasks have a line of their own: they may wait for locks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sort {
    Plain,
    Keyed,
}

impl Gather {
    pub(crate) fn new(sort: Sort) -> Self {
        Self { sort, line: Arc::new(Line::new("enqueues")) }
    }

    /// Adds tasks to the next batch and waits for its commit. A dropped call may still take effect.
    pub(crate) async fn add(&self, shared: &Arc<Shared>, tasks: Vec<NewTask>) -> Result<Vec<Enqueued>> {
        // The time limits of a statement need a runtime.
        if Handle::try_current().is_ok()
            && let Some(turn) = self.line.enter()
        {
            let (sort, writer) = (self.sort, Arc::clone(shared));
            let write = async move {
                let _turn = turn;
                add(&writer, sort, &tasks).await
            };
            return Finish::new(write, shared.pool.handle()).await;
        }
        let (answer, answered) = oneshot::channel();
        self.line.join(Call { tasks, answer })?;
        answered.await.unwrap_or_else(|_| Err(closed()))
    }
}

/// A write that goes on at the driver if whoever waits for it leaves.
struct Finish {
    write: Option<Write>,
    driver: Handle,
}

type Write = Pin<Box<dyn Future<Output = Result<Vec<Enqueued>>> + Send>>;

impl Finish {
    fn new(write: impl Future<Output = Result<Vec<Enqueued>>> + Send + 'static, driver: &Handle) -> Self {
        Self { write: Some(Box::pin(write)), driver: driver.clone() }
    }
}

impl Future for Finish {
    type Output = Result<Vec<Enqueued>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(write) = &mut self.write else { return Poll::Ready(Err(closed())) };
        let written = std::task::ready!(write.as_mut().poll(cx));
        self.write = None;
        Poll::Ready(written)
    }
}

impl Drop for Finish {
    fn drop(&mut self) {
        if let Some(write) = self.write.take() {
            self.driver.spawn(write);
        }
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

/// Writes what gathers until the store is closed.
pub(crate) async fn run(gather: Arc<Gather>, shared: Weakly) {
    let _closes = gather.line.closes();
    loop {
        let calls = gather.line.take(fit);
        if calls.is_empty() {
            tokio::select! {
                () = gather.line.arrived() => {}
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
        // The answer was lost for all of them.
        Err(error @ Error::Unknown(_)) => {
            for call in calls {
                let _ = call.answer.send(Err(error.clone()));
            }
        }
        // Nothing was written. One caller's bad task fails only that caller.
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
        Sort::Keyed => keys::add(shared, tasks).await,
    }
}
