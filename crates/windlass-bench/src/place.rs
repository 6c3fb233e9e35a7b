//! Where a bench keeps its stores: in files of its own, or in schemas of its own on a PostgreSQL server.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use anyhow::Context as _;
use windlass_core::store::SharedStore;
use windlass_postgres::{PostgresStore, Schema};
use windlass_scratch::{Cluster, ClusterOptions};
use windlass_sqlite::SqliteStore;

use crate::rig::HistoryArg;

/// Where stores are made.
#[derive(Debug, Clone, Default)]
pub(crate) enum Place {
    /// In a folder.
    #[default]
    Files,
    /// On a server.
    Server(Arc<Server>),
}

/// The value of `--store`.
#[derive(Debug, Clone)]
pub(crate) enum Wanted {
    /// Files, in a folder of the bench's own.
    Files,
    /// A private server.
    Private,
    /// The server at this address.
    Server(String),
}

impl std::str::FromStr for Wanted {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "sqlite" => Ok(Self::Files),
            "postgres" | "postgresql" => Ok(Self::Private),
            url if windlass_postgres::is_postgres(url) => Ok(Self::Server(url.to_owned())),
            _ => Err("write postgres or postgres://…; without --store the bench makes files in --dir"),
        }
    }
}

/// A PostgreSQL server: a private one, or the named one.
#[derive(Debug)]
pub(crate) struct Server {
    pub(super) url: String,
    /// The private server; it is removed with the bench.
    pub(super) cluster: Option<Cluster>,
}

impl Place {
    /// From `--store`; files if it is not given.
    pub(crate) fn new(wanted: Option<Wanted>) -> anyhow::Result<Self> {
        match wanted {
            None | Some(Wanted::Files) => Ok(Self::Files),
            Some(Wanted::Private) => {
                let options = ClusterOptions::new().max_connections(200).set("max_wal_size", "4GB");
                let cluster = Cluster::start(&options).context("no private PostgreSQL for the bench")?;
                Ok(Self::Server(Arc::new(Server { url: cluster.url(), cluster: Some(cluster) })))
            }
            Some(Wanted::Server(url)) => Ok(Self::Server(Arc::new(Server { url, cluster: None }))),
        }
    }

    pub(super) fn server(&self) -> Option<&Arc<Server>> {
        match self {
            Self::Files => None,
            Self::Server(server) => Some(server),
        }
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Files => "sqlite",
            Self::Server(_) => "postgresql",
        }
    }
}

impl Server {
    /// Runs statements.
    pub(super) async fn execute(&self, text: &str) -> anyhow::Result<()> {
        let client = self.connect().await?;
        client.batch_execute(text).await?;
        Ok(())
    }

    /// A bare connection.
    pub(super) async fn connect(&self) -> anyhow::Result<tokio_postgres::Client> {
        let (client, connection) = tokio_postgres::connect(&self.url, tokio_postgres::NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }

    /// Opens the store in a schema.
    pub(super) async fn open(&self, schema: &str, history: HistoryArg) -> anyhow::Result<SharedStore> {
        self.open_with(schema, history, true).await
    }

    /// Opens the store in a schema, with or without LISTEN.
    pub(super) async fn open_with(
        &self,
        schema: &str,
        history: HistoryArg,
        listens: bool,
    ) -> anyhow::Result<SharedStore> {
        let options = windlass_postgres::Options {
            notify: if listens { windlass_postgres::Notify::On } else { windlass_postgres::Notify::Off },
            schema: Schema::new(schema).map_err(anyhow::Error::msg)?,
            history: match history {
                HistoryArg::Kept => windlass_postgres::History::Kept,
                HistoryArg::Off => windlass_postgres::History::Off,
            },
            migrate: true,
            ..windlass_postgres::Options::default()
        };
        let location = windlass_postgres::Location::parse(&self.url)?;
        Ok(PostgresStore::open(&location, options).await?)
    }
}

/// The place of one store; dropping it removes the store.
pub(crate) enum Room {
    Folder(tempfile::TempDir),
    Schema { server: Arc<Server>, name: String },
}

impl Room {
    pub(crate) fn new(place: &Place, dir: Option<&PathBuf>) -> anyhow::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        match place {
            Place::Files => {
                let parent = dir.cloned().unwrap_or_else(std::env::temp_dir);
                let folder = tempfile::Builder::new()
                    .prefix("windlass-bench-")
                    .tempdir_in(&parent)
                    .with_context(|| format!("no bench folder in {}", parent.display()))?;
                Ok(Self::Folder(folder))
            }
            Place::Server(server) => {
                let number = NUMBER.fetch_add(1, Ordering::Relaxed);
                let name = format!("windlass_bench_{}_{number}", std::process::id());
                Ok(Self::Schema { server: Arc::clone(server), name })
            }
        }
    }

    pub(crate) async fn open(&self, history: HistoryArg) -> anyhow::Result<SharedStore> {
        match self {
            Self::Folder(folder) => {
                let history = match history {
                    HistoryArg::Kept => windlass_sqlite::History::Kept,
                    HistoryArg::Off => windlass_sqlite::History::Off,
                };
                let location = windlass_sqlite::Location::File(folder.path().join("bench.db"));
                Ok(SqliteStore::open(&location, windlass_sqlite::Options { history, ..Default::default() })
                    .await?)
            }
            Self::Schema { server, name } => server.open(name, history).await,
        }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let Self::Schema { server, name } = self else { return };
        // A private server is removed as a whole.
        if server.cluster.is_some() {
            return;
        }
        let (server, text) = (Arc::clone(server), format!("DROP SCHEMA IF EXISTS {name} CASCADE"));
        // A thread with its own runtime, because this may be dropped inside a runtime.
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(server.execute(&text))
        });
        if !matches!(dropped.join(), Ok(Ok(()))) {
            eprintln!("warning: schema {name} of the bench could not be dropped");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn store_is_a_word_or_an_address_of_a_server() {
        let wanted = |text: &str| text.parse::<Wanted>();
        assert!(matches!(wanted("sqlite"), Ok(Wanted::Files)));
        assert!(matches!(wanted("postgres"), Ok(Wanted::Private)));
        assert!(matches!(wanted("postgres://a@b/c"), Ok(Wanted::Server(url)) if url == "postgres://a@b/c"));
        assert!(wanted("sqlite:bench.db").is_err_and(|error| error.contains("--dir")));
    }
}
