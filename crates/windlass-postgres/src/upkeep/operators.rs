//! Bulk runs, and the last calls that changed something.

use async_trait::async_trait;
use tokio_postgres::Row;
use windlass_core::{
    CallRecord, NewCall, Operators, Result, RunRow,
    operators::{CALLS_KEPT, RUNS_KEPT, RUNS_MAX, StillRuns, check_run, too_many_runs},
};

use crate::{
    connection::values::{Cells, column, ms},
    sql,
    store::PostgresStore,
};

#[async_trait]
impl Operators for PostgresStore {
    async fn start_run(&self, text: &str) -> Result<RunRow> {
        check_run(text)?;
        let (at_work, kept) = (i64::from(RUNS_MAX), i64::from(RUNS_KEPT));
        let row = self.shared().pool.row(&sql::RUN_START, &[&text, &at_work, &kept]).await?;
        row.as_ref().map(run).ok_or_else(too_many_runs)
    }

    async fn save_run(&self, id: u64, version: u64, still: StillRuns, text: &str) -> Result<Option<RunRow>> {
        check_run(text)?;
        let (id, version, still_runs) = (number(id), number(version), still == StillRuns::Yes);
        let row = self.shared().pool.row(&sql::RUN_SAVE, &[&id, &version, &still_runs, &text]).await?;
        Ok(row.as_ref().map(run))
    }

    async fn running_runs(&self) -> Result<Vec<RunRow>> {
        let rows = self.shared().pool.query(&sql::RUN_RUNNING, &[]).await?;
        Ok(rows.iter().map(run).collect())
    }

    async fn runs(&self, limit: u32) -> Result<Vec<RunRow>> {
        let limit = i64::from(limit);
        let rows = self.shared().pool.query(&sql::RUN_LIST, &[&limit]).await?;
        Ok(rows.iter().map(run).collect())
    }

    async fn run(&self, id: u64) -> Result<Option<RunRow>> {
        let row = self.shared().pool.row(&sql::RUN_FIND, &[&number(id)]).await?;
        Ok(row.as_ref().map(run))
    }

    async fn note_calls(&self, calls: &[NewCall]) -> Result<()> {
        let ages = column(calls, |call| ms(call.age));
        let (who, call) = (column(calls, |call| &*call.who), column(calls, |call| &*call.call));
        let (about, result) = (column(calls, |call| &*call.about), column(calls, |call| &*call.result));
        let mut session = self.shared().pool.session().await?;
        session.query(&sql::CALL_NOTE, &[&ages, &who, &call, &about, &result]).await?;
        session.query(&sql::CALL_TRIM, &[&i64::from(CALLS_KEPT)]).await?;
        Ok(())
    }

    async fn calls(&self, below: Option<u64>, limit: u32) -> Result<Vec<CallRecord>> {
        let (below, limit) = (below.map_or(i64::MAX, number), i64::from(limit));
        let rows = self.shared().pool.query(&sql::CALL_LIST, &[&below, &limit]).await?;
        Ok(rows.iter().map(call).collect())
    }
}

/// A number as a column holds it. A larger one is in no row.
fn number(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn run(row: &Row) -> RunRow {
    RunRow {
        id: row.number(0),
        version: row.number(1),
        is_running: row.get(2),
        started_at: row.time(3),
        updated_at: row.time(4),
        read_at: row.time(5),
        text: row.get(6),
    }
}

fn call(row: &Row) -> CallRecord {
    CallRecord {
        id: row.number(0),
        at: row.time(1),
        who: row.get(2),
        call: row.get(3),
        about: row.get(4),
        result: row.get(5),
    }
}
