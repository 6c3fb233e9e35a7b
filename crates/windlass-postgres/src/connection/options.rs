//! How a store is opened: which server, which schema, and with which settings.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio_postgres::config::TargetSessionAttrs;
use windlass_core::Rules;

use crate::{
    connection::{error::text_of, hosts::Hosts, tls::Tls},
    sql::Schema,
};

/// Tells the time by which observations of this process age.
#[doc(hidden)]
pub type Clock = Arc<dyn Fn() -> Instant + Send + Sync>;

/// How workers are told that tasks may be ready.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Notify {
    /// By LISTEN on the address of the store.
    #[default]
    On,
    /// By LISTEN on another address: a direct one where the store itself is behind a pooler.
    At(String),
    /// Not at all: by polling alone.
    Off,
}

/// Whether done and cancelled tasks are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum History {
    /// Until retention removes them.
    #[default]
    Kept,
    /// Only tasks that a caller waits for or that left an output, for ten minutes.
    Off,
}

/// Connections for everything but claims, settlements, renewals, duties and notifications.
pub const POOL_SIZE: usize = 3;
/// How long connecting may take.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a statement may take before its connection is closed.
pub const STATEMENT_TIMEOUT: Duration = Duration::from_secs(30);

/// How a store is opened.
#[derive(Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of its own")]
pub struct Options {
    /// Limits and budgets.
    pub rules: Rules,
    /// The schema that holds the tables.
    pub schema: Schema,
    /// Whether a claim waits for the disk before its tasks start, as other writes do. Without it a crash of
    /// the server can undo a claim while its worker goes on with the task, until that worker is told.
    pub durable_claims: bool,
    /// Whether ended tasks are kept.
    pub history: History,
    /// How workers are told that tasks may be ready.
    pub notify: Notify,
    /// Whether the address is that of a pooler such as PgBouncer in transaction mode. Then no statement is
    /// prepared by name.
    pub pooled: bool,
    /// Whether the schema is made or brought forward when the store is opened.
    pub migrate: bool,
    /// Connections for enqueue, look-ups and operators.
    pub pool_size: usize,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How long a statement may take before its connection is closed.
    pub statement_timeout: Duration,
    /// Whether the leader vacuums the tables that every task writes to, besides autovacuum. The user of the
    /// connection must own the tables.
    pub vacuum: bool,
    /// The time by which this process knows the age of an observation. Tests that move the time of the server
    /// move this too.
    #[doc(hidden)]
    pub clock: Clock,
    /// Statements by name with other texts, written for the schema `windlass`: with it, tests show that a
    /// wrong statement is noticed.
    #[doc(hidden)]
    pub replaced: Vec<(String, String)>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            rules: Rules::default(),
            schema: Schema::default(),
            durable_claims: false,
            history: History::Kept,
            notify: Notify::On,
            pooled: false,
            migrate: false,
            pool_size: POOL_SIZE,
            connect_timeout: CONNECT_TIMEOUT,
            statement_timeout: STATEMENT_TIMEOUT,
            vacuum: true,
            clock: Arc::new(Instant::now),
            replaced: Vec::new(),
        }
    }
}

/// The address of a server, or of a primary and its standbys: a `postgres://` URL.
#[derive(Clone)]
pub struct Location {
    /// One for each server, of which one can be written to.
    pub(crate) configs: Vec<tokio_postgres::Config>,
    pub(crate) tls: Tls,
    shown: String,
}

/// The text is not the address of a PostgreSQL server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseLocationError(String);

impl Location {
    /// Reads a `postgres://` or `postgresql://` URL. On top of what the driver knows it understands
    /// `sslmode=verify-ca`, `sslmode=verify-full` and `sslrootcert`, as libpq does. Of several hosts
    /// (`postgres://db1,db2:5433/app`) the one that accepts writes is used.
    ///
    /// # Errors
    /// [`ParseLocationError`], one line without the password.
    pub fn parse(url: &str) -> Result<Self, ParseLocationError> {
        let shown = redacted(url);
        if !is_postgres(url) {
            return Err(ParseLocationError(format!(
                "{shown:?} is not a PostgreSQL address: expected postgres://…"
            )));
        }
        let wrong = |error: String| ParseLocationError(format!("{shown}: {error}"));
        let (url, tls) = Tls::take_from(url).map_err(wrong)?;
        let hosts = Hosts::of(&url).map_err(wrong)?;
        let configs = hosts.urls.iter().map(|url| config(url, hosts.must_write)).collect::<Result<_, _>>();
        Ok(Self { configs: configs.map_err(|error| wrong(text_of(&error)))?, tls, shown })
    }
}

/// What the driver connects to one server with.
fn config(url: &str, must_write: bool) -> Result<tokio_postgres::Config, tokio_postgres::Error> {
    let mut config: tokio_postgres::Config = url.parse()?;
    if must_write || config.get_hosts().len() > 1 {
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    }
    if config.get_application_name().is_none() {
        config.application_name("windlass");
    }
    // A peer that has vanished without closing the connection is noticed within half a minute, also on a
    // connection that sends nothing.
    config
        .keepalives(true)
        .keepalives_idle(Duration::from_secs(15))
        .keepalives_interval(Duration::from_secs(5))
        .keepalives_retries(3)
        .tcp_user_timeout(Duration::from_secs(30));
    Ok(config)
}

/// Whether an address is one of a PostgreSQL server.
pub fn is_postgres(url: &str) -> bool {
    url.starts_with("postgres://") || url.starts_with("postgresql://")
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Location({})", self.shown)
    }
}

/// An address without what may be secret: no password, no parameters.
fn redacted(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (rest, beyond) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
    let rest = match rest.rsplit_once('@') {
        // A password with such a sign in it, or an address in a parameter: only the part before both is safe
        // to show.
        None if beyond.contains('@') => format!("{}:***", rest.split([':', '/']).next().unwrap_or_default()),
        Some((user, host)) => match user.split_once(':') {
            Some((user, _)) => format!("{user}:***@{host}"),
            None => format!("{user}@{host}"),
        },
        None => rest.to_owned(),
    };
    format!("{scheme}://{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_secrets() {
        let location = Location::parse("postgres://me:secret@db.internal:5433/app?sslmode=disable").unwrap();
        assert_eq!(location.to_string(), "postgres://me:***@db.internal:5433/app");
        assert!(!format!("{location:?}").contains("secret"));
        let error = Location::parse("postgres://me:secret@db/app?what=1").unwrap_err().to_string();
        assert!(error.contains("what") && !error.contains("secret"), "{error}");
        assert!(Location::parse("mysql://me:secret@db/app").is_err());
        for url in ["postgres://me:secret?@db/app", "postgres://me:secret#@db/app", "me:secret@db"] {
            assert!(!redacted(url).contains("secret"), "{}", redacted(url));
        }
    }
}
