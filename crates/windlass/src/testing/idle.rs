//! A worker that stops when no task is left.

use std::{collections::BTreeSet, time::Duration};

use windlass_core::{
    Name, Result, TaskId, TaskRecord,
    state::State,
    store::{Filter, LaneRecord, PAGE_MAX, SharedStore},
};

use crate::worker::{DrainReport, WorkerError, WorkerHandle, builder::WorkerBuilder};

/// Pause between two checks whether the worker still has a task.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// Most tasks that one check makes ready.
const PROMOTE_MAX: u32 = 1_000;

/// Runs a worker until none of its tasks is ready, running or due, and returns the tasks that ended
/// meanwhile, oldest first.
///
/// Tasks that are due later (a delay, a retry) are left alone: move the clock of
/// [`store_with_clock`](super::store_with_clock) and run again. So are tasks in paused queues and of kinds
/// without a handler.
///
/// # Errors
/// Errors of the builder, and failures that end a worker early.
pub async fn run_until_idle<S>(builder: WorkerBuilder<S>) -> Result<Vec<TaskRecord>, WorkerError> {
    let failed = WorkerError::Store;
    let store = builder.store.clone();
    let (kinds, queues) = (builder.registry.kinds(), builder.config.queues.clone());
    let is_served = move |lane: &LaneRecord| {
        !lane.paused && serves(&kinds, &lane.kind) && (queues.is_empty() || serves(&queues, &lane.queue))
    };
    let before: BTreeSet<_> = ended(&store).await.map_err(failed)?.iter().map(identity).collect();
    let worker = builder.build().map_err(failed)?;
    let handle = worker.handle();
    let mut run = std::pin::pin!(worker.run(std::future::pending::<()>()));
    let _: DrainReport = tokio::select! {
        // Only a failure ends the worker here.
        ran = &mut run => ran?,
        idle = idle(&store, &handle, is_served) => {
            handle.drain();
            let ran = run.await?;
            idle.map_err(failed)?;
            ran
        }
    };
    let mut tasks = ended(&store).await.map_err(failed)?;
    tasks.retain(|task| !before.contains(&identity(task)));
    tasks.sort_by_key(|task| task.id);
    Ok(tasks)
}

fn serves(names: &[Name], name: &Name) -> bool {
    names.contains(name)
}

/// A task that ended, was retried by an operator and ended again counts as new.
fn identity(task: &TaskRecord) -> (TaskId, u32) {
    (task.id, task.lease)
}

async fn idle(
    store: &SharedStore,
    worker: &WorkerHandle,
    is_served: impl Fn(&LaneRecord) -> bool,
) -> Result<()> {
    // Tasks of jobs are held until a live worker serves them: check only after the worker has registered.
    worker.started().await;
    loop {
        let due = store.promote_due(PROMOTE_MAX).await?;
        let admitted = store.admit(PROMOTE_MAX).await?;
        let lanes = store.lane_records().await?;
        let busy =
            lanes.iter().filter(|lane| is_served(lane)).any(|lane| lane.depth.ready + lane.depth.running > 0);
        if !busy && !due.more && !admitted.more {
            return Ok(());
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn ended(store: &SharedStore) -> Result<Vec<TaskRecord>> {
    let mut tasks = Vec::new();
    for state in State::ALL.into_iter().filter(|state| state.is_ended()) {
        let filter = Filter { state: Some(state), ..Filter::default() };
        let mut after = None;
        loop {
            let page = store.tasks(&filter, after, PAGE_MAX).await?;
            tasks.extend(page.tasks);
            if page.next.is_none() {
                break;
            }
            after = page.next;
        }
    }
    Ok(tasks)
}
