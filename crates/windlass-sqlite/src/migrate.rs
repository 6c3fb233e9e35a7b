//! The schema and its versions (SCHEMA-SAFE).
//!
//! A file records its version and the oldest version whose programs may still write it. An additive migration
//! leaves the latter alone. Nothing is ever downgraded.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension};

use crate::error::OpenError;

/// Marks the file as ours: "WNDL".
const APPLICATION_ID: i64 = 0x574e_444c;

/// One step from the version before.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Migration {
    pub version: u32,
    /// Programs that know only versions below this one must not write afterwards.
    pub oldest_writer: u32,
    pub sql: &'static str,
}

/// Every migration, oldest first.
pub(crate) const MIGRATIONS: &[Migration] =
    &[Migration { version: 1, oldest_writer: 1, sql: include_str!("../sql/migrations/0001_first.sql") }];

/// What a file says of its schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Schema {
    pub version: u32,
    pub oldest_writer: u32,
}

/// What was done to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Migrated {
    pub version: u32,
    /// Whether the file was empty before.
    pub created: bool,
    /// The copy that was made before an existing store was changed.
    pub copy: Option<PathBuf>,
}

/// Brings a file to the newest version of the list; an existing store is copied first.
pub(crate) fn migrate(
    conn: &Connection,
    path: Option<&Path>,
    migrations: &[Migration],
) -> Result<Migrated, OpenError> {
    let shown = path.unwrap_or(Path::new(":memory:"));
    let sqlite = |error: rusqlite::Error| OpenError::sqlite(shown, "read the schema of", &error);
    let found = read(conn, shown)?;
    let known = migrations.last().map_or(0, |migration| migration.version);
    if let Some(schema) = found
        && schema.oldest_writer > known
    {
        return Err(OpenError::NewerSchema {
            path: shown.to_owned(),
            found: schema.version,
            oldest_writer: schema.oldest_writer,
            known,
        });
    }
    let from = found.map_or(0, |schema| schema.version);
    let pending: Vec<_> = migrations.iter().filter(|migration| migration.version > from).collect();
    let copy = match (path, found, pending.is_empty()) {
        (Some(path), Some(schema), false) => Some(copy_beside(conn, path, schema.version)?),
        _ => None,
    };
    for migration in &pending {
        apply(conn, migration).map_err(sqlite)?;
    }
    Ok(Migrated { version: from.max(known), created: found.is_none(), copy })
}

/// What a file says of its schema; `None` if it is empty.
pub(crate) fn read(conn: &Connection, path: &Path) -> Result<Option<Schema>, OpenError> {
    let sqlite = |error: rusqlite::Error| OpenError::sqlite(path, "read the schema of", &error);
    let tables: i64 =
        conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(sqlite)?;
    if tables == 0 {
        return Ok(None);
    }
    let id: i64 = conn.pragma_query_value(None, "application_id", |row| row.get(0)).map_err(sqlite)?;
    if id != APPLICATION_ID {
        return Err(OpenError::NotADatabase(path.to_owned()));
    }
    let number = |name: &str| -> Result<u32, OpenError> {
        conn.query_row("SELECT value FROM meta WHERE name = ?1", [name], |row| row.get(0))
            .optional()
            .map_err(sqlite)?
            .ok_or_else(|| OpenError::NotADatabase(path.to_owned()))
    };
    Ok(Some(Schema { version: number("schema_version")?, oldest_writer: number("oldest_writer")? }))
}

fn apply(conn: &Connection, migration: &Migration) -> rusqlite::Result<()> {
    let tx = conn.unchecked_transaction()?;
    tx.execute_batch(migration.sql)?;
    tx.pragma_update(None, "application_id", APPLICATION_ID)?;
    let mut put = tx.prepare(
        "INSERT INTO meta (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
    )?;
    put.execute(("schema_version", migration.version))?;
    put.execute(("oldest_writer", migration.oldest_writer))?;
    drop(put);
    tx.commit()
}

/// Copies a store before it is changed; a copy that an earlier try left behind is replaced.
fn copy_beside(conn: &Connection, path: &Path, version: u32) -> Result<PathBuf, OpenError> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".v{version}"));
    let copy = PathBuf::from(name);
    if copy.exists() {
        std::fs::remove_file(&copy).map_err(|error| OpenError::io(&copy, "replace", &error))?;
    }
    crate::backup::copy(conn, &copy)
        .map_err(|error| OpenError::sqlite(&copy, "copy the store to", &error))?;
    Ok(copy)
}
