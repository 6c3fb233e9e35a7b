//! Recurring tasks: each tick is fired once (SCHEDULE).

use async_trait::async_trait;
use rusqlite::{OptionalExtension, Row};
use windlass_core::{
    Enqueued, Fire, Name, Result, ScheduleRow, Schedules, Store, TaskId, Timestamp, schedule::DueSchedules,
};

use crate::{
    connection::{
        call::{Class, Sync},
        reader::read_error,
        tx::{Step, Tx},
    },
    enqueue,
    gates::job::name,
    sql,
    store::SqliteStore,
};

#[async_trait]
impl Schedules for SqliteStore {
    async fn put(&self, row: &ScheduleRow) -> Result<()> {
        let row = row.clone();
        let work = move |tx: &mut Tx<'_>| -> Step<()> {
            let next_at = row.next_at.map(Timestamp::as_ms);
            tx.sql(sql::PUT_SCHEDULE)?.execute((row.name.as_str(), &row.spec, row.paused, next_at))?;
            Ok(())
        };
        self.write(Class::Client, Sync::Durable, work).await
    }

    async fn list(&self) -> Result<Vec<ScheduleRow>> {
        self.read(|conn| {
            let list = || -> rusqlite::Result<Vec<ScheduleRow>> {
                conn.prepare_cached(sql::LIST_SCHEDULES)?.query_map([], read)?.collect()
            };
            list().map_err(|error| read_error(&error))
        })
        .await
    }

    async fn find(&self, name: &Name) -> Result<Option<ScheduleRow>> {
        let name = name.clone();
        self.read(move |conn| {
            let find =
                || conn.prepare_cached(sql::FIND_SCHEDULE)?.query_row([name.as_str()], read).optional();
            find().map_err(|error| read_error(&error))
        })
        .await
    }

    async fn remove(&self, name: &Name) -> Result<bool> {
        let name = name.clone();
        let work = move |tx: &mut Tx<'_>| -> Step<bool> {
            Ok(tx.sql(sql::DELETE_SCHEDULE)?.execute([name.as_str()])? == 1)
        };
        self.write(Class::Client, Sync::Durable, work).await
    }

    async fn due(&self, limit: u32) -> Result<DueSchedules> {
        self.write(Class::Client, Sync::Read, move |tx| due(tx, limit)).await
    }

    async fn fire(&self, tick: Fire) -> Result<Option<Enqueued>> {
        if let Some(task) = &tick.task {
            task.check(self.rules())?;
        }
        let fired = self.write(Class::Client, Sync::Durable, move |tx| fire(tx, &tick)).await?;
        self.count_enqueued(fired.iter());
        Ok(fired)
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<ScheduleRow> {
    let time = |place| -> rusqlite::Result<Option<Timestamp>> {
        Ok(row.get::<_, Option<i64>>(place)?.map(Timestamp::from_ms))
    };
    Ok(ScheduleRow {
        name: name(row, 0)?,
        spec: row.get(1)?,
        paused: row.get(2)?,
        next_at: time(3)?,
        last_at: time(4)?,
        last_task: row.get::<_, Option<i64>>(5)?.map(TaskId::from_raw),
    })
}

/// Due schedules, and when the next one is due.
fn due(tx: &Tx<'_>, limit: u32) -> Step<DueSchedules> {
    let mut statement = tx.sql(sql::DUE_SCHEDULES)?;
    let rows = statement.query_map([i64::from(limit) + 1], read)?;
    let mut rows = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    let is_due = |row: &ScheduleRow| row.next_at.is_some_and(|at| at <= tx.now);
    let taken = rows.iter().take(limit as usize).take_while(|row| is_due(row)).count();
    let next_at = rows.get(taken).and_then(|row| row.next_at);
    rows.truncate(taken);
    Ok(DueSchedules { now: tx.now, due: rows, next_at })
}

/// Enqueues the task of a tick and moves the schedule on, if the schedule still waits for that tick.
fn fire(tx: &mut Tx<'_>, tick: &Fire) -> Step<Option<Enqueued>> {
    let found = tx.sql(sql::FIND_SCHEDULE)?.query_row([tick.name.as_str()], read).optional()?;
    let awaited = |row: &ScheduleRow| {
        !row.paused && row.next_at == Some(tick.tick) && row.spec == tick.spec && tick.tick <= tx.now
    };
    let Some(row) = found.filter(awaited) else {
        return Ok(None);
    };
    let answer = match &tick.task {
        Some(task) => enqueue::enqueue(tx, std::slice::from_ref(task))?.pop(),
        None => None,
    };
    let (last_at, last_task) = match answer {
        Some(answer) => (Some(tick.tick), Some(answer.id)),
        None => (row.last_at, row.last_task),
    };
    tx.sql(sql::FIRE_SCHEDULE)?.execute((
        tick.name.as_str(),
        tick.next_at.map(Timestamp::as_ms),
        last_at.map(Timestamp::as_ms),
        last_task.map(TaskId::raw),
    ))?;
    Ok(answer)
}
