//! The schema and its versions (SCHEMA-SAFE).
//!
//! A file records its version, and the oldest version whose programs may still write to it. A migration that
//! only adds leaves the latter as it is. Nothing is ever downgraded.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension};

use crate::connection::error::OpenError;

/// Marks the file as ours: "WNDL".
const APPLICATION_ID: i64 = 0x574e_444c;

/// One step from the version before.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Migration {
    pub version: u32,
    /// After it, programs that know only versions below this one must not write.
    pub oldest_writer: u32,
    pub sql: &'static str,
}

/// Every migration, oldest first.
pub(crate) const MIGRATIONS: &[Migration] = &[
    Migration { version: 1, oldest_writer: 1, sql: include_str!("../../sql/migrations/0001_first.sql") },
    Migration { version: 2, oldest_writer: 1, sql: include_str!("../../sql/migrations/0002_trace.sql") },
    Migration { version: 3, oldest_writer: 1, sql: include_str!("../../sql/migrations/0003_admission.sql") },
    Migration { version: 4, oldest_writer: 1, sql: include_str!("../../sql/migrations/0004_token.sql") },
    Migration { version: 5, oldest_writer: 1, sql: include_str!("../../sql/migrations/0005_remote.sql") },
    Migration { version: 6, oldest_writer: 1, sql: include_str!("../../sql/migrations/0006_owner.sql") },
    Migration { version: 9, oldest_writer: 1, sql: include_str!("../../sql/migrations/0009_suspect.sql") },
    Migration { version: 10, oldest_writer: 1, sql: include_str!("../../sql/migrations/0010_retired.sql") },
    Migration {
        version: 11,
        oldest_writer: 1,
        sql: include_str!("../../sql/migrations/0011_worker_counts.sql"),
    },
    Migration { version: 12, oldest_writer: 1, sql: include_str!("../../sql/migrations/0012_session.sql") },
    Migration { version: 13, oldest_writer: 1, sql: include_str!("../../sql/migrations/0013_operators.sql") },
];

/// The version that a file records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Schema {
    pub version: u32,
    pub oldest_writer: u32,
}

/// What a migration did to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Migrated {
    pub version: u32,
    /// Whether the file was empty before.
    pub created: bool,
    /// The copy that was made before an existing store was changed.
    pub copy: Option<PathBuf>,
}

