//! The rows of a copied store: column by column, one statement for each batch.

use std::collections::HashMap;

use windlass_core::{
    Error, Result,
    transfer::{HistoryRow, JobRow, KeyRow, Rows, ScheduleRow, TaskRow, WorkflowRow},
};

use crate::{
    connection::{
        conn::{Conn, Param},
        error::Failure,
    },
    sql::{self, Sql},
};

/// Inserts rows of any part.
pub(crate) async fn insert(conn: &Conn, lanes: &HashMap<i64, i32>, rows: &Rows) -> Result<(), Failure> {
    match rows {
        _ if rows.is_empty() => Ok(()),
        Rows::Lanes(rows) => {
            let (queues, kinds) = (column(rows, |row| &*row.queue), column(rows, |row| &*row.kind));
            put(conn, &sql::COPY_LANES, &[&queues, &kinds]).await
        }
        Rows::PausedQueues(rows) => {
            let (queues, times) = (column(rows, |row| &*row.queue), column(rows, |row| row.paused_at));
            put(conn, &sql::COPY_PAUSED, &[&queues, &times]).await
        }
        Rows::Jobs(rows) => put_jobs(conn, rows).await,
        Rows::Workflows(rows) => put_workflows(conn, rows).await,
        Rows::Schedules(rows) => put_schedules(conn, rows).await,
        Rows::Tasks(rows) => put_tasks(conn, lanes, rows).await,
        Rows::History(rows) => put_history(conn, lanes, rows).await,
        Rows::Keys(rows) => put_keys(conn, rows).await,
    }
}

async fn put_jobs(conn: &Conn, rows: &[JobRow]) -> Result<(), Failure> {
    let params: &[Param<'_>] = &[
        &column(rows, |row| &*row.name),
        &column(rows, |row| row.created_at),
        &column(rows, |row| row.delay_ms),
        &column(rows, |row| row.last_start),
        &column(rows, |row| row.gone_before),
        &column(rows, |row| row.concurrency),
        &column(rows, |row| row.state),
        &column(rows, |row| row.is_over_limit),
        &column(rows, |row| row.is_at_limit),
    ];
    put(conn, &sql::COPY_JOBS, params).await
}

async fn put_workflows(conn: &Conn, rows: &[WorkflowRow]) -> Result<(), Failure> {
    let params: &[Param<'_>] = &[
        &column(rows, |row| &*row.name),
        &column(rows, |row| row.created_at),
        &column(rows, |row| row.blocked_by),
        &column(rows, |row| row.forgiven_step),
        &column(rows, |row| row.on_failure),
    ];
    put(conn, &sql::COPY_WORKFLOWS, params).await
}

async fn put_schedules(conn: &Conn, rows: &[ScheduleRow]) -> Result<(), Failure> {
    let params: &[Param<'_>] = &[
        &column(rows, |row| &*row.name),
        &column(rows, |row| row.next_at),
        &column(rows, |row| row.last_at),
        &column(rows, |row| row.last_task),
        &column(rows, |row| row.paused),
        &column(rows, |row| &*row.spec),
    ];
    put(conn, &sql::COPY_SCHEDULES, params).await
}

