//! Pages of tasks.

use std::cmp::Reverse;

use windlass_core::{
    Name, Result, State, TaskId, TaskRecord,
    store::{Detail, Filter, PAGE_MAX, Page},
};

use super::inspect::{ended_since, rows_of};
use crate::{
    connection::{conn::Param, error::Failure, pool::Session, values::Cells},
    operate::record,
    shared::Shared,
    sql::{self, Sql},
};

/// Rows that one page looks at.
const SCAN_MAX: i64 = 20_000;

/// A row of a list: the task's id, and its record if the row can be read.
type Listed = (TaskId, Option<TaskRecord>);

/// The rows that a page reads.
struct Read<'a> {
    filter: &'a Filter,
    detail: Detail,
    /// The first id that does not belong to it.
    below: i64,
    /// The lowest id that does.
    from: i64,
    /// How many rows at most.
    rows: u32,
}

/// One page of tasks, newest first.
pub(crate) async fn page(
    shared: &Shared,
    filter: &Filter,
    detail: Detail,
    (after, limit): (Option<TaskId>, u32),
) -> Result<Page> {
    filter.check()?;
    let at = (after, limit.clamp(1, PAGE_MAX));
    let mut session = shared.pool.session().await?;
    // Both tables in one snapshot: a task that ends in between is neither missed nor shown twice.
    session.begin().await?;
    session.batch("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
    let page = look(&mut session, filter, detail, at).await;
    session.rollback().await;
    Ok(page?)
}

async fn look(
    session: &mut Session<'_>,
    filter: &Filter,
    detail: Detail,
    (after, limit): (Option<TaskId>, u32),
) -> Result<Page, Failure> {
    if let Some(ids) = &filter.ids {
        return named(session, filter, detail, Filter::ids_below(ids, after, limit)).await;
    }
    // A worker runs few tasks, and they may be behind any number of ready ones.
    if let (Some(worker), Some(State::Running)) = (filter.worker, filter.only_state()) {
        let held = session.query(&sql::HELD, &[&worker.0, &0_i64, &i64::MAX, &SCAN_MAX]).await?;
        let held: Vec<_> = held.iter().map(|row| row.task(0)).collect();
        return named(session, filter, detail, Filter::ids_below(&held, after, limit)).await;
    }
    list(session, filter, detail, (after, limit)).await
}

/// The tasks with these ids, looked up by the primary key.
async fn named(
    session: &mut Session<'_>,
    filter: &Filter,
    detail: Detail,
    (ids, next): (Vec<TaskId>, Option<TaskId>),
) -> Result<Page, Failure> {
    let rows = rows_of(session, &ids, detail).await?;
    let mut tasks: Vec<_> = rows.iter().filter_map(|row| record::readable(row).1).collect();
    tasks.sort_by_key(|task| Reverse(task.id));
    Ok(Page { tasks, next }.picked(filter, PAGE_MAX))
}

async fn list(
    session: &mut Session<'_>,
    filter: &Filter,
    detail: Detail,
    (after, limit): (Option<TaskId>, u32),
) -> Result<Page, Failure> {
    let (from, below) = filter.range(after);
    let below = holder(session, filter).await?.map_or(below.raw(), |holder| below.raw().min(holder + 1));
    let mut read = Read { filter, detail, below, from: from.raw(), rows: limit };
    // Not every row whose error begins as the cause does has that cause, so a page reads more rows than it
    // answers with. It does so only without payloads, which may be large.
    if filter.cause.is_some() && detail == Detail::Summary {
        read.rows = PAGE_MAX;
    }
    let state = filter.only_state();
    if state == Some(State::Dead) && dead_are_few(session).await? {
        let tasks = rows(session, &sql::LIST_DEAD, &read).await?;
        return Ok(cut(tasks, None, read.rows).picked(filter, limit));
    }
    let is_kept = state.is_none_or(|state| matches!(state, State::Done | State::Cancelled));
    let is_hot = state.is_none_or(|state| !matches!(state, State::Done | State::Cancelled));
    // Both tables are read down to the same id. It is the higher of the two at which the reads had to stop.
    let mut floor: Option<i64> = None;
    if is_hot {
        let reach = session.row(&sql::FLOOR_TASK, &[&read.below, &(SCAN_MAX - 1)]).await?;
        floor = floor.max(reach.map(|row| row.get(0)));
    }
    if is_kept {
        let ended_since = ended_since(filter.since);
        let reach = session.row(&sql::FLOOR_HISTORY, &[&read.below, &(SCAN_MAX - 1), &ended_since]).await?;
        floor = floor.max(reach.map(|row| row.get(0)));
    }
    let floor = floor.filter(|floor| *floor > read.from);
    read.from = floor.unwrap_or(read.from);
    let mut tasks = Vec::new();
    if is_hot {
        tasks.extend(rows(session, &sql::LIST_TASK, &read).await?);
    }
    if is_kept {
        tasks.extend(rows(session, &sql::LIST_HISTORY, &read).await?);
    }
    tasks.sort_by_key(|(id, _): &Listed| Reverse(*id));
    Ok(cut(tasks, floor.map(TaskId::from_raw), read.rows).picked(filter, limit))
}

/// The task that the key of a filter belongs to. No younger task of that queue has the key.
async fn holder(session: &mut Session<'_>, filter: &Filter) -> Result<Option<i64>, Failure> {
    let (Some(queue), Some(key)) = (&filter.queue, &filter.key) else { return Ok(None) };
    let row = session.row(&sql::KEY_HOLDER, &[&queue.as_str(), key]).await?;
    Ok(row.map(|row| row.get(0)))
}

/// A full page goes on below its last row; any other page goes on below the last row that was read.
fn cut(mut tasks: Vec<Listed>, floor: Option<TaskId>, rows: u32) -> Page {
    let is_full = tasks.len() >= rows as usize;
    tasks.truncate(rows as usize);
    let next = if is_full { tasks.last().map(|(id, _)| *id) } else { floor };
    Page { tasks: tasks.into_iter().filter_map(|(_, task)| task).collect(), next }
}

async fn rows(
    session: &mut Session<'_>,
    statement: &'static Sql,
    read: &Read<'_>,
) -> Result<Vec<Listed>, Failure> {
    let filter = read.filter;
    let state = filter.only_state().map(|state| state.code() as i16);
    let (queue, kind) = (text(filter.queue.as_ref()), text(filter.kind.as_ref()));
    let (job, workflow) = (text(filter.job.as_ref()), text(filter.workflow.as_ref()));
    let worker = filter.worker.map(|worker| worker.0);
    let (error_begins, limit) = (filter.error_begins(), i64::from(read.rows));
    let is_whole = read.detail == Detail::Whole;
    let ended_since = ended_since(filter.since);
    let mut params: Vec<Param<'_>> = vec![
        &read.below,
        &read.from,
        &state,
        &queue,
        &kind,
        &job,
        &workflow,
        &limit,
        &worker,
        &filter.key,
        &error_begins,
        &is_whole,
    ];
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
