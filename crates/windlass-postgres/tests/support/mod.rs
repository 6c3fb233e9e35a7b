//! A schema of its own for each test, on one server, with a clock that the test moves.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::{
    str::FromStr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use async_trait::async_trait;
use tokio_postgres::{Client, NoTls};
use windlass_conformance::{Harness, harness::START};
use windlass_core::{LeaseRef, Rules, Store, Timestamp};
use windlass_postgres::{Location, Options, PostgresStore, Schema};

/// The server that all tests share.
pub fn url() -> String {
    windlass_scratch::shared_url().unwrap()
}

/// A connection of the test's own.
pub async fn client(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Runs statements on a server, over a connection that is closed afterwards.
pub async fn execute(url: &str, text: &str) {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    let drive = tokio::spawn(connection);
    client.batch_execute(text).await.unwrap();
    drop(client);
    drive.await.unwrap().unwrap();
}

/// The same; `false` if the server undid it to resolve a conflict with another session.
async fn try_execute(url: &str, text: &str) -> bool {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    let drive = tokio::spawn(connection);
    let done = client.batch_execute(text).await;
    let is_deadlock = done
        .as_ref()
        .is_err_and(|error| error.code() == Some(&tokio_postgres::error::SqlState::T_R_DEADLOCK_DETECTED));
    assert!(done.is_ok() || is_deadlock, "{done:?}");
    drop(client);
    drive.await.unwrap().unwrap();
    !is_deadlock
}

/// Drops schemas from any thread, also where a runtime is about to end.
pub fn drop_schemas(url: String, schemas: Vec<String>) {
    let dropped = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        for schema in schemas {
            // A store that is being closed may still use the schema, and the server may end one of the two as
            // a deadlock.
            let drop_it = format!("DROP SCHEMA IF EXISTS \"{schema}\" CASCADE");
            while !runtime.block_on(try_execute(&url, &drop_it)) {}
        }
    });
    let _ = dropped.join();
}

