//! Turns a row into a task for display.

use std::{sync::Arc, time::Duration};

use rusqlite::Row;
use windlass_core::{
    AttemptRecord, Encoding, Lane, LaneId, Name, Payload, State, TaskId, TaskRecord, Timestamp, WorkerId,
    task::{ATTEMPT_RECORDS_MAX, AttemptResult},
};

use windlass_core::attempt_log as log;

/// Reads a row of `show_*.sql` or `list_*.sql`: the same columns for the hot table and the history. The
/// payload is empty if it was not asked for.
pub(crate) fn task(row: &Row<'_>) -> rusqlite::Result<TaskRecord> {
    let state = State::from_code(row.get(1)?).unwrap_or(State::Dead);
    let time = |place| -> rusqlite::Result<Option<Timestamp>> {
        Ok(row.get::<_, Option<i64>>(place)?.map(Timestamp::from_ms))
    };
    let mut record = TaskRecord {
        id: TaskId::from_raw(row.get(0)?),
        state,
        lane: Arc::new(Lane { id: LaneId(row.get(2)?), queue: name(row, 3)?, kind: name(row, 4)? }),
        priority: row.get(5)?,
        payload: Payload::from_stored(encoding(row.get(6)?), row.get::<_, Option<_>>(7)?.unwrap_or_default()),
        job: optional_name(row, 8)?,
        workflow: optional_name(row, 9)?,
        key: row.get(10)?,
        lease: row.get(11)?,
        attempt: row.get(12)?,
        max_attempts: row.get(13)?,
        crashes: row.get(14)?,
        timeout: row.get::<_, Option<i64>>(15)?.map(|ms| Duration::from_millis(ms as u64)),
        due_at: time(16)?,
        started_at: time(17)?,
        ended_at: time(18)?,
        worker: row.get::<_, Option<i64>>(19)?.map(WorkerId),
        progress: row.get(20)?,
        output: output(row.get(21)?, row.get(22)?),
        error: row.get(23)?,
        cancel_requested: row.get(24)?,
        attempts: log::read(row.get_ref(25)?.as_str_or_null()?),
    };
    if row.get(26)? {
        add_last_attempt(&mut record);
    }
    Ok(record)
}

/// The columns of a history row describe its last attempt, which its log therefore lacks.
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

fn encoding(code: i64) -> Encoding {
    Encoding::from_code(code).unwrap_or(Encoding::Bytes)
}

fn output(code: Option<i64>, bytes: Option<Vec<u8>>) -> Option<Payload> {
    Some(Payload::from_stored(encoding(code?), bytes?))
}

fn name(row: &Row<'_>, place: usize) -> rusqlite::Result<Name> {
    let text = row.get_ref(place)?.as_str()?;
    Name::stored("name", text).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(place, rusqlite::types::Type::Text, Box::new(error))
    })
}

fn optional_name(row: &Row<'_>, place: usize) -> rusqlite::Result<Option<Name>> {
    if row.get_ref(place)?.as_str_or_null()?.is_none() {
        return Ok(None);
    }
    name(row, place).map(Some)
}
