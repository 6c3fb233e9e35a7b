//! What a claim took, read from the rows of its answer.

use std::{sync::Arc, time::Duration};

use tokio_postgres::Row;
use windlass_core::{
    Claimed, Demand, Error, Lane, LeaseRef, Payload, Result, RetryPolicy, TaskId, Timestamp, TraceContext,
};

use crate::{record, shared::Shared};

/// Reads what was taken, in the order of the line, notes where it lies, and moves the cursors on. `first` is the first column of a task.
pub(crate) async fn read(
    shared: &Shared,
    demand: &Demand,
    now: Timestamp,
    rows: &[Row],
    first: usize,
    is_short: bool,
) -> Result<Vec<Claimed>> {
    let mut taken: Vec<(i32, i64, Claimed)> = Vec::with_capacity(rows.len());
    let mut lane: Option<(i32, Arc<Lane>)> = None;
    for row in rows {
        let id = lane_id(demand, row, first);
        let known = match &lane {
            Some((known, lane)) if *known == id => Arc::clone(lane),
            _ => lane_of(shared, id).await?,
        };
        lane = Some((id, Arc::clone(&known)));
        let task = claimed(demand, known, now, row, first);
        taken.push((id, row.get(first + 7), task));
    }
    shared.places.note(
        taken
            .iter()
            .zip(rows)
            .map(|((.., task), row)| (LeaseRef { id: task.id, lease: task.lease }, row.get(first + 15))),
    );
    taken.sort_unstable_by_key(|(_, seq, task)| (std::cmp::Reverse(task.priority), *seq));
    shared.note_taken(
        &demand.lanes,
        taken.iter().map(|(lane, seq, task)| (*lane, task.priority, *seq)),
        is_short,
    );
    Ok(taken.into_iter().map(|(.., task)| task).collect())
}

pub(crate) async fn lane_of(shared: &Shared, id: i32) -> Result<Arc<Lane>> {
    if let Some(lane) = shared.lanes.get(id) {
        return Ok(lane);
    }
    shared.lanes.load(&mut shared.pool.session().await?).await?;
    shared.lanes.get(id).ok_or_else(|| unreadable("a task in an unknown lane"))
}

/// A task from a row whose columns of it begin with `first`.
pub(crate) fn claimed(demand: &Demand, lane: Arc<Lane>, now: Timestamp, row: &Row, first: usize) -> Claimed {
    Claimed {
        id: TaskId::from_raw(row.get(first)),
        lease: number(row, first + 1, 1),
        attempt: number(row, first + 2, 1),
        max_attempts: number(row, first + 3, 10),
        crashes: number(row, first + 4, 0),
        worker: demand.worker,
        claim_no: demand.claim_no,
        lane,
        priority: row.get::<_, Option<i32>>(first + 6).unwrap_or(0),
        payload: Payload::from_stored(
            record::encoding(row.get::<_, Option<i16>>(first + 8).unwrap_or(0)),
            row.get::<_, &[u8]>(first + 9).to_vec(),
        ),
        job: record::name(row, first + 12, "job"),
        workflow: record::name(row, first + 13, "workflow"),
        timeout: row.get::<_, Option<i64>>(first + 10).map(|ms| Duration::from_millis(ms as u64)),
        retry: row.get::<_, Option<&str>>(first + 11).and_then(RetryPolicy::from_stored),
        trace: TraceContext::from_stored(row.get(first + 14)),
        claimed_at: now,
    }
}

/// A number that the short way leaves out where it is as usual.
fn number(row: &Row, column: usize, usual: u32) -> u32 {
    row.get::<_, Option<i32>>(column).map_or(usual, |number| number as u32)
}

/// The lane of a task; the short way leaves out the first one that was asked for.
fn lane_id(demand: &Demand, row: &Row, first: usize) -> i32 {
    let asked = || demand.lanes.first().map_or(0, |lane| lane.0 as i32);
    row.get::<_, Option<i32>>(first + 5).unwrap_or_else(asked)
}

pub(crate) fn unreadable(what: &str) -> Error {
    Error::Unavailable(format!("the server answered with {what}"))
}
