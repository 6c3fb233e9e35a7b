//! Enqueue for a waiting worker: the task is stored as a lease of that worker, so no line is read and no
//! index of lines written.

use std::sync::Arc;

use rusqlite::params;
use windlass_core::{
    Claimed, Demand, Enqueued, Error, Lane, NewTask, RetryPolicy, State, crash::Group, store::only,
};

use crate::{
    connection::tx::{Step, Tx},
    enqueue::{self, ROW_BYTES, timeout_to_stored},
    memory::Held,
    sql,
    upkeep::lanes,
};

/// The lease and attempt number of a new lease.
const FIRST: u32 = 1;

/// Adds one checked task, as a lease of the worker if the worker may claim and no task is ready before it.
pub(crate) fn enqueue_for(
    tx: &mut Tx<'_>,
    task: &NewTask,
    demand: &Demand,
) -> Step<(Enqueued, Option<Claimed>)> {
    if let Some(lane) = open_lane(tx, task, demand) {
        let claimed = lease(tx, task, demand, lane)?;
        return Ok((Enqueued::new(claimed.id), Some(claimed)));
    }
    Ok((only(enqueue::enqueue(tx, std::slice::from_ref(task))?)?, None))
}

/// The lane of the task, if the worker may take it without the ready line.
fn open_lane(tx: &Tx<'_>, task: &NewTask, demand: &Demand) -> Option<Arc<Lane>> {
    let id = tx.memory.lane_id(&task.queue, &task.kind).filter(|_| task.is_plain())?;
    let entry = tx.memory.lane(id).filter(|entry| entry.depth.ready == 0 && !entry.paused)?;
    let worker = tx.memory.worker(demand.worker)?;
    let may_claim = demand.claim_no >= worker.min_claim_no
        && worker.suspects == 0
        && demand.lanes.contains(&id)
        && tx.leases.is_live(demand.worker, tx.mono);
    may_claim.then(|| Arc::clone(&entry.lane))
}

fn lease(tx: &mut Tx<'_>, task: &NewTask, demand: &Demand, lane: Arc<Lane>) -> Step<Claimed> {
    tx.disk.reserve(task.payload.len() as u64 + ROW_BYTES, tx.options)?;
    lanes::take(tx, lane.id)?;
    let id = tx.memory.next_id(tx.now);
    let max_attempts = task.max_attempts.unwrap_or(tx.options.rules.max_attempts);
    // Its place in the line if it is handed back.
    let ready_seq = tx.memory.next_ready_seq();
    tx.sql(sql::INSERT_LEASED)?.execute(params![
        id.raw(),
        lane.id.0,
        task.priority,
        ready_seq,
        max_attempts,
        task.timeout.map(timeout_to_stored),
        task.retry.map(RetryPolicy::to_stored),
        task.payload.encoding().code(),
        task.payload.as_bytes(),
        task.trace.map(|trace| trace.to_string()),
        demand.worker.0,
        demand.claim_no as i64,
        tx.now.as_ms()
    ])?;
    tx.memory.count(lane.id, State::Running, 1);
    let held = Held {
        lease: FIRST,
        attempt: FIRST,
        max_attempts,
        crashes: 0,
        group: Group::default(),
        claim_no: demand.claim_no,
        claimed_at: tx.now,
        lane: lane.id,
        payload_bytes: task.payload.len() as u32,
        keyed: false,
        cancel: None,
        gate: None,
    };
    tx.memory.hold(demand.worker, id, held);
    Ok(Claimed {
        id,
        lease: FIRST,
        attempt: FIRST,
        max_attempts,
        crashes: 0,
        worker: demand.worker,
        claim_no: demand.claim_no,
        lane,
        priority: task.priority,
        payload: task.payload.clone(),
        job: None,
        workflow: None,
        // As stored and read back, so that the worker gets the same value as from a claim.
        timeout: task
            .timeout
            .map(|timeout| std::time::Duration::from_millis(timeout_to_stored(timeout) as u64)),
        retry: task.retry.map(RetryPolicy::to_stored).as_deref().and_then(RetryPolicy::from_stored),
        trace: task.trace,
        claimed_at: tx.now,
    })
}

/// Changes a row, because SQLite syncs only commits that change something. The sync covers all earlier
/// commits, because the log is one file. It costs one id.
pub(crate) fn touch(tx: &mut Tx<'_>) {
    tx.memory.next_id(tx.now);
    tx.effects.figures = true;
}

/// The error for callers that wait until an existing task is durable.
pub(crate) fn in_doubt(error: Error) -> Error {
    match error {
        Error::Fatal(_) => error,
        error => Error::Unknown(error.to_string()),
    }
}
