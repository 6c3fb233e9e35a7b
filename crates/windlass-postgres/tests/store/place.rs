//! A schema that a test fills by SQL: no store has opened it yet, and its clock is the server's.

use std::sync::Arc;

use tokio_postgres::Client;
use windlass_core::{NewTask, Payload, Store};
use windlass_postgres::{Location, OpenError, Options, PostgresStore, Schema};

use crate::support;

/// A schema on the shared server; dropped with the value.
pub struct Place {
    pub url: String,
    pub schema: String,
}

impl Place {
    pub fn new() -> Self {
        Self::at(&support::url())
    }

    pub fn at(url: &str) -> Self {
        Self { url: url.to_owned(), schema: support::schema_name() }
    }

    pub fn location(&self) -> Location {
        Location::parse(&self.url).unwrap()
    }

    pub fn options(&self) -> Options {
        Options { schema: Schema::new(&self.schema).unwrap(), ..Options::default() }
    }

    /// Opens the existing schema.
    pub async fn open(&self) -> Result<Arc<PostgresStore>, OpenError> {
        PostgresStore::open(&self.location(), self.options()).await
    }

    /// Opens the schema, and makes it if it does not exist.
    pub async fn make(&self) -> Arc<PostgresStore> {
        let options = Options { migrate: true, ..self.options() };
        PostgresStore::open(&self.location(), options).await.unwrap()
    }

    pub async fn client(&self) -> Client {
        support::client(&self.url).await
    }

    /// Runs statements; `{s}` is replaced by the schema.
    pub async fn execute(&self, text: &str) {
        support::execute(&self.url, &self.of(text)).await;
    }

    /// The number that a statement answers with; `{s}` is replaced by the schema.
    pub async fn number(&self, text: &str) -> i64 {
        self.client().await.query_one(&self.of(text), &[]).await.unwrap().get(0)
    }

    pub fn of(&self, text: &str) -> String {
        text.replace("{s}", &format!("\"{}\"", self.schema))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        support::drop_schemas(self.url.clone(), vec![self.schema.clone()]);
    }
}

/// Tasks of a kind.
pub fn tasks(kind: &str, n: usize) -> Vec<NewTask> {
    vec![NewTask::new(kind, Payload::json(&1).unwrap()).unwrap(); n]
}

/// How many tasks the store lists.
pub async fn count(store: &dyn Store) -> usize {
    store.tasks(&windlass_core::store::Filter::default(), None, 1_000).await.unwrap().tasks.len()
}
