//! A task that is added for a worker that waits for it: leased in the same commit, and on its way to the worker before it is safe on
//! disk.

use std::{sync::Arc, time::Duration};

use tokio::sync::oneshot;
use windlass_core::{
    Claimed, Demand, Enqueued, Error, Lane, NewTask, Result, RetryPolicy, TaskId, Timestamp,
    store::{Safe, only},
};

use crate::{
    driver,
    enqueue::{add, lanes_of, ms_up},
    pool::closed,
    shared::Shared,
    sql,
};

/// What is visible.
type Added = (Enqueued, Option<Claimed>);

/// Adds one plain task, as a lease of a worker that waits for it if nothing is ready before it.
pub(crate) async fn add_for(
    shared: &Arc<Shared>,
    task: NewTask,
    demand: Demand,
) -> Result<(Enqueued, Option<Claimed>, Safe)> {
    let lanes = lanes_of(shared, std::slice::from_ref(&task)).await?;
    let lane = lanes.first().copied().unwrap_or_default();
    let Some(lane) = shared.lanes.get(lane).filter(|lane| demand.lanes.contains(&lane.id)) else {
        return Ok((only(add(shared, std::slice::from_ref(&task)).await?)?, None, Safe::already()));
    };
    let (visible, seen) = oneshot::channel();
    let (told, safe) = oneshot::channel();
    let writer = Arc::clone(shared);
    driver::begin(shared.pool.handle(), async move {
        let _ = told.send(write(&writer, task, demand, lane, visible).await);
    });
    let safe = async { safe.await.unwrap_or_else(|_| Err(closed())) };
    match seen.await {
        Ok((enqueued, claimed)) => Ok((enqueued, claimed, Safe::when(safe))),
        // It failed before it was visible.
        Err(_) => Err(safe.await.err().unwrap_or_else(closed)),
    }
}

/// Writes the task, says so when it is visible, and ends when it is safe.
async fn write(
    shared: &Shared,
    task: NewTask,
    demand: Demand,
    lane: Arc<Lane>,
    visible: oneshot::Sender<Added>,
) -> Result<()> {
    let stretches = shared.stretches(&[lane.id]);
    let number = lane.id.0 as i32;
    let max_attempts = task.max_attempts.unwrap_or(shared.rules.max_attempts);
    let (encoding, payload) = (task.payload.encoding().code() as i16, task.payload.as_bytes());
    let (timeout, retry) = (task.timeout.map(ms_up), task.retry.map(RetryPolicy::to_stored));
    let (trace, claim_no) = (task.trace.map(|trace| trace.to_string()), demand.claim_no as i64);
    let ring = !shared.doorbell.covers(&[number]);
    let soon = shared.flushes();
    let mut is_added = false;
    let mut session = shared.pool.session().await?;
    session
        .query_then_flush(
            &sql::ENQUEUE_FOR,
            &[
                &number,
                &task.priority,
                &(max_attempts as i32),
                &encoding,
                &payload,
                &shared.doorbell.channel,
                &ring,
                &shared.doorbell.listener,
                &timeout,
                &retry,
                &trace,
                &demand.worker.0,
                &claim_no,
                &stretches.highs,
                &stretches.lows,
                &stretches.afters,
                &soon,
            ],
            |rows| {
                let Some(row) = rows.first() else { return };
                is_added = true;
                let id = TaskId::from_raw(row.get(0));
                let claimed = row.get::<_, bool>(1).then(|| Claimed {
                    id,
                    lease: 1,
                    attempt: 1,
                    max_attempts,
                    crashes: 0,
                    worker: demand.worker,
                    claim_no: demand.claim_no,
                    lane,
                    priority: task.priority,
                    payload: task.payload.clone(),
                    job: None,
                    workflow: None,
                    timeout: timeout.map(|ms| Duration::from_millis(ms as u64)),
                    retry: task.retry,
                    trace: task.trace,
                    claimed_at: Timestamp::from_ms(row.get(2)),
                });
                if claimed.is_none() {
                    shared.tell_of(Some(id.raw()));
                }
                // Nobody listens if the call was dropped; then the lease is found by a comparison.
                let _ = visible.send((Enqueued::new(id), claimed));
            },
        )
        .await?;
    if is_added {
        return Ok(());
    }
    Err(Error::Unknown("the server did not say which task it added".to_owned()))
}
