//! A claimed task, read from a row with the columns of `sql/parts/claimed_task.sql`.

use std::{sync::Arc, time::Duration};

use tokio_postgres::Row;
use windlass_core::{Claimed, Demand, Error, Lane, Payload, Result, RetryPolicy, TraceContext};

use crate::{connection::values::Cells, operate::record, shared::Shared};

/// The number of the task's lane.
pub(crate) fn lane(row: &Row) -> i32 {
    row.get(5)
}

/// The place of the task in its ready line.
pub(crate) fn ready_seq(row: &Row) -> i64 {
    row.get(7)
}

/// Whether the task's job has a delay between starts.
pub(crate) fn is_paced(row: &Row) -> bool {
    row.get::<_, Option<bool>>(15).unwrap_or(false)
}

/// The task.
pub(crate) fn claimed(demand: &Demand, lane: Arc<Lane>, row: &Row) -> Claimed {
    Claimed {
        id: row.task(0),
        lease: row.small(1),
        attempt: row.small(2),
        max_attempts: row.small(3),
        crashes: row.small(4),
        worker: demand.worker,
        claim_no: demand.claim_no,
        lane,
        priority: row.get(6),
        payload: Payload::from_stored(record::encoding(row.get(8)), row.get::<_, &[u8]>(9).to_vec()),
        timeout: row.get::<_, Option<i64>>(10).map(|ms| Duration::from_millis(ms as u64)),
        retry: row.get::<_, Option<&str>>(11).and_then(RetryPolicy::from_stored),
        job: record::name(row, 12, "job"),
        workflow: record::name(row, 13, "workflow"),
        trace: TraceContext::from_stored(row.get(14)),
        claimed_at: row.time(16),
    }
}

/// The lane of this number; lanes that this process does not know yet are read.
pub(crate) async fn lane_of(shared: &Shared, id: i32) -> Result<Arc<Lane>> {
    if let Some(lane) = shared.lanes.get(id) {
        return Ok(lane);
    }
    shared.lanes.load(&mut shared.pool.session().await?).await?;
    shared.lanes.get(id).ok_or_else(|| unreadable("a task in an unknown lane"))
}

pub(crate) fn unreadable(what: &str) -> Error {
    Error::Unavailable(format!("the server answered with {what}"))
}
