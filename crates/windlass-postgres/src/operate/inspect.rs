//! Look-ups: one task, pages of tasks, which of some tasks have ended.

use std::{collections::HashMap, time::Duration};

use tokio_postgres::Row;
use windlass_core::{
    Error, Name, Result, State, TaskId, TaskRecord, Timestamp,
    store::{Filter, PAGE_MAX, Page},
};

use crate::{
    connection::{error::Failure, pool::Session},
    operate::record,
    shared::Shared,
    sql::{self, Sql},
};

/// Rows that one page looks at.
const SCAN_MAX: i64 = 20_000;
/// How far the server's clock may go back before a look-up misses a task that ended.
const CLOCK_SLACK: Duration = Duration::from_hours(1);
/// Most tasks in one look-up.
pub(crate) const ENDED_IDS_MAX: usize = 10_000;

/// A row of a list: the task's id, and its record if the row can be read.
type Listed = (TaskId, Option<TaskRecord>);

/// One task, unfinished or kept.
pub(crate) async fn task(shared: &Shared, id: TaskId) -> Result<Option<TaskRecord>> {
    let rows = rows_of(shared, &[id]).await?;
    rows.first().map(record::task).transpose()
}

async fn rows_of(shared: &Shared, ids: &[TaskId]) -> Result<Vec<Row>> {
    let mut session = shared.pool.session().await?;
    let (raw, since) = raw(ids);
    Ok(session.query(&sql::SHOW_TASK, &[&raw, &since]).await?)
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
    let states = states(&mut shared.pool.session().await?, ids).await?;
    let ended: Vec<TaskId> =
        ids.iter().copied().filter(|id| states.get(id).is_none_or(|state| state.is_ended())).collect();
    if ended.is_empty() {
        return Ok(Vec::new());
    }
    let mut found: HashMap<_, _> = rows_of(shared, &ended).await?.iter().map(record::readable).collect();
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
    let state = |row: &Row| State::from_code(i64::from(row.get::<_, i16>(1))).unwrap_or(State::Dead);
    Ok(rows.iter().map(|row| (TaskId::from_raw(row.get(0)), state(row))).collect())
}

/// One page of tasks, newest first.
pub(crate) async fn tasks(
    shared: &Shared,
    filter: &Filter,
    after: Option<TaskId>,
    limit: u32,
) -> Result<Page> {
    let below = after.map_or(i64::MAX, TaskId::raw);
    let limit = i64::from(limit.clamp(1, PAGE_MAX));
    let mut session = shared.pool.session().await?;
    // Both tables in one snapshot: a task that ends in between is neither missed nor shown twice.
    session.begin().await?;
    session.batch("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
    let page = list(&mut session, filter, below, limit).await;
    session.rollback().await;
    Ok(page?)
}

async fn list(session: &mut Session<'_>, filter: &Filter, below: i64, limit: i64) -> Result<Page, Failure> {
    let since = filter.since.map_or(i64::MIN, |since| TaskId::first_at(since).raw());
    let is_kept = filter.state.is_none_or(|state| matches!(state, State::Done | State::Cancelled));
    let is_hot = filter.state.is_none_or(|state| !matches!(state, State::Done | State::Cancelled));
    let ended_since = ended_since(filter.since);
    if filter.state == Some(State::Dead) && dead_are_few(session).await? {
        let tasks = list_one(session, &sql::LIST_DEAD, filter, (below, since, limit)).await?;
        return Ok(page(tasks, None, limit));
    }
    // Both tables are read down to the same id. It is the higher of the two at which the reads had to stop.
    let mut floor: Option<i64> = None;
    if is_hot {
        let reach = session.row(&sql::FLOOR_TASK, &[&below, &(SCAN_MAX - 1)]).await?;
        floor = floor.max(reach.map(|row| row.get(0)));
    }
    if is_kept {
        let reach = session.row(&sql::FLOOR_HISTORY, &[&below, &(SCAN_MAX - 1), &ended_since]).await?;
        floor = floor.max(reach.map(|row| row.get(0)));
    }
    let floor = floor.filter(|floor| *floor > since);
    let range = (below, floor.unwrap_or(since), limit);
    let mut tasks = Vec::new();
    if is_hot {
        tasks.extend(list_one(session, &sql::LIST_TASK, filter, range).await?);
    }
    if is_kept {
        tasks.extend(list_one(session, &sql::LIST_HISTORY, filter, range).await?);
    }
    tasks.sort_by_key(|(id, _): &Listed| std::cmp::Reverse(*id));
    Ok(page(tasks, floor.map(TaskId::from_raw), limit))
}

/// The earliest end of a task that was enqueued at this time, less an hour, because the server's clock may
/// have been set back.
fn ended_since(since: Option<Timestamp>) -> i64 {
    since.map_or(i64::MIN, |since| since.before(CLOCK_SLACK).as_ms())
}

/// A full page goes on below its last task; any other page goes on below the last row that was read.
fn page(mut tasks: Vec<Listed>, floor: Option<TaskId>, limit: i64) -> Page {
    let limit = limit as usize;
    let is_full = tasks.len() >= limit;
    tasks.truncate(limit);
    let next = if is_full { tasks.last().map(|(id, _)| *id) } else { floor };
    Page { tasks: tasks.into_iter().filter_map(|(_, task)| task).collect(), next }
}

async fn list_one(
    session: &mut Session<'_>,
    statement: &'static Sql,
    filter: &Filter,
    (below, down_to, limit): (i64, i64, i64),
) -> Result<Vec<Listed>, Failure> {
    let state = filter.state.map(|state| state.code() as i16);
    let (queue, kind) = (text(filter.queue.as_ref()), text(filter.kind.as_ref()));
    let (job, workflow) = (text(filter.job.as_ref()), text(filter.workflow.as_ref()));
    let ended_since = ended_since(filter.since);
    let mut params: Vec<crate::connection::conn::Param<'_>> =
        vec![&below, &down_to, &state, &queue, &kind, &job, &workflow, &limit];
    if std::ptr::eq(statement, &raw const sql::LIST_HISTORY) {
        params.push(&ended_since);
    }
    let rows = session.query(statement, &params).await?;
    Ok(rows.iter().map(record::readable).collect())
}

async fn dead_are_few(session: &mut Session<'_>) -> Result<bool, Failure> {
    let row = session.row(&sql::COUNT_DEAD, &[&SCAN_MAX]).await?;
    Ok(row.is_some_and(|row| row.get::<_, i64>(0) < SCAN_MAX))
}

fn text(name: Option<&Name>) -> Option<&str> {
    name.map(Name::as_str)
}
