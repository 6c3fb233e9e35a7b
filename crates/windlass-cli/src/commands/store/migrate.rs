//! `windlass migrate`.

use std::path::Path;

use clap::Args;
use rusqlite::{Connection, OpenFlags};
use serde_json::json;
use windlass_core::Store as _;
use windlass_sqlite::{Location, OpenError, Options, SqliteStore};

use crate::{
    failure::Exit,
    session::Session,
    store::{self, Access, Place},
};

/// Arguments of `migrate`.
#[derive(Debug, Args)]
pub struct MigrateArgs {
    /// Only print what would be done
    #[arg(long)]
    plan: bool,
}

/// Runs it. Opening a store migrates it; before that, a store in a file is copied to a file beside it.
pub async fn run(session: &Session, args: &MigrateArgs) -> anyhow::Result<Exit> {
    if args.plan {
        return match store::place(&session.settings)? {
            Place::Sqlite(location) => plan_sqlite(session, &location).await,
            Place::Postgres(location) => plan_postgres(session, &location).await,
        };
    }
    let store = store::open(&session.settings, Access::Migrate).await?.store;
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

/// Prints the statements that would be sent, which locks they take, and which workers must stop first.
/// They go to stdout, so that the user can save them in a file.
async fn plan_postgres(session: &Session, location: &windlass_postgres::Location) -> anyhow::Result<Exit> {
    let options = store::postgres::options(&session.settings)?;
    let plan = windlass_postgres::plan(location, &options)
        .await
        .map_err(|error| store::postgres::failure(&error))?;
    let schema = options.schema.as_str();
    if session.out.is_json() {
        let steps: Vec<_> = plan
            .steps
            .iter()
            .map(|step| {
                json!({
                    "version": step.version, "locks": step.locks, "old_workers_must_stop": step.old_workers_must_stop,
                    "sql": step.sql,
                })
            })
            .collect();
        session.out.json(&json!({
            "store": location.to_string(), "schema": schema, "found": plan.from, "newest": plan.to, "steps": steps,
        }))?;
        return Ok(Exit::Done);
    }
    match plan.from {
        _ if plan.steps.is_empty() => {
            session
                .out
                .line(format!("-- {location}, schema {schema}: at version {}; nothing to do", plan.to))?;
        }
        None => session
            .out
            .line(format!("-- {location}: schema {schema} would be made with version {}", plan.to))?,
        Some(from) => {
            session.out.line(format!(
                "-- {location}, schema {schema}: would go from version {from} to {}",
                plan.to
            ))?;
        }
    }
    for step in &plan.steps {
        let stop = if step.old_workers_must_stop {
            "stop workers of older versions first"
        } else {
            "older workers may go on"
        };
        session.out.page(&format!("\n-- version {}: {stop}; locks {}", step.version, step.locks))?;
        session.out.page(&format!("BEGIN;\n{}COMMIT;", step.sql))?;
    }
    Ok(Exit::Done)
}

async fn plan_sqlite(session: &Session, location: &Location) -> anyhow::Result<Exit> {
    let newest = newest_version().await?;
    let found = match location.path() {
        Some(path) if is_there(path) => Some(read_version(path).map_err(store::sqlite::failure)?),
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

/// The schema version that this program writes, read from a new store in memory.
async fn newest_version() -> anyhow::Result<u32> {
    let store = SqliteStore::open(&Location::Memory, Options::new()).await.map_err(store::sqlite::failure)?;
    let version = store.info().await?.schema_version;
    store.close().await?;
    Ok(version)
}

/// Whether there is a store. An empty file counts as none: SQLite would create a store in it.
fn is_there(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|file| file.len() > 0)
}

/// The schema version of a file, read without opening it as a store.
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