async fn put_tasks(conn: &Conn, lanes: &HashMap<i64, i32>, rows: &[TaskRow]) -> Result<(), Failure> {
    let lanes = lanes_of(lanes, rows.iter().map(|row| row.lane))?;
    let params: &[Param<'_>] = &[
        &column(rows, |row| row.id),
        &column(rows, |row| row.ready_seq),
        &column(rows, |row| row.due_at),
        &column(rows, |row| row.claimed_at),
        &column(rows, |row| row.ended_at),
        &column(rows, |row| row.worker),
        &column(rows, |row| row.claim_no),
        &column(rows, |row| row.timeout_ms),
        &column(rows, |row| row.step),
        &lanes,
        &column(rows, |row| row.priority),
        &column(rows, |row| row.lease),
        &column(rows, |row| row.attempt),
        &column(rows, |row| row.max_attempts),
        &column(rows, |row| row.crashes),
        &column(rows, |row| row.state),
        &column(rows, |row| row.encoding),
        &column(rows, |row| row.on_failure),
        &column(rows, |row| row.retry.as_deref()),
        &column(rows, |row| row.job.as_deref()),
        &column(rows, |row| row.workflow.as_deref()),
        &column(rows, |row| row.key.as_deref()),
        &column(rows, |row| text(row.cancel.as_ref())),
        &column(rows, |row| text(row.progress.as_ref())),
        &column(rows, |row| text(row.error.as_ref())),
        &column(rows, |row| json(row.log.as_ref())),
        &column(rows, |row| &*row.payload),
        &column(rows, |row| row.trace.as_deref()),
    ];
    put(conn, &sql::COPY_TASKS, params).await
}

async fn put_history(conn: &Conn, lanes: &HashMap<i64, i32>, rows: &[HistoryRow]) -> Result<(), Failure> {
    let lanes = lanes_of(lanes, rows.iter().map(|row| row.lane))?;
    let params: &[Param<'_>] = &[
        &column(rows, |row| row.id),
        &column(rows, |row| row.started_at),
        &column(rows, |row| row.ended_at),
        &column(rows, |row| row.worker),
        &column(rows, |row| row.timeout_ms),
        &lanes,
        &column(rows, |row| row.priority),
        &column(rows, |row| row.lease),
        &column(rows, |row| row.attempt),
        &column(rows, |row| row.max_attempts),
        &column(rows, |row| row.state),
        &column(rows, |row| row.encoding),
        &column(rows, |row| row.output_encoding),
        &column(rows, |row| row.ran),
        &column(rows, |row| row.job.as_deref()),
        &column(rows, |row| row.workflow.as_deref()),
        &column(rows, |row| row.key.as_deref()),
        &column(rows, |row| text(row.progress.as_ref())),
        &column(rows, |row| text(row.error.as_ref())),
        &column(rows, |row| json(row.log.as_ref())),
        &column(rows, |row| row.output.as_deref()),
        &column(rows, |row| &*row.payload),
    ];
    put(conn, &sql::COPY_HISTORY, params).await
}

async fn put_keys(conn: &Conn, rows: &[KeyRow]) -> Result<(), Failure> {
    let params: &[Param<'_>] = &[
        &column(rows, |row| &*row.queue),
        &column(rows, |row| &*row.key),
        &column(rows, |row| row.task),
        &column(rows, |row| row.expires_at),
    ];
    put(conn, &sql::COPY_KEYS, params).await
}

/// The numbers of the source's lanes in this schema.
fn lanes_of(here: &HashMap<i64, i32>, lanes: impl Iterator<Item = i64>) -> Result<Vec<i32>, Failure> {
    let find = |lane: i64| {
        let unknown =
            || Error::Conflict(format!("a task of the source is in lane {lane}, which does not exist"));
        here.get(&lane).copied().ok_or_else(unknown)
    };
    Ok(lanes.map(find).collect::<Result<_>>()?)
}

async fn put(conn: &Conn, sql: &'static Sql, params: &[Param<'_>]) -> Result<(), Failure> {
    conn.query(sql, params).await.map(drop)
}

fn column<'a, T, V>(rows: &'a [T], value: impl Fn(&'a T) -> V) -> Vec<V> {
    rows.iter().map(value).collect()
}

/// Text as PostgreSQL can store it.
fn text(text: Option<&String>) -> Option<String> {
    text.map(|text| text.replace('\0', "\u{fffd}"))
}

/// JSON as PostgreSQL can store it. Text that is not JSON is left out, as its readers would leave it out.
fn json(text: Option<&String>) -> Option<String> {
    let text = text?.replace("\\u0000", "\\ufffd");
    serde_json::from_str::<serde_json::Value>(&text).is_ok().then_some(text)
}