/// A name that no other test has.
pub fn schema_name() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let nanos = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
    format!("t_{}_{}_{}", std::process::id(), nanos % 1_000_000_000, NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// Opens stores in schemas of their own. Their clock stops until the test moves it.
pub struct PostgresHarness {
    now_ms: Arc<AtomicI64>,
    /// The instant that the store's process takes for [`START`].
    began: Instant,
    opened: Mutex<Vec<(String, Rules)>>,
    /// The address at which tests check what the store does.
    direct: String,
    /// The address at which the store is opened: the same, or a pooler.
    url: String,
    schema: Option<String>,
    change: Box<dyn Fn(Options) -> Options + Send + Sync>,
}

impl PostgresHarness {
    pub fn new() -> Self {
        Self::at(&url())
    }

    /// On a server of its own.
    pub fn at(url: &str) -> Self {
        Self {
            now_ms: Arc::new(AtomicI64::new(START.as_ms())),
            began: Instant::now(),
            opened: Mutex::default(),
            direct: url.to_owned(),
            url: url.to_owned(),
            schema: None,
            change: Box::new(|options| options),
        }
    }

    /// Stores are opened over another address of the same server.
    pub fn through(mut self, url: &str) -> Self {
        url.clone_into(&mut self.url);
        self
    }

    /// Stores are opened with other options.
    pub fn with(mut self, change: impl Fn(Options) -> Options + Send + Sync + 'static) -> Self {
        self.change = Box::new(change);
        self
    }

    /// The schema of the test's one store.
    pub fn in_schema(mut self, name: &str) -> Self {
        self.schema = Some(name.to_owned());
        self
    }

    /// The schema that was opened last.
    pub fn schema(&self) -> String {
        self.last().0
    }

    /// Another connection to the server, for the test itself.
    pub async fn client(&self) -> Client {
        client(&self.direct).await
    }

    /// Runs statements; `{s}` is replaced by the schema.
    pub async fn execute(&self, text: &str) {
        execute(&self.direct, &text.replace("{s}", &format!("\"{}\"", self.schema()))).await;
    }

    /// The number that a statement answers with; `{s}` is replaced by the schema.
    pub async fn number(&self, text: &str) -> i64 {
        let client = self.client().await;
        let text = text.replace("{s}", &format!("\"{}\"", self.schema()));
        client.query_one(&text, &[]).await.unwrap().get(0)
    }

    /// The name of its stores' sessions.
    fn program(&self) -> String {
        let url = tokio_postgres::Config::from_str(&self.location()).unwrap();
        url.get_application_name().unwrap_or_default().to_owned()
    }

    /// The address at which stores are opened, with a name of their own among the sessions of the server.
    fn location(&self) -> String {
        if self.url.contains("application_name") {
            return self.url.clone();
        }
        let separator = if self.url.contains('?') { '&' } else { '?' };
        format!("{}{separator}application_name=h{:x}", self.url, std::ptr::from_ref(self).addr())
    }

    /// The options of the store that was opened last.
    pub fn options(&self) -> Options {
        let (schema, rules) = self.last();
        self.options_of(&schema, rules)
    }

    /// Another handle on the store that was opened last, with options changed once more.
    pub async fn open_again(&self, change: impl FnOnce(&mut Options)) -> Arc<PostgresStore> {
        let mut options = self.options();
        change(&mut options);
        PostgresStore::open(&Location::parse(&self.location()).unwrap(), options).await.unwrap()
    }

    fn last(&self) -> (String, Rules) {
        self.opened.lock().unwrap().last().cloned().unwrap()
    }

    fn options_of(&self, schema: &str, rules: Rules) -> Options {
        let (now_ms, began) = (Arc::clone(&self.now_ms), self.began);
        let passed = move || now_ms.load(Ordering::Relaxed) - START.as_ms();
        (self.change)(Options {
            rules,
            schema: Schema::new(schema).unwrap(),
            clock: Arc::new(move || began + Duration::from_millis(u64::try_from(passed()).unwrap_or(0))),
            migrate: true,
            ..Options::default()
        })
    }

    async fn open_schema(&self, schema: &str, rules: Rules) -> Arc<dyn Store> {
        let options = self.options_of(schema, rules);
        PostgresStore::open(&Location::parse(&self.location()).unwrap(), options).await.unwrap()
    }
}

impl Drop for PostgresHarness {
    fn drop(&mut self) {
        let schemas = std::mem::take(&mut *self.opened.lock().unwrap());
        // It needs a runtime of its own, because the end of the test's runtime may be what drops this.
        drop_schemas(self.direct.clone(), schemas.into_iter().map(|(schema, _)| schema).collect());
    }
}

#[async_trait]
impl Harness for PostgresHarness {
    async fn open(&self, rules: Rules) -> Arc<dyn Store> {
        let schema = self.schema.clone().unwrap_or_else(schema_name);
        self.opened.lock().unwrap().push((schema.clone(), rules.clone()));
        let store = self.open_schema(&schema, rules).await;
        let now = self.now_ms.load(Ordering::Relaxed);
        self.execute(&format!(
            "CREATE TABLE {{s}}.test_clock AS SELECT {now}::bigint AS ms;
             CREATE OR REPLACE FUNCTION {{s}}.now_ms() RETURNS bigint LANGUAGE sql VOLATILE
             AS 'SELECT ms FROM {{s}}.test_clock';
             CREATE OR REPLACE FUNCTION {{s}}.server_started_ms() RETURNS bigint LANGUAGE sql VOLATILE AS 'SELECT 0::bigint';"
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

    async fn forget(&self, store: Arc<dyn Store>, claimed: LeaseRef) -> Option<Arc<dyn Store>> {
        // As after a crash of the server: a claim and all unlogged rows are lost.
        let (id, lease) = (claimed.id.raw(), claimed.lease);
        let forgotten = self
            .number(&format!(
                "WITH forgotten AS (
                   UPDATE {{s}}.task SET state = 1, lease = lease - 1, attempt = attempt - 1, worker = NULL, claim_no = NULL,
                     claimed_at = NULL
                   WHERE id = {id} AND lease = {lease} AND state = 2
                   RETURNING id
                 )
                 SELECT count(*) FROM forgotten"
            ))
            .await;
        assert_eq!(forgotten, 1);
        self.execute("TRUNCATE {s}.lease_epoch, {s}.doorbell").await;
        Some(store)
    }

    /// After a settlement admission runs in the background, in the process of the worker. It has ended when
    /// `gate_todo` has no rows left but those that the test has locked, and no store runs it.
    async fn settle_down(&self, store: &dyn Store) {
        const LEFT: &str = "
            SELECT (SELECT count(*) FROM (
                SELECT 1 FROM {s}.gate_todo WHERE at <= {s}.now_ms() FOR UPDATE SKIP LOCKED) AS t)
              + (SELECT count(*) FROM (SELECT 1 FROM {s}.freed FOR UPDATE SKIP LOCKED) AS f)
              + (SELECT count(*) FROM pg_stat_activity WHERE application_name = '{program} gates' AND state <> 'idle')";
        let left = LEFT.replace("{program}", &self.program());
        while store.admit(1_000).await.is_ok() && self.number(&left).await > 0 {}
    }

    async fn now(&self) -> Timestamp {
        Timestamp::from_ms(self.now_ms.load(Ordering::Relaxed))
    }

    async fn advance(&self, by: Duration) {
        let by = i64::try_from(by.as_millis()).unwrap();
        self.now_ms.fetch_add(by, Ordering::Relaxed);
        let schemas: Vec<_> = self.opened.lock().unwrap().iter().map(|(schema, _)| schema.clone()).collect();
        for schema in schemas {
            let text = format!("UPDATE \"{schema}\".test_clock SET ms = ms + {by}");
            execute(&self.direct, &text).await;
        }
    }

    /// There is only one clock, that of the server.
    async fn jump_wall(&self, _to: Timestamp) -> bool {
        false
    }
}
