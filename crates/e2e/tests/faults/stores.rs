//! Files that are not a store, or not one for this program: refused, and left unchanged.

use std::path::Path;

use crate::{assert_refused, say};

/// Every command that opens a store must refuse it, and must not change a byte of it.
#[track_caller]
fn assert_refused_and_untouched(folder: &Path, file: &Path, code: i32, parts: &[&str]) {
    let before = std::fs::read(file).unwrap();
    let store = format!("sqlite:{}", file.display());
    assert_refused(&say(folder, ["up", "--listen", "127.0.0.1:0", "--store", &store]), code, parts);
    assert_refused(&say(folder, ["tasks", "ls", "--store", &store]), code, parts);
    assert!(std::fs::read(file).unwrap() == before, "{} was changed", file.display());
}

#[test]
fn a_file_that_is_not_a_database_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("notes.txt");
    std::fs::write(&file, "a list of things to buy\n".repeat(1000)).unwrap();
    assert_refused_and_untouched(folder.path(), &file, 1, &["notes.txt", "not a"]);
}

#[test]
fn a_database_of_another_program_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("other.db");
    let other = rusqlite::Connection::open(&file).unwrap();
    other.execute_batch("CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO customers VALUES (1, 'a');").unwrap();
    drop(other);
    assert_refused_and_untouched(folder.path(), &file, 1, &["other.db"]);
}

#[test]
fn a_store_of_a_newer_version_is_refused_with_both_versions() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("windlass.db");
    let store = format!("sqlite:{}", file.display());
    let made = say(folder.path(), ["migrate", "--store", &store]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let newer = rusqlite::Connection::open(&file).unwrap();
    let version: u32 = newer
        .query_row("SELECT value FROM meta WHERE name = 'schema_version'", [], |row| row.get(0))
        .unwrap();
    newer
        .execute("UPDATE meta SET value = 9999 WHERE name IN ('schema_version', 'oldest_writer')", [])
        .unwrap();
    drop(newer);
    assert_refused_and_untouched(folder.path(), &file, 4, &["9999", &version.to_string()]);
}

#[test]
fn an_unwritable_folder_is_refused_and_named() {
    let folder = tempfile::tempdir().unwrap();
    // Permissions do not stop root; a folder below a file stops every user.
    std::fs::write(folder.path().join("file"), "x").unwrap();
    let said = say(folder.path(), ["up", "--listen", "127.0.0.1:0", "--store", "sqlite:file/windlass.db"]);
    assert_refused(&said, 1, &["file/windlass.db"]);
}

#[test]
fn a_folder_that_does_not_exist_is_refused_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let said = say(folder.path(), ["up", "--listen", "127.0.0.1:0", "--store", "sqlite:nowhere/windlass.db"]);
    assert_refused(&said, 1, &["nowhere"]);
}
