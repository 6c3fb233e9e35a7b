//! `windlass migrate`.

use std::path::Path;

use clap::Args;
use rusqlite::{Connection, OpenFlags};
use serde_json::json;
use windlass_core::Store as _;
use windlass_sqlite::{Location, OpenError, Options, SqliteStore};

use crate::{failure::Exit, session::Session, store};

/// Arguments of `migrate`.
#[derive(Debug, Args)]
pub struct MigrateArgs {
    /// Only say what would be done
    #[arg(long)]
    plan: bool,
}

/// Runs it. Opening a store brings it up to date, after a copy of the file beside it.
pub async fn run(session: &Session, args: &MigrateArgs) -> anyhow::Result<Exit> {
    if args.plan {
        return plan(session).await;
    }
    let store = store::open(&session.settings).await?;
    let info = store.info().await?;
    store.close().await?;
    if session.out.is_json() {
        session.out.json(
            &json!({"store": info.location, "schema_version": info.schema_version, "created": info.created}),
        )?;
    } else {
        let made = if info.created { "made with" } else { "is at" };
        session.out.note(format!("{} {made} schema version {}", info.location, info.schema_version));
    }
    Ok(Exit::Done)
}

async fn plan(session: &Session) -> anyhow::Result<Exit> {
    let location = store::location(&session.settings)?;
    let newest = newest_version().await?;
    let found = match location.path() {
        Some(path) if is_there(path) => Some(read_version(path).map_err(store::failure)?),
        _ => None,
    };
    if session.out.is_json() {
        session.out.json(&json!({"store": location.to_string(), "found": found, "newest": newest}))?;
        return Ok(Exit::Done);
    }
    let line = match found {
        None => format!("{location} would be made with schema version {newest}"),
        Some(found) if found < newest => {
            format!(
                "{location} would go from schema version {found} to {newest}, after a copy of the file beside it"
            )
        }
        Some(found) => format!("{location} is at schema version {found}; nothing to do"),
    };
    session.out.line(line)?;
    Ok(Exit::Done)
}

/// The version that this program writes, as a new store in memory has it.
async fn newest_version() -> anyhow::Result<u32> {
    let store = SqliteStore::open(&Location::Memory, Options::new()).await.map_err(store::failure)?;
    let version = store.info().await?.schema_version;
    store.close().await?;
    Ok(version)
}

/// An empty file counts as none: SQLite would make a store of it.
fn is_there(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|file| file.len() > 0)
}

/// The version of a store, read without opening it as one.
fn read_version(path: &Path) -> Result<u32, OpenError> {
    let read = || -> rusqlite::Result<u32> {
        let file = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        file.query_row("SELECT value FROM meta WHERE name = 'schema_version'", [], |row| row.get(0))
    };
    read().map_err(|error| match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::NotADatabase | rusqlite::ErrorCode::Unknown) => {
            OpenError::NotADatabase(path.to_owned())
        }
        _ => OpenError::Sqlite { path: path.to_owned(), action: "read", reason: error.to_string() },
    })
}
