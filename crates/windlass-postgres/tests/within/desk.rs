//! Support for these tests: a caller with a database connection of its own beside the store.

use tokio_postgres::{Client, NoTls, Transaction};
use windlass_conformance::cases::rig::Rig;
use windlass_core::{Enqueued, NewTask, Result, Rules};
use windlass_postgres::{Schema, enqueue_within};

use crate::support::url;

/// A connection of the caller's own.
pub async fn caller() -> Client {
    let (client, connection) = tokio_postgres::connect(&url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// The schema of a store under test.
pub fn schema(rig: &Rig<'_>) -> String {
    rig.store.schema().unwrap().to_owned()
}

/// Enqueues inside the caller's transaction.
pub async fn add(rig: &Rig<'_>, tx: &mut Transaction<'_>, task: &NewTask) -> Result<Enqueued> {
    enqueue_within(tx, &Schema::new(&schema(rig)).unwrap(), &Rules::default(), task).await
}

/// The number that a statement answers with; `{s}` is replaced by the schema.
pub async fn number(rig: &Rig<'_>, text: &str) -> i64 {
    let text = text.replace("{s}", &schema(rig));
    caller().await.query_one(&text, &[]).await.unwrap().get(0)
}

/// How many rows exist of the tables that an enqueue writes.
pub async fn rows(rig: &Rig<'_>) -> i64 {
    let text = "SELECT (SELECT count(*) FROM {s}.task) + (SELECT count(*) FROM {s}.key)
        + (SELECT count(*) FROM {s}.lane) + (SELECT count(*) FROM {s}.arrival)";
    number(rig, text).await
}
