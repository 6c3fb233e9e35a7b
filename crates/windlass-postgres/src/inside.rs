//! What the tests of this crate look at: statements as they are sent, and schemas that are made by other steps.

use std::sync::Arc;

use tokio_postgres::types::Type;

pub use crate::migrate::Migration;
use crate::{
    conn,
    error::OpenError,
    migrate::{self, MIGRATIONS, Migrated, Plan},
    open,
    options::{Location, Options},
    sql::{ALL, Rendered, Schema},
    store::PostgresStore,
};

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
    let rendered = Rendered::new(schema);
    ALL.iter().map(|sql| Statement { name: sql.name, text: rendered.text(sql), types: sql.types }).collect()
}

/// What a connection of ours says before anything else.
pub fn planning() -> String {
    conn::planning()
}

/// The steps of the schema.
pub fn steps() -> &'static [Migration] {
    MIGRATIONS
}

/// [`crate::plan`] with other steps.
pub async fn plan(
    location: &Location,
    options: &Options,
    steps: &'static [Migration],
) -> Result<Plan, OpenError> {
    migrate::plan_with(location, options, steps).await
}

/// [`crate::migrate`] with other steps.
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
