//! A store of the demo's own. It is removed when the demo ends.

use anyhow::Context as _;
use windlass_core::store::SharedStore;
use windlass_postgres::{Location, Options, PostgresStore, Schema};
use windlass_scratch::{Cluster, ClusterOptions};
use windlass_sqlite::SqliteStore;

/// Holds the store. Dropping it removes the store, so an open store must be closed before.
pub(super) enum Room {
    /// A file in a folder.
    Folder(#[expect(dead_code, reason = "held until it is dropped")] tempfile::TempDir),
    /// A private server.
    Private(#[expect(dead_code, reason = "held until it is dropped")] Cluster),
    /// A schema on a server that keeps running.
    Schema(Box<(Location, Options)>),
}

/// Makes a store: a file by default, a private server for `postgres`, a schema on the named server for an
/// address.
pub(super) async fn open(wanted: Option<&str>) -> anyhow::Result<(SharedStore, Room)> {
    match wanted {
        None | Some("sqlite") => {
            let folder = tempfile::Builder::new().prefix("windlass-demo-").tempdir()?;
            let location = windlass_sqlite::Location::File(folder.path().join("demo.db"));
            Ok((
                SqliteStore::open(&location, windlass_sqlite::Options::default()).await?,
                Room::Folder(folder),
            ))
        }
        Some("postgres" | "postgresql") => {
            let cluster =
                Cluster::start(&ClusterOptions::new()).context("no private PostgreSQL for the demo")?;
            let location = Location::parse(&cluster.url())?;
            Ok((PostgresStore::open(&location, options()?).await?, Room::Private(cluster)))
        }
        Some(url) => {
            let (location, options) = (Location::parse(url)?, options()?);
            let store = PostgresStore::open(&location, options.clone()).await?;
            Ok((store, Room::Schema(Box::new((location, options)))))
        }
    }
}

/// Options for a schema with a name that no other demo on the server has.
fn options() -> anyhow::Result<Options> {
    let name = format!("windlass_demo_{}", std::process::id());
    let schema = Schema::new(&name).map_err(anyhow::Error::msg)?;
    Ok(Options { schema, migrate: true, ..Options::default() })
}

impl Drop for Room {
    fn drop(&mut self) {
        let Self::Schema(place) = self else { return };
        let place = place.clone();
        let schema = place.1.schema.clone();
        // This thread's runtime cannot be blocked on here, so use a thread with its own runtime.
        let removed = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            Ok::<_, anyhow::Error>(runtime.block_on(windlass_postgres::remove_schema(&place.0, &place.1))?)
        });
        if !matches!(removed.join(), Ok(Ok(()))) {
            tracing::warn!(schema = schema.as_str(), "the schema of the demo could not be removed");
        }
    }
}
