//! What the tests of this crate need: statements as they are sent, and schemas that other migrations make.

use std::sync::Arc;

use tokio_postgres::types::Type;
use windlass_core::{Result, Timestamp};

pub use crate::upkeep::migrate::Migration;
use crate::{
    connection::{
        conn,
        error::OpenError,
        open,
        options::{Location, Options},
    },
    sql::{ALL, DELETE_HISTORY, Rendered, Schema},
    store::PostgresStore,
    upkeep::{
        leader::{self, Term},
        migrate::{self, MIGRATIONS, Migrated, Plan},
    },
};

/// Removes the kept tasks, as a leader in this term would; answers how many rows it removed.
pub async fn remove_history(store: &PostgresStore, term: i64) -> Result<u64> {
    let term = Term { number: term, now: Timestamp::from_ms(0) };
    let (moved, _) = leader::remove(store.shared(), term, &DELETE_HISTORY, &[&i64::MAX, &i64::MAX]).await?;
    Ok(moved)
}

/// A statement with its parts inserted.
pub fn whole(text: &str) -> String {
    crate::sql::whole(text)
}

/// A statement as it is sent.
#[derive(Debug, Clone)]
pub struct Statement {
    /// The name of its file.
    pub name: &'static str,
    /// Its text, for one schema.
    pub text: Arc<str>,
    /// The types of its parameters.
    pub types: &'static [Type],
}

/// Every statement, for one schema.
pub fn statements(schema: &Schema) -> Vec<Statement> {
    let rendered = Rendered::new(schema, &[]);
    ALL.iter().map(|sql| Statement { name: sql.name, text: rendered.text(sql), types: sql.types }).collect()
}

/// The settings of every transaction.
pub fn settings() -> String {
    conn::settings(conn::Commits::Safe)
}

/// The steps of the schema.
pub fn steps() -> &'static [Migration] {
    MIGRATIONS
}

/// `plan` with other steps.
pub async fn plan(
    location: &Location,
    options: &Options,
    steps: &'static [Migration],
) -> Result<Plan, OpenError> {
    migrate::plan_with(location, options, steps).await
}

/// `migrate` with other steps.
pub async fn migrate(
    location: &Location,
    options: &Options,
    steps: &'static [Migration],
) -> Result<Migrated, OpenError> {
    migrate::migrate_with(location, options, steps).await
}

/// [`PostgresStore::open`] with other steps.
pub async fn open(
    location: &Location,
    options: Options,
    steps: &'static [Migration],
) -> Result<Arc<PostgresStore>, OpenError> {
    open::open(location, options, steps).await
}
