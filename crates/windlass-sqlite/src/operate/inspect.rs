//! Look-ups: one task, pages of tasks, which of some tasks have ended.

use rusqlite::{Connection, OptionalExtension, params};
use windlass_core::{
    Name, Result, State, TaskId, TaskRecord, WorkerId,
    store::{Filter, PAGE_MAX, Page},
    worker::Registration,
};

use crate::{connection::reader::read_error, leases::hand_back::names_from_stored, operate::record, sql};

/// Rows of each table that one page may read, so that a filter without matches stays cheap.
const SCAN_MAX: i64 = 20_000;
/// Most ids in one look-up of ended tasks.
pub(crate) const ENDED_IDS_MAX: usize = 10_000;

/// One task, unfinished or from the history.
pub(crate) fn task(conn: &Connection, id: TaskId) -> Result<Option<TaskRecord>> {
    let find = || -> rusqlite::Result<Option<TaskRecord>> {
        let hot = conn.prepare_cached(sql::SHOW_TASK)?.query_row([id.raw()], record::task).optional()?;
        match hot {
            Some(task) => Ok(Some(task)),
            None => conn.prepare_cached(sql::SHOW_HISTORY)?.query_row([id.raw()], record::task).optional(),
        }
    };
    in_one_look(conn, find).map_err(|error| read_error(&error))
}

/// Reads in one transaction: between two, a task could move from the first table to the second. A store in
/// memory shares the writer's connection, which may have a transaction open already.
fn in_one_look<T>(conn: &Connection, read: impl FnOnce() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    if !conn.is_autocommit() {
        return read();
    }
    let tx = conn.unchecked_transaction()?;
    let found = read()?;
    tx.finish()?;
    Ok(found)
}

/// Those of the tasks that have ended or do not exist.
pub(crate) fn ended(conn: &Connection, ids: &[TaskId]) -> Result<Vec<(TaskId, Option<TaskRecord>)>> {
    let mut found = Vec::new();
    for id in ids {
        let (hot, kept): (Option<i64>, Option<i64>) = conn
            .prepare_cached(sql::IS_ENDED)
            .and_then(|mut statement| statement.query_row([id.raw()], |row| Ok((row.get(0)?, row.get(1)?))))
            .map_err(|error| read_error(&error))?;
        let is_unfinished = hot.and_then(State::from_code).is_some_and(|state| !state.is_ended());
        if !is_unfinished || kept.is_some() {
            found.push((*id, task(conn, *id)?));
        }
    }
    Ok(found)
}

/// One page of tasks, newest first.
pub(crate) fn tasks(conn: &Connection, filter: &Filter, after: Option<TaskId>, limit: u32) -> Result<Page> {
    let below = after.map_or(i64::MAX, TaskId::raw);
    let limit = i64::from(limit.clamp(1, PAGE_MAX));
    in_one_look(conn, || list(conn, filter, below, limit)).map_err(|error| read_error(&error))
}

fn list(conn: &Connection, filter: &Filter, below: i64, limit: i64) -> rusqlite::Result<Page> {
    let since = filter.since.map_or(i64::MIN, |since| TaskId::first_at(since).raw());
    let is_kept = filter.state.is_none_or(|state| matches!(state, State::Done | State::Cancelled));
    let is_hot = filter.state.is_none_or(|state| !matches!(state, State::Done | State::Cancelled));
    if filter.state == Some(State::Dead) && dead_are_few(conn)? {
        let tasks = list_dead(conn, filter, below, since, limit)?;
        return Ok(page(tasks, None, limit));
    }
    // Both tables are read down to the same id: the higher of their two floors.
    let mut floor: Option<i64> = None;
    for (wanted, sql) in [(is_hot, sql::FLOOR_TASK), (is_kept, sql::FLOOR_HISTORY)] {
        if wanted {
            let reach: Option<i64> =
                conn.prepare_cached(sql)?.query_row((below, SCAN_MAX - 1), |row| row.get(0)).optional()?;
            floor = floor.max(reach);
        }
    }
    let floor = floor.filter(|floor| *floor > since);
    let down_to = floor.unwrap_or(since);
    let mut tasks = Vec::new();
    for (wanted, sql) in [(is_hot, sql::LIST_TASK), (is_kept, sql::LIST_HISTORY)] {
        if wanted {
            tasks.extend(list_one(conn, sql, filter, (below, down_to, limit))?);
        }
    }
    tasks.sort_by_key(|task: &TaskRecord| std::cmp::Reverse(task.id));
    Ok(page(tasks, floor.map(TaskId::from_raw), limit))
}

/// Cuts a list that may be too long, and returns where the next page starts.
fn page(mut tasks: Vec<TaskRecord>, floor: Option<TaskId>, limit: i64) -> Page {
    let limit = limit as usize;
    let is_full = tasks.len() >= limit;
    tasks.truncate(limit);
    let next = if is_full { tasks.last().map(|task| task.id) } else { floor };
    Page { tasks, next }
}

fn list_one(
    conn: &Connection,
    sql: &str,
    filter: &Filter,
    (below, down_to, limit): (i64, i64, i64),
) -> rusqlite::Result<Vec<TaskRecord>> {
    conn.prepare_cached(sql)?
        .query_map(
            params![
                below,
                down_to,
                filter.state.map(State::code),
                text(filter.queue.as_ref()),
                text(filter.kind.as_ref()),
                text(filter.job.as_ref()),
                text(filter.workflow.as_ref()),
                limit
            ],
            record::task,
        )?
        .collect()
}

fn list_dead(
    conn: &Connection,
    filter: &Filter,
    below: i64,
    down_to: i64,
    limit: i64,
) -> rusqlite::Result<Vec<TaskRecord>> {
    conn.prepare_cached(sql::LIST_DEAD)?
        .query_map(
            params![
                below,
                down_to,
                text(filter.queue.as_ref()),
                text(filter.kind.as_ref()),
                text(filter.job.as_ref()),
                text(filter.workflow.as_ref()),
                limit
            ],
            record::task,
        )?
        .collect()
}

fn dead_are_few(conn: &Connection) -> rusqlite::Result<bool> {
    let dead: i64 = conn.prepare_cached(sql::COUNT_DEAD)?.query_row([SCAN_MAX], |row| row.get(0))?;
    Ok(dead < SCAN_MAX)
}

fn text(name: Option<&Name>) -> Option<&str> {
    name.map(Name::as_str)
}

/// What a worker stated when it registered.
pub(crate) fn registration(conn: &Connection, worker: WorkerId) -> rusqlite::Result<Option<Registration>> {
    let read = |row: &rusqlite::Row<'_>| {
        Ok(Registration {
            owner: row.get(0)?,
            kinds: names_from_stored(row.get_ref(1)?.as_str()?),
            queues: names_from_stored(row.get_ref(2)?.as_str()?),
        })
    };
    conn.prepare_cached(sql::FIND_REGISTRATION)?.query_row([worker.0], read).optional()
}
