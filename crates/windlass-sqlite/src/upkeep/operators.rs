//! Bulk runs, and the last calls that changed something.

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Row};
use windlass_core::{
    CallRecord, NewCall, Operators, Result, RunRow, Timestamp,
    operators::{CALLS_KEPT, RUNS_KEPT, RUNS_MAX, StillRuns, check_run, too_many_runs},
};

use crate::{
    connection::{
        call::{Class, Sync},
        reader::read_error,
        tx::{Step, Tx},
    },
    sql,
    store::SqliteStore,
};

#[async_trait]
impl Operators for SqliteStore {
    async fn start_run(&self, text: &str) -> Result<RunRow> {
        check_run(text)?;
        let text = text.to_owned();
        self.write(Class::Client, Sync::Durable, move |tx| start(tx, &text)).await
    }

    async fn save_run(&self, id: u64, version: u64, still: StillRuns, text: &str) -> Result<Option<RunRow>> {
        check_run(text)?;
        let text = text.to_owned();
        self.write(Class::Client, Sync::Durable, move |tx| save(tx, id, version, still, &text)).await
    }

    async fn running_runs(&self) -> Result<Vec<RunRow>> {
        self.runs_of(|conn, now| {
            conn.prepare_cached(sql::RUNNING_RUNS)?.query_map([], |row| run(row, now))?.collect()
        })
        .await
    }

    async fn runs(&self, limit: u32) -> Result<Vec<RunRow>> {
        self.runs_of(move |conn, now| {
            conn.prepare_cached(sql::LIST_RUNS)?.query_map([limit], |row| run(row, now))?.collect()
        })
        .await
    }

    async fn run(&self, id: u64) -> Result<Option<RunRow>> {
        Ok(self.runs_of(move |conn, now| Ok(find(conn, id, now)?.into_iter().collect())).await?.pop())
    }

    async fn note_calls(&self, calls: &[NewCall]) -> Result<()> {
        let calls = calls.to_vec();
        self.write(Class::Client, Sync::Relaxed, move |tx| note(tx, &calls)).await
    }

    async fn calls(&self, below: Option<u64>, limit: u32) -> Result<Vec<CallRecord>> {
        let below = below.map_or(i64::MAX, number);
        self.read(move |conn| {
            let list = || -> rusqlite::Result<Vec<CallRecord>> {
                conn.prepare_cached(sql::LIST_CALLS)?.query_map((below, limit), call)?.collect()
            };
            list().map_err(|error| read_error(&error))
        })
        .await
    }
}

impl SqliteStore {
    async fn runs_of(
        &self,
        read: impl Fn(&Connection, Timestamp) -> rusqlite::Result<Vec<RunRow>> + Send + 'static,
    ) -> Result<Vec<RunRow>> {
        let now = self.now();
        self.read(move |conn| read(conn, now).map_err(|error| read_error(&error))).await
    }
}

fn start(tx: &mut Tx<'_>, text: &str) -> Step<RunRow> {
    let running = {
        let mut statement = tx.sql(sql::RUNNING_RUNS)?;
        statement.query_map([], |_| Ok(()))?.count()
    };
    if running >= RUNS_MAX as usize {
        return Err(too_many_runs().into());
    }
    tx.sql(sql::TRIM_RUNS)?.execute([RUNS_KEPT])?;
    let id = tx.sql(sql::ADD_RUN)?.insert((tx.now.as_ms(), text))?;
    Ok(tx.sql(sql::FIND_RUN)?.query_row([id], |row| run(row, tx.now))?)
}

fn save(tx: &mut Tx<'_>, id: u64, version: u64, still: StillRuns, text: &str) -> Step<Option<RunRow>> {
    let still_runs = still == StillRuns::Yes;
    let params = (number(id), number(version), still_runs, tx.now.as_ms(), text);
    let saved = tx.sql(sql::SAVE_RUN)?.execute(params)?;
    Ok(if saved == 1 { find(tx.conn, id, tx.now)? } else { None })
}

fn find(conn: &Connection, id: u64, now: Timestamp) -> rusqlite::Result<Option<RunRow>> {
    conn.prepare_cached(sql::FIND_RUN)?.query_row([number(id)], |row| run(row, now)).optional()
}

fn note(tx: &mut Tx<'_>, calls: &[NewCall]) -> Step<()> {
    for NewCall { age, who, call, about, result } in calls {
        tx.sql(sql::ADD_CALL)?.execute((tx.now.before(*age).as_ms(), who, call, about, result))?;
    }
    tx.sql(sql::TRIM_CALLS)?.execute([CALLS_KEPT])?;
    Ok(())
}

/// A number as a column holds it. A larger one is in no row.
fn number(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn run(row: &Row<'_>, now: Timestamp) -> rusqlite::Result<RunRow> {
    Ok(RunRow {
        id: row.get::<_, i64>(0)?.unsigned_abs(),
        version: row.get::<_, i64>(1)?.unsigned_abs(),
        is_running: row.get(2)?,
        started_at: Timestamp::from_ms(row.get(3)?),
        updated_at: Timestamp::from_ms(row.get(4)?),
        read_at: now,
        text: row.get(5)?,
    })
}

fn call(row: &Row<'_>) -> rusqlite::Result<CallRecord> {
    Ok(CallRecord {
        id: row.get::<_, i64>(0)?.unsigned_abs(),
        at: Timestamp::from_ms(row.get(1)?),
        who: row.get(2)?,
        call: row.get(3)?,
        about: row.get(4)?,
        result: row.get(5)?,
    })
}
