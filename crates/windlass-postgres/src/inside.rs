//! What the tests of this crate need: statements as they are sent, and schemas that other migrations make.

use std::sync::Arc;

use tokio_postgres::types::Type;
use windlass_core::{Result, Timestamp};

use crate::{
    connection::conn,
    sql::{ALL, DELETE_HISTORY, Rendered, Schema},
    store::PostgresStore,
    upkeep::{
        leader::{self, Term},
        migrate::MIGRATIONS,
    },
};
/// Opening, planning and migrating with other steps than those of this program.
pub use crate::{
    connection::open::open,
    sql::whole,
    upkeep::migrate::{Migration, migrate_with as migrate, plan_with as plan},
};

/// Removes the kept tasks, as a leader in this term would; answers how many rows it removed.
pub async fn remove_history(store: &PostgresStore, term: i64) -> Result<u64> {
    let term = Term { number: term, now: Timestamp::from_ms(0) };
    let (moved, _) = leader::remove(store.shared(), term, &DELETE_HISTORY, &[&i64::MAX, &i64::MAX]).await?;
    Ok(moved)
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