/// Brings a file to the newest version of the list, after a copy of an existing store.
pub(crate) fn migrate(
    conn: &Connection,
    path: Option<&Path>,
    migrations: &[Migration],
) -> Result<Migrated, OpenError> {
    let shown = path.unwrap_or(Path::new(":memory:"));
    let sqlite = |error: rusqlite::Error| OpenError::sqlite(shown, "read the schema of", &error);
    let found = check(conn, shown, migrations)?;
    let known = newest(migrations);
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

/// Refuses a file that is not a store or that this program may not write. Changes nothing in it.
pub(crate) fn check(
    conn: &Connection,
    path: &Path,
    migrations: &[Migration],
) -> Result<Option<Schema>, OpenError> {
    let (found, known) = (read(conn, path)?, newest(migrations));
    match found {
        Some(schema) if schema.oldest_writer > known => Err(OpenError::NewerSchema {
            path: path.to_owned(),
            found: schema.version,
            oldest_writer: schema.oldest_writer,
            known,
        }),
        found => Ok(found),
    }
}

fn newest(migrations: &[Migration]) -> u32 {
    migrations.last().map_or(0, |migration| migration.version)
}

/// The version that a file records; `None` if it is empty.
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

/// Copies a store before it is changed; replaces a copy of an earlier, failed try.
fn copy_beside(conn: &Connection, path: &Path, version: u32) -> Result<PathBuf, OpenError> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".v{version}"));
    let copy = PathBuf::from(name);
    if copy.exists() {
        std::fs::remove_file(&copy).map_err(|error| OpenError::io(&copy, "replace", &error))?;
    }
    crate::transfer::backup::copy(conn, &copy)
        .map_err(|error| OpenError::sqlite(&copy, "copy the store to", &error))?;
    Ok(copy)
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: Migration =
        Migration { version: 1, oldest_writer: 1, sql: include_str!("../../sql/migrations/0001_first.sql") };
    /// A change that only adds: programs of version 1 may still write.
    const V2: Migration =
        Migration { version: 2, oldest_writer: 1, sql: "ALTER TABLE task ADD COLUMN colour TEXT;" };
    /// A change that breaks programs of version 2.
    const V3: Migration =
        Migration { version: 3, oldest_writer: 3, sql: "ALTER TABLE task DROP COLUMN colour;" };

    fn schema_of(conn: &Connection) -> String {
        let mut statement = conn
            .prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY name")
            .unwrap();
        let lines = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
        lines.map(|line| line.unwrap() + ";\n").collect()
    }

    #[test]
    fn the_schema_is_the_one_in_schema_sql() {
        let conn = Connection::open_in_memory().unwrap();
        migrate(&conn, None, MIGRATIONS).unwrap();
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/schema.sql");
        let made = schema_of(&conn);
        if std::env::var_os("WINDLASS_BLESS").is_some() {
            std::fs::write(path, &made).unwrap();
        }
        let kept = std::fs::read_to_string(path).unwrap_or_default();
        assert_eq!(made, kept, "run the test with WINDLASS_BLESS=1 to write schema.sql again");
    }

    #[test]
    fn an_existing_store_is_copied_before_it_is_migrated() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("w.db");
        let conn = Connection::open(&path).unwrap();
        let made = migrate(&conn, Some(&path), &[V1]).unwrap();
        assert_eq!(made, Migrated { version: 1, created: true, copy: None });
        conn.execute("INSERT INTO lane (id, queue, kind) VALUES (1, 'q', 'k')", []).unwrap();
        let done = migrate(&conn, Some(&path), &[V1, V2]).unwrap();
        let copy = folder.path().join("w.db.v1");
        assert_eq!(done, Migrated { version: 2, created: false, copy: Some(copy.clone()) });
        let old = Connection::open(&copy).unwrap();
        let lanes: i64 = old.query_row("SELECT count(*) FROM lane", [], |row| row.get(0)).unwrap();
        assert_eq!((lanes, read(&old, &copy).unwrap().unwrap().version), (1, 1));
        assert!(conn.prepare("SELECT colour FROM task").is_ok());
        let again = migrate(&conn, Some(&path), &[V1, V2]).unwrap();
        assert_eq!(again.copy, None, "nothing to do, nothing to copy");
    }

    #[test]
    fn an_older_program_refuses_a_store_of_a_newer_writer() {
        let path = Path::new("w.db");
        let conn = Connection::open_in_memory().unwrap();
        migrate(&conn, None, &[V1, V2]).unwrap();
        let inside = migrate(&conn, None, &[V1]).unwrap();
        assert_eq!(inside.version, 2, "an additive change does not lock version 1 out");
        migrate(&conn, None, &[V1, V2, V3]).unwrap();
        let error = migrate(&conn, None, &[V1, V2]).unwrap_err().to_string();
        assert!(error.contains("version 3") && error.contains("up to 2"), "{error}");
        assert_eq!(read(&conn, path).unwrap(), Some(Schema { version: 3, oldest_writer: 3 }));
    }

    #[test]
    fn a_migration_that_fails_changes_nothing() {
        let bad = Migration { version: 2, oldest_writer: 2, sql: "CREATE TABLE a (x); CREATE TABLE a (x);" };
        let conn = Connection::open_in_memory().unwrap();
        migrate(&conn, None, &[V1]).unwrap();
        assert!(migrate(&conn, None, &[V1, bad]).is_err());
        assert_eq!(read(&conn, Path::new("w.db")).unwrap().unwrap().version, 1);
        assert!(conn.prepare("SELECT x FROM a").is_err());
    }

    #[test]
    fn a_database_of_another_program_is_refused() {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch("CREATE TABLE recipes (name TEXT)").unwrap();
        assert!(matches!(migrate(&conn, None, MIGRATIONS), Err(OpenError::NotADatabase(_))));
    }
}
