//! Each test has its own schema, on the server that all tests share.

use std::sync::Arc;

use tokio_postgres::NoTls;
use windlass::{
    Task,
    postgres::{Location, Options, PostgresStore, Schema},
    store::Store,
};

#[derive(serde::Serialize, serde::Deserialize, Task, Debug, PartialEq)]
#[task(kind = "greet", queue = "mail", max_attempts = 5)]
pub struct Greet(pub String);

pub fn greet(name: &str) -> Greet {
    Greet(name.to_owned())
}

/// A store in its own schema, dropped with the value.
pub struct Place {
    pub url: String,
    pub schema: String,
}

impl Place {
    pub fn new() -> Self {
        let nanos = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
        let schema = format!("w_{}_{}", std::process::id(), nanos % 1_000_000_000_000);
        Self { url: windlass_scratch::shared_url().unwrap(), schema }
    }

    /// A handle on the store, as in another process.
    pub async fn store(&self) -> Arc<PostgresStore> {
        let schema = Schema::new(&self.schema).unwrap();
        let options = Options { schema, migrate: true, ..Options::default() };
        PostgresStore::open(&Location::parse(&self.url).unwrap(), options).await.unwrap()
    }

    /// A connection of the caller.
    pub async fn caller(&self) -> tokio_postgres::Client {
        let (client, connection) = tokio_postgres::connect(&self.url, NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }

    /// Runs statements through psql; `windlass.` stands for the schema.
    pub async fn psql(&self, sql: &str) -> String {
        let (url, sql) = (self.url.clone(), sql.replace("windlass.", &format!("{}.", self.schema)));
        tokio::task::spawn_blocking(move || windlass_scratch::psql(&url, &sql)).await.unwrap().unwrap()
    }

    /// Waits until an idle worker has asked for a notification.
    pub async fn until_armed(&self) {
        let db = self.caller().await;
        let armed = format!(
            "SELECT EXISTS (SELECT 1 FROM {0}.doorbell WHERE armed_until > {0}.now_ms())",
            self.schema
        );
        while !db.query_one(&armed, &[]).await.unwrap().get::<_, bool>(0) {}
    }

    /// Waits until a store listens for notifications.
    pub async fn until_listening(&self, store: &dyn Store) {
        while !store.hears_of_new_tasks() {
            tokio::task::yield_now().await;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = windlass_scratch::psql(&self.url, &format!("DROP SCHEMA IF EXISTS {} CASCADE", self.schema));
    }
}
