//! Look-ups: one task, which of some tasks have ended, what a worker registered with.

use rusqlite::{Connection, OptionalExtension};
use windlass_core::{Result, State, TaskId, TaskRecord, WorkerId, store::Detail, worker::Registration};

use crate::{connection::reader::read_error, leases::hand_back::names_from_stored, operate::record, sql};

/// Most ids in one look-up of ended tasks.
pub(crate) const ENDED_IDS_MAX: usize = 10_000;

/// One task, unfinished or from the history.
pub(crate) fn task(conn: &Connection, id: TaskId) -> Result<Option<TaskRecord>> {
    in_one_look(conn, || find(conn, id, Detail::Whole)).map_err(|error| read_error(&error))
}

/// One task, inside a transaction.
pub(super) fn find(conn: &Connection, id: TaskId, detail: Detail) -> rusqlite::Result<Option<TaskRecord>> {
    let given = (id.raw(), detail == Detail::Whole);
    let hot = conn.prepare_cached(sql::SHOW_TASK)?.query_row(given, record::task).optional()?;
    match hot {
        Some(task) => Ok(Some(task)),
        None => conn.prepare_cached(sql::SHOW_HISTORY)?.query_row(given, record::task).optional(),
    }
}

/// Reads in one transaction: between two, a task could move from the first table to the second. A store in
/// memory shares the writer's connection, which may have a transaction open already.
pub(super) fn in_one_look<T>(
    conn: &Connection,
    read: impl FnOnce() -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
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
