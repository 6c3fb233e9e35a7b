//! Enqueue inside a transaction of sqlx.

use async_trait::async_trait;
use sqlx_core::{query::query, row::Row as _, sql_str::AssertSqlSafe, transaction::Transaction};
use sqlx_postgres::{PgConnection, PgDatabaseError, PgRow, Postgres};
use windlass_core::{Enqueued, Error, Result, TaskId};

use super::{Call, Lost, Within};

#[async_trait]
impl Within for Transaction<'_, Postgres> {
    async fn call(&mut self, call: &Call<'_>) -> Result<Enqueued> {
        let row = send(self, call).await;
        read(call, Lost::Undone, row)
    }
}

#[async_trait]
impl Within for PgConnection {
    async fn call(&mut self, call: &Call<'_>) -> Result<Enqueued> {
        let row = send(self, call).await;
        read(call, Lost::Unknown, row)
    }
}

async fn send(connection: &mut PgConnection, call: &Call<'_>) -> Result<PgRow, sqlx_core::Error> {
    // Safe: a fixed text with the checked name of a schema in it. The same text each time, so that sqlx
    // prepares it once.
    let row = &call.columns;
    let query = query::<Postgres>(AssertSqlSafe(call.text.as_str()))
        .bind(row.kind)
        .bind(row.encoding)
        .bind(row.payload)
        .bind(row.queue)
        .bind(row.job)
        .bind(row.workflow)
        .bind(row.priority)
        .bind(row.due_at)
        .bind(row.delay_ms)
        .bind(row.key)
        .bind(call.ignore_conflict)
        .bind(row.max_attempts)
        .bind(row.timeout_ms)
        .bind(row.retry.as_deref())
        .bind(row.on_failure)
        .bind(row.job_concurrency)
        .bind(row.trace.as_deref());
    query.fetch_one(connection).await
}

fn read(call: &Call<'_>, lost: Lost, row: Result<PgRow, sqlx_core::Error>) -> Result<Enqueued> {
    let refused = |error: sqlx_core::Error| -> Error {
        match error.as_database_error().and_then(|refusal| refusal.try_downcast_ref::<PgDatabaseError>()) {
            Some(refusal) => call.refused(refusal.code(), refusal.message(), refusal.detail()),
            None => lost.error(error.to_string()),
        }
    };
    let row = row.map_err(refused)?;
    let id = row.try_get(0).map_err(refused)?;
    let existing = row.try_get(1).map_err(refused)?;
    Ok(Enqueued { existing, ..Enqueued::new(TaskId::from_raw(id)) })
}
