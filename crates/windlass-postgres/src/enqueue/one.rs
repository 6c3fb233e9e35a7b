//! One task that may start at once.
//!
//! Workers can claim it while its caller waits for the disk. If a worker waits for a task, the same commit
//! leases it to that worker: to one that the caller names, or to one of another process that has made an
//! offer.

use std::{sync::Arc, time::Duration};

use tokio::sync::oneshot;
use windlass_core::{
    Claimed, Demand, Enqueued, Error, Lane, NewTask, Result, TaskId, Timestamp,
    store::{Safe, only},
};

use crate::{
    claim::{
        read_position::Start,
        suspect::{ISOLATION_MS, last_chance},
    },
    connection::pool::{Session, closed},
    enqueue::{Columns, add, has_only_a_payload, lanes_of},
    shared::Shared,
    sql,
    wakeup::offer::TOLD_MAX_BYTES,
};

/// What is visible: the task and, if the named worker got it, its lease.
type Visible = (Enqueued, Option<Claimed>);

/// Adds a task, and calls `visible` as soon as workers can see it; returns when it is safe.
pub(super) async fn add_one(
    shared: &Shared,
    session: &mut Session<'_>,
    task: &NewTask,
    lane: i32,
    taker: Option<(&Demand, &Arc<Lane>)>,
    visible: impl FnOnce(Visible) + Send,
) -> Result<Enqueued> {
    let row = Columns::of(task, &shared.rules);
    let notify = !shared.doorbell.covers(&[lane]);
    let soon = shared.flushes();
    // A notification has room for a small payload only. And the offer's row is locked until the commit. The
    // worker's renewals write the same row, so that commit must not wait for the disk.
    let may_be_offered =
        soon && taker.is_none() && has_only_a_payload(task) && row.payload.len() <= TOLD_MAX_BYTES;
    let worker = taker.map(|(demand, _)| demand.worker.0);
    let claim_no = taker.map(|(demand, _)| demand.claim_no as i64);
    let before = taker.map_or_else(Start::default, |(_, lane)| shared.start(&[lane.id]));
    let last_chance = last_chance(&shared.rules);
    let mut added = None;
    session
        .query_then_flush(
            &sql::ENQUEUE_ONE,
            &[
                &lane,
                &row.priority,
                &row.max_attempts,
                &row.encoding,
                &row.payload,
                &row.timeout_ms,
                &row.retry,
                &row.trace,
                &shared.doorbell.channel,
                &notify,
                &shared.doorbell.listener,
                &soon,
                &may_be_offered,
                &worker,
                &claim_no,
                &before.highs,
                &before.lows,
                &before.afters,
                &last_chance,
                &ISOLATION_MS,
            ],
            |rows| {
                let Some(answer) = rows.first() else { return };
                let id = TaskId::from_raw(answer.get(0));
                let is_taken: bool = answer.get(1);
                added = Some(Enqueued::new(id));
                if !is_taken {
                    shared.tell_ready();
                }
                let claimed = taker.filter(|_| is_taken).map(|(demand, lane)| Claimed {
                    id,
                    lease: 1,
                    attempt: 1,
                    max_attempts: row.max_attempts as u32,
                    crashes: 0,
                    worker: demand.worker,
                    claim_no: demand.claim_no,
                    lane: Arc::clone(lane),
                    priority: task.priority,
                    payload: task.payload.clone(),
                    job: None,
                    workflow: None,
                    timeout: row.timeout_ms.map(|ms| Duration::from_millis(ms as u64)),
                    retry: task.retry,
                    trace: task.trace,
                    claimed_at: Timestamp::from_ms(answer.get(2)),
                });
                visible((Enqueued::new(id), claimed));
            },
        )
        .await?;
    added.ok_or_else(|| Error::Unknown("the server did not say which task it added".to_owned()))
}

/// Adds a task as a lease of this waiting worker, unless another ready task is before it. Returns when that
/// is visible.
pub(crate) async fn add_for(
    shared: &Arc<Shared>,
    task: NewTask,
    demand: Demand,
) -> Result<(Enqueued, Option<Claimed>, Safe)> {
    let lanes = lanes_of(shared, std::slice::from_ref(&task)).await?;
    let number = lanes.first().copied().unwrap_or_default();
    let Some(lane) = shared.lanes.get(number).filter(|lane| demand.lanes.contains(&lane.id)) else {
        return Ok((only(add(shared, std::slice::from_ref(&task)).await?)?, None, Safe::already()));
    };
    let (visible, seen) = oneshot::channel();
    let (told, safe) = oneshot::channel();
    let writer = Arc::clone(shared);
    // Runs on the driver's thread, so that a caller that is dropped does not end the write halfway.
    shared.pool.handle().spawn(async move {
        let write = async {
            let mut session = writer.pool.session().await?;
            // There is no receiver if the call was dropped. Then the next comparison of leases finds the
            // lease.
            let tell = |seen| drop(visible.send(seen));
            add_one(&writer, &mut session, &task, number, Some((&demand, &lane)), tell).await
        };
        let _ = told.send(write.await.map(|_| ()));
    });
    let safe = async { safe.await.unwrap_or_else(|_| Err(closed())) };
    match seen.await {
        Ok((enqueued, claimed)) => Ok((enqueued, claimed, Safe::when(safe))),
        // It failed before it was visible.
        Err(_) => Err(safe.await.err().unwrap_or_else(closed)),
    }
}
