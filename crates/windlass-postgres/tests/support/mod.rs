//! A schema of its own for each test, on one server, with a clock that the test moves.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use tokio_postgres::NoTls;
use windlass_conformance::{Harness, harness::START};
use windlass_core::{Rules, Store, Timestamp};
use windlass_postgres::{Location, Options, PostgresStore, Schema};

/// The server that all tests share.
pub fn url() -> String {
    windlass_scratch::shared_url().unwrap()
}

/// Runs statements on the server, as its own connection.
pub async fn execute(text: &str) {
    let (client, connection) = tokio_postgres::connect(&url(), NoTls).await.unwrap();
    let drive = tokio::spawn(connection);
    client.batch_execute(text).await.unwrap();
    drop(client);
    drive.await.unwrap().unwrap();
}

/// A name that no other test has.
pub fn schema_name() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let nanos = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
    format!("t_{}_{}_{}", std::process::id(), nanos % 1_000_000_000, NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// Opens stores in schemas of their own. Their clock stands still until it is moved.
pub struct PostgresHarness {
    now_ms: AtomicI64,
    opened: Mutex<Vec<(String, Rules)>>,
    change: fn(Options) -> Options,
}

impl PostgresHarness {
    pub fn new() -> Self {
        Self::with(|options| options)
    }

    pub fn with(change: fn(Options) -> Options) -> Self {
        Self { now_ms: AtomicI64::new(START.as_ms()), opened: Mutex::default(), change }
    }

    fn last(&self) -> (String, Rules) {
        self.opened.lock().unwrap().last().cloned().unwrap()
    }

    async fn open_schema(&self, schema: &str, rules: Rules) -> Arc<dyn Store> {
        let options = (self.change)(Options {
            rules,
            schema: Schema::new(schema).unwrap(),
            trusts_hearsay: false,
            migrate: true,
            ..Options::default()
        });
        PostgresStore::open(&Location::parse(&url()).unwrap(), options).await.unwrap()
    }
}

impl Drop for PostgresHarness {
    fn drop(&mut self) {
        let schemas = std::mem::take(&mut *self.opened.lock().unwrap());
        // A runtime of its own, because the test's may be what drops this.
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            for (schema, _) in schemas {
                runtime.block_on(execute(&format!("DROP SCHEMA IF EXISTS {schema} CASCADE")));
            }
        });
        let _ = dropped.join();
    }
}

#[async_trait]
impl Harness for PostgresHarness {
    async fn open(&self, rules: Rules) -> Arc<dyn Store> {
        let schema = schema_name();
        self.opened.lock().unwrap().push((schema.clone(), rules.clone()));
        let store = self.open_schema(&schema, rules).await;
        execute(&format!(
            "CREATE TABLE {schema}.test_clock AS SELECT {}::bigint AS ms;
             CREATE OR REPLACE FUNCTION {schema}.now_ms() RETURNS bigint LANGUAGE sql VOLATILE
             AS 'SELECT ms FROM {schema}.test_clock';
             CREATE OR REPLACE FUNCTION {schema}.server_started_ms() RETURNS bigint LANGUAGE sql VOLATILE AS 'SELECT 0::bigint';",
            self.now_ms.load(Ordering::Relaxed)
        ))
        .await;
        store
    }

    async fn connect(&self, _store: &Arc<dyn Store>) -> Arc<dyn Store> {
        let (schema, rules) = self.last();
        self.open_schema(&schema, rules).await
    }

    async fn reopen(&self, store: Arc<dyn Store>) -> Option<Arc<dyn Store>> {
        store.close().await.unwrap();
        drop(store);
        let (schema, rules) = self.last();
        Some(self.open_schema(&schema, rules).await)
    }

    async fn now(&self) -> Timestamp {
        Timestamp::from_ms(self.now_ms.load(Ordering::Relaxed))
    }

    async fn advance(&self, by: Duration) {
        let by = i64::try_from(by.as_millis()).unwrap();
        self.now_ms.fetch_add(by, Ordering::Relaxed);
        let schemas: Vec<_> = self.opened.lock().unwrap().iter().map(|(schema, _)| schema.clone()).collect();
        for schema in schemas {
            execute(&format!("UPDATE {schema}.test_clock SET ms = ms + {by}")).await;
        }
    }

    /// There is one clock only, that of the server.
    async fn jump_wall(&self, _to: Timestamp) -> bool {
        false
    }
}
