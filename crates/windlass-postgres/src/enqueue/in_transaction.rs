//! Enqueue inside a transaction of the caller's own: the task exists if that transaction commits, and only
//! then.
//!
//! The function `enqueue_task` of the schema does the work for every caller. This file sends it a checked
//! task through the caller's driver, and translates its refusals.

#[cfg(feature = "sqlx")]
mod sqlx;

use async_trait::async_trait;
use tokio_postgres::types::{ToSql, Type};
use windlass_core::{Enqueued, Error, NewTask, Result, Rules, TaskId};

use crate::{
    connection::error::text_of,
    enqueue::Columns,
    sql::{self, Schema},
};

/// A transaction of the caller's own, on the database that holds the schema of a store.
///
/// It is implemented for the transactions of tokio-postgres and, with the feature `sqlx`, of sqlx. It is also
/// implemented for their connections, for a caller that has sent BEGIN itself.
#[async_trait]
pub trait Within: Send {
    /// Sends the call and reads its answer. [`enqueue_within`] checks the task first.
    #[doc(hidden)]
    async fn call(&mut self, call: &Call<'_>) -> Result<Enqueued>;
}

/// Adds a task inside a transaction of the caller's own, under the same rules as [`Store::enqueue`]. The task
/// can be claimed after the transaction commits; after a rollback nothing is left of it.
///
/// If another open transaction has just taken the same key, the call waits until that transaction ends.
///
/// # Errors
/// Any [`Error`]. As after any statement that failed, the transaction can then only be rolled back (or back
/// to a savepoint of the caller). After [`Error::Unavailable`] the whole transaction may be tried again: a
/// caller in REPEATABLE READ or SERIALIZABLE gets this error if another transaction was faster.
///
/// [`Store::enqueue`]: windlass_core::Store::enqueue
pub async fn enqueue_within<W: Within + ?Sized>(
    within: &mut W,
    schema: &Schema,
    rules: &Rules,
    task: &NewTask,
) -> Result<Enqueued> {
    task.check(rules)?;
    within.call(&Call::new(schema, rules, task)).await
}

/// A call of `enqueue_task`: its text and its parameters.
#[doc(hidden)]
#[derive(Debug)]
pub struct Call<'a> {
    text: String,
    columns: Columns<'a>,
    ignore_conflict: bool,
}

impl<'a> Call<'a> {
    fn new(schema: &Schema, rules: &Rules, task: &'a NewTask) -> Self {
        Self {
            text: schema.render(sql::ENQUEUE_TASK.text()),
            columns: Columns::of(task, rules),
            ignore_conflict: task.key.as_ref().is_some_and(|key| key.ignore_conflict),
        }
    }

    fn params(&self) -> Vec<(&(dyn ToSql + Sync), Type)> {
        let row = &self.columns;
        let values: [&(dyn ToSql + Sync); 17] = [
            &row.kind,
            &row.encoding,
            &row.payload,
            &row.queue,
            &row.job,
            &row.workflow,
            &row.priority,
            &row.due_at,
            &row.delay_ms,
            &row.key,
            &self.ignore_conflict,
            &row.max_attempts,
            &row.timeout_ms,
            &row.retry,
            &row.on_failure,
            &row.job_concurrency,
            &row.trace,
        ];
        values.into_iter().zip(sql::ENQUEUE_TASK.types.iter().cloned()).collect()
    }

    /// What a refusal of the server means.
    fn refused(&self, code: &str, message: &str, detail: Option<&str>) -> Error {
        let existing = detail.and_then(|detail| detail.parse::<TaskId>().ok());
        match (code, self.columns.key, existing) {
            ("23505", Some(key), Some(existing)) => Error::KeyConflict { key: key.to_owned(), existing },
            ("0A000", ..) => Error::Unsupported(message.to_owned()),
            ("25P02", ..) => Error::Conflict(format!("{message}; roll the transaction back")),
            ("53100", ..) => Error::StoreFull(message.to_owned()),
            ("3F000" | "42883" | "42P01", ..) => Error::Unavailable(format!(
                "{message} ({code}); is the schema in this database? see `windlass migrate --plan`"
            )),
            ("42501", ..) => Error::Unavailable(format!("{message} ({code}); grant USAGE on the schema")),
            _ if code.starts_with("22") => Error::Invalid(message.to_owned()),
            _ => Error::Unavailable(format!("{message} ({code})")),
        }
    }
}

/// What the loss of the connection means: a transaction is lost with it; without one the call may have
/// committed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lost {
    Undone,
    Unknown,
}

impl Lost {
    fn error(self, text: String) -> Error {
        match self {
            Self::Undone => Error::Unavailable(text),
            Self::Unknown => Error::Unknown(text),
        }
    }
}

#[async_trait]
impl Within for tokio_postgres::Transaction<'_> {
    async fn call(&mut self, call: &Call<'_>) -> Result<Enqueued> {
        let row = self.query_typed_one(&call.text, &call.params()).await;
        read(call, Lost::Undone, row)
    }
}

#[async_trait]
impl Within for tokio_postgres::Client {
    async fn call(&mut self, call: &Call<'_>) -> Result<Enqueued> {
        let row = self.query_typed_one(&call.text, &call.params()).await;
        read(call, Lost::Unknown, row)
    }
}

fn read(
    call: &Call<'_>,
    lost: Lost,
    row: Result<tokio_postgres::Row, tokio_postgres::Error>,
) -> Result<Enqueued> {
    let unreadable = |error: tokio_postgres::Error| match error.as_db_error() {
        Some(refusal) => call.refused(refusal.code().code(), refusal.message(), refusal.detail()),
        None => lost.error(text_of(&error)),
    };
    let row = row.map_err(unreadable)?;
    let id = row.try_get(0).map_err(unreadable)?;
    let existing = row.try_get(1).map_err(unreadable)?;
    Ok(Enqueued { existing, ..Enqueued::new(TaskId::from_raw(id)) })
}
