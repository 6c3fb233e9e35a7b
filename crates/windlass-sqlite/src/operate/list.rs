//! Pages of tasks.

use rusqlite::{Connection, OptionalExtension, params};
use windlass_core::{
    Name, Result, State, TaskId, TaskRecord, WorkerId,
    store::{Detail, Filter, PAGE_MAX, Page},
};

use super::{
    inspect::{find, in_one_look},
    record,
};
use crate::{
    connection::{
        call::{Class, Sync},
        reader::read_error,
    },
    leases::hand_back::held_by,
    sql,
    store::SqliteStore,
};

/// Rows of each table that one page may read, so that a filter without matches stays cheap.
const SCAN_MAX: i64 = 20_000;

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

impl SqliteStore {
    /// One page of tasks, newest first.
    pub(crate) async fn page(
        &self,
        filter: &Filter,
        detail: Detail,
        at: (Option<TaskId>, u32),
    ) -> Result<Page> {
        filter.check()?;
        let filter = filter.clone();
        let ids = match (filter.worker, filter.only_state()) {
            // A worker runs few tasks, and they may be behind any number of ready ones. The writer knows them.
            (Some(worker), Some(State::Running)) if filter.ids.is_none() => Some(self.held_by(worker).await?),
            _ => filter.ids.clone(),
        };
        let (after, limit) = (at.0, at.1.clamp(1, PAGE_MAX));
        self.read(move |conn| {
            let look = || match &ids {
                Some(ids) => named(conn, &filter, detail, Filter::ids_below(ids, after, limit)),
                None => list(conn, &filter, detail, (after, limit)),
            };
            in_one_look(conn, look).map_err(|error| read_error(&error))
        })
        .await
    }

    async fn held_by(&self, worker: WorkerId) -> Result<Vec<TaskId>> {
        let held = self.write(Class::Client, Sync::Read, move |tx| Ok(held_by(tx, worker, |_, _| true)));
        Ok(held.await?.into_iter().map(|lease| lease.id).collect())
    }
}

/// The tasks with these ids, each looked up by its primary key.
fn named(
    conn: &Connection,
    filter: &Filter,
    detail: Detail,
    (ids, next): (Vec<TaskId>, Option<TaskId>),
) -> rusqlite::Result<Page> {
    let mut tasks = Vec::new();
    for id in ids {
        tasks.extend(find(conn, id, detail)?.filter(|task| filter.matches(task)));
    }
    Ok(Page { tasks, next })
}

fn list(
    conn: &Connection,
    filter: &Filter,
    detail: Detail,
    (after, limit): (Option<TaskId>, u32),
) -> rusqlite::Result<Page> {
    let (from, below) = filter.range(after);
    let below = holder(conn, filter)?.map_or(below, |holder| below.min(TaskId::from_raw(holder.raw() + 1)));
    let mut read = Read { filter, detail, below: below.raw(), from: from.raw(), rows: limit };
    // Not every row whose error begins as the cause does has that cause, so a page reads more rows than it
    // answers with. It does so only without payloads, which may be large.
    if filter.cause.is_some() && detail == Detail::Summary {
        read.rows = PAGE_MAX;
    }
    let state = filter.only_state();
    if state == Some(State::Dead) && dead_are_few(conn)? {
        let tasks = rows(conn, sql::LIST_DEAD, &read)?;
        return Ok(cut(tasks, None, read.rows).picked(filter, limit));
    }
    let is_kept = state.is_none_or(|state| matches!(state, State::Done | State::Cancelled));
    let is_hot = state.is_none_or(|state| !matches!(state, State::Done | State::Cancelled));
    // Both tables are read down to the same id: the higher of their two floors.
    let mut floor: Option<i64> = None;
    for (wanted, sql) in [(is_hot, sql::FLOOR_TASK), (is_kept, sql::FLOOR_HISTORY)] {
        if wanted {
            let reach: Option<i64> = conn
                .prepare_cached(sql)?
                .query_row((read.below, SCAN_MAX - 1), |row| row.get(0))
                .optional()?;
            floor = floor.max(reach);
        }
    }
    let floor = floor.filter(|floor| *floor > read.from);
    read.from = floor.unwrap_or(read.from);
    let mut tasks = Vec::new();
    for (wanted, sql) in [(is_hot, sql::LIST_TASK), (is_kept, sql::LIST_HISTORY)] {
        if wanted {
            tasks.extend(rows(conn, sql, &read)?);
        }
    }
    tasks.sort_by_key(|task: &TaskRecord| std::cmp::Reverse(task.id));
    Ok(cut(tasks, floor.map(TaskId::from_raw), read.rows).picked(filter, limit))
}

/// The task that the key of a filter belongs to. No younger task of that queue has the key.
fn holder(conn: &Connection, filter: &Filter) -> rusqlite::Result<Option<TaskId>> {
    let (Some(queue), Some(key)) = (&filter.queue, &filter.key) else { return Ok(None) };
    let find = |row: &rusqlite::Row<'_>| row.get(0).map(TaskId::from_raw);
    conn.prepare_cached(sql::FIND_KEY)?.query_row((queue.as_str(), key), find).optional()
}

/// Cuts a list that may be too long, and says where the next page starts.
fn cut(mut tasks: Vec<TaskRecord>, floor: Option<TaskId>, rows: u32) -> Page {
    let is_full = tasks.len() >= rows as usize;
    tasks.truncate(rows as usize);
    let next = if is_full { tasks.last().map(|task| task.id) } else { floor };
    Page { tasks, next }
}

fn rows(conn: &Connection, sql: &str, read: &Read<'_>) -> rusqlite::Result<Vec<TaskRecord>> {
    let filter = read.filter;
    conn.prepare_cached(sql)?
        .query_map(
            params![
                read.below,
                read.from,
                filter.only_state().map(State::code),
                text(filter.queue.as_ref()),
                text(filter.kind.as_ref()),
                text(filter.job.as_ref()),
                text(filter.workflow.as_ref()),
                read.rows,
                filter.worker.map(|worker| worker.0),
                filter.key,
                filter.error_begins(),
                read.detail == Detail::Whole,
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
