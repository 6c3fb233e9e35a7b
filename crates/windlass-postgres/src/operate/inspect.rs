//! Look-ups: one task, which of some tasks have ended.

use std::{collections::HashMap, time::Duration};

use tokio_postgres::Row;
use windlass_core::{Error, Result, State, TaskId, TaskRecord, Timestamp, store::Detail};

use crate::{
    connection::{error::Failure, pool::Session, values::Cells},
    operate::record,
    shared::Shared,
    sql,
};

/// How far the server's clock may go back before a look-up misses a task that ended.
const CLOCK_SLACK: Duration = Duration::from_hours(1);
/// Most tasks in one look-up.
pub(crate) const ENDED_IDS_MAX: usize = 10_000;

/// One task, unfinished or kept.
pub(crate) async fn task(shared: &Shared, id: TaskId) -> Result<Option<TaskRecord>> {
    let rows = rows_of(&mut shared.pool.session().await?, &[id], Detail::Whole).await?;
    rows.first().map(record::task).transpose()
}

/// The rows of these tasks, from both tables.
pub(super) async fn rows_of(
    session: &mut Session<'_>,
    ids: &[TaskId],
    detail: Detail,
) -> Result<Vec<Row>, Failure> {
    let (raw, since) = raw(ids);
    session.query(&sql::SHOW_TASK, &[&raw, &since, &(detail == Detail::Whole)]).await
}

/// Ids as the database has them, and the time before which none of them can have ended.
fn raw(ids: &[TaskId]) -> (Vec<i64>, i64) {
    let since = ids.iter().map(|id| id.enqueued_at()).min();
    (ids.iter().map(|id| id.raw()).collect(), ended_since(since))
}

/// The tasks that have ended, or do not exist any more (`None`).
pub(crate) async fn ended(shared: &Shared, ids: &[TaskId]) -> Result<Vec<(TaskId, Option<TaskRecord>)>> {
    if ids.len() > ENDED_IDS_MAX {
        return Err(Error::invalid(format!("{} tasks in one look-up; at most {ENDED_IDS_MAX}", ids.len())));
    }
    let mut session = shared.pool.session().await?;
    let states = states(&mut session, ids).await?;
    let ended: Vec<TaskId> =
        ids.iter().copied().filter(|id| states.get(id).is_none_or(|state| state.is_ended())).collect();
    if ended.is_empty() {
        return Ok(Vec::new());
    }
    let rows = rows_of(&mut session, &ended, Detail::Whole).await?;
    let mut found: HashMap<_, _> = rows.iter().map(record::readable).collect();
    Ok(ended.into_iter().map(|id| (id, found.remove(&id).flatten())).collect())
}

/// The states of the tasks that exist. A task that is just ending may be found in both tables: then it has
/// ended.
pub(crate) async fn states(
    session: &mut Session<'_>,
    ids: &[TaskId],
) -> Result<HashMap<TaskId, State>, Failure> {
    let (raw, since) = raw(ids);
    let rows = session.query(&sql::FIND_ENDED, &[&raw, &since]).await?;
    let state = |row: &Row| row.state(1).unwrap_or(State::Dead);
    Ok(rows.iter().map(|row| (row.task(0), state(row))).collect())
}

/// The earliest end of a task that was enqueued at this time, less an hour, because the server's clock may
/// have been set back.
pub(super) fn ended_since(since: Option<Timestamp>) -> i64 {
    since.map_or(i64::MIN, |since| since.before(CLOCK_SLACK).as_ms())
}
