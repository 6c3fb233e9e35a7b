//! Makes a task record from a row.

use std::{sync::Arc, time::Duration};

use tokio_postgres::Row;
use windlass_core::{
    AttemptRecord, Encoding, Lane, Name, Payload, Result, State, TaskId, TaskRecord, WorkerId, attempt_log,
    task::{ATTEMPT_RECORDS_MAX, AttemptResult},
};

use crate::connection::values::Cells;

/// Reads a row of `show_task.sql` or `list_*.sql`: the same columns for unfinished and kept tasks. The payload
/// is empty if it was not asked for.
pub(crate) fn task(row: &Row) -> Result<TaskRecord> {
    let mut record = TaskRecord {
        id: row.task(0),
        state: row.state(1).unwrap_or(State::Dead),
        lane: Arc::new(Lane {
            id: row.lane(2),
            queue: Name::stored("queue", row.get::<_, &str>(3))?,
            kind: Name::stored("kind", row.get::<_, &str>(4))?,
        }),
        priority: row.get(5),
        payload: Payload::from_stored(encoding(row.get(6)), row.get::<_, Option<_>>(7).unwrap_or_default()),
        job: name(row, 8, "job"),
        workflow: name(row, 9, "workflow"),
        key: row.get(10),
        lease: row.small(11),
        attempt: row.small(12),
        max_attempts: row.small(13),
        crashes: row.small(14),
        timeout: row.get::<_, Option<i64>>(15).map(|ms| Duration::from_millis(ms as u64)),
        due_at: row.time_if_any(16),
        started_at: row.time_if_any(17),
        ended_at: row.time_if_any(18),
        worker: row.get::<_, Option<i64>>(19).map(WorkerId),
        progress: row.get(20),
        output: output(row.get(21), row.get(22)),
        error: row.get(23),
        cancel_requested: row.get(24),
        attempts: attempt_log::read(row.get(25)),
    };
    if row.get(26) {
        add_last_attempt(&mut record);
    }
    Ok(record)
}

/// The same for one of many rows: a row that cannot be read is left out, so that the others are shown.
pub(crate) fn readable(row: &Row) -> (TaskId, Option<TaskRecord>) {
    let id = row.task(0);
    match task(row) {
        Ok(task) => (id, Some(task)),
        Err(error) => {
            tracing::warn!(task = %id, %error, "a task that cannot be read is left out");
            (id, None)
        }
    }
}

/// The columns of a kept task describe its last attempt, which is therefore not in its log.
fn add_last_attempt(record: &mut TaskRecord) {
    let Some(ended_at) = record.ended_at else { return };
    let result = match record.state {
        State::Done => AttemptResult::Done,
        _ => AttemptResult::Cancelled,
    };
    record.attempts.push(AttemptRecord {
        attempt: record.attempt,
        lease: record.lease,
        worker: record.worker,
        started_at: record.started_at,
        ended_at,
        result,
        error: record.error.clone(),
    });
    let surplus = record.attempts.len().saturating_sub(ATTEMPT_RECORDS_MAX);
    record.attempts.drain(..surplus);
}

pub(crate) fn encoding(code: i16) -> Encoding {
    Encoding::from_code(i64::from(code)).unwrap_or(Encoding::Bytes)
}

fn output(code: Option<i16>, bytes: Option<Vec<u8>>) -> Option<Payload> {
    Some(Payload::from_stored(encoding(code?), bytes?))
}

/// An array of names. A name that is not allowed is left out.
pub(crate) fn names(row: &Row, place: usize) -> Vec<Name> {
    row.get::<_, Vec<&str>>(place).into_iter().filter_map(|text| Name::stored("name", text).ok()).collect()
}

/// A name that may be absent. A name that is not allowed is left out, so that its task can go on.
pub(crate) fn name(row: &Row, place: usize, what: &str) -> Option<Name> {
    row.get::<_, Option<&str>>(place).and_then(|text| Name::stored(what, text).ok())
}
