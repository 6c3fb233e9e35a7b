//! Replaces a store with a copy.
//!
//! Everything happens in a file beside the store, which then takes the store's name: a restore that fails
//! half way leaves the old store. All leases end, because they were given before the restore.
//! That counts as no crash.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, Row};
use windlass_core::{AttemptRecord, Timestamp, WorkerId, attempt_log as log, task::AttemptResult};

use crate::{
    connection::{error::OpenError, lock::Lock, open, options::SystemClock, reader},
    leases::epoch,
    sql,
    transfer::backup,
    upkeep::migrate,
};

/// The suffixes of a store's file and of those that SQLite keeps beside it.
const STORE_SUFFIXES: [&str; 4] = ["", "-wal", "-shm", "-journal"];

/// How to restore a copy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RestoreOptions {
    /// Leave every queue paused.
    pub hold: bool,
    /// Replace a store that exists.
    pub overwrite: bool,
}

/// What a restore did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Restored {
    /// Tasks whose leases ended; they are ready again, and their attempts are given back.
    pub handed_back: u64,
    /// Queues that were left paused.
    pub queues_held: u64,
}

/// Puts a copy made by `backup` in the place of a store that is not in use. Blocks.
///
/// # Errors
/// [`OpenError::InUse`] if a process has the store open, [`OpenError::Exists`] if there is a store and
/// `overwrite` is not set, [`OpenError::NotADatabase`] if the copy is not a store.
pub fn restore(backup: &Path, to: &Path, options: RestoreOptions) -> Result<Restored, OpenError> {
    if !backup.is_file() {
        return Err(OpenError::NoSuchStore(backup.to_owned()));
    }
    let _lock = Lock::take(to, None)?;
    if to.exists() && !options.overwrite {
        return Err(OpenError::Exists(to.to_owned()));
    }
    let beside = with_suffix(to, ".restoring");
    remove_store(&beside)?;
    let restored = prepare(backup, &beside, options).inspect_err(|_| {
        let _ = remove_store(&beside);
    })?;
    // SQLite would replay an old log into the new file, so move the old log away first. The old files are
    // kept aside, not removed, until the new file has its name.
    let aside = with_suffix(to, ".replaced");
    remove_store(&aside)?;
    move_store(to, &aside)?;
    if let Err(error) = std::fs::rename(&beside, to) {
        let _ = move_store(&aside, to);
        return Err(OpenError::io(to, "replace", &error));
    }
    remove_store(&aside)?;
    backup::sync(to).map_err(|error| OpenError::io(to, "sync", &error))?;
    Ok(restored)
}

/// Makes the file that will become the store.
fn prepare(backup: &Path, beside: &Path, options: RestoreOptions) -> Result<Restored, OpenError> {
    let sqlite = |action| move |error: rusqlite::Error| OpenError::sqlite(backup, action, &error);
    let source = reader::connect(backup).map_err(sqlite("read"))?;
    if migrate::read(&source, backup)?.is_none() {
        return Err(OpenError::NotADatabase(backup.to_owned()));
    }
    backup::copy(&source, beside).map_err(|error| OpenError::sqlite(beside, "write", &error))?;
    drop(source);
    let conn = open::connect(Some(beside), migrate::MIGRATIONS)?;
    migrate::migrate(&conn, None, migrate::MIGRATIONS)?;
    let restored = end_leases(&conn, options).map_err(sqlite("end the leases of"))?;
    // One file without a log, so that a rename moves all of it.
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).map_err(sqlite("finish"))?;
    conn.pragma_update_and_check(None, "journal_mode", "delete", |_| Ok(())).map_err(sqlite("finish"))?;
    conn.close().map_err(|(_, error)| OpenError::sqlite(beside, "finish", &error))?;
    Ok(restored)
}

fn end_leases(conn: &Connection, options: RestoreOptions) -> rusqlite::Result<Restored> {
    let now = windlass_core::Clock::wall(&SystemClock::new());
    let tx = conn.unchecked_transaction()?;
    let mut ready_seq: i64 = tx.query_row(sql::LAST_READY_SEQ, [], |row| row.get(0))?;
    let running: Vec<_> = tx
        .prepare(sql::RESTORE_RUNNING)?
        .query_map([], |row| Ok((row.get(0)?, attempt(row, now)?, row.get(5)?)))?
        .collect::<Result<_, _>>()?;
    let handed_back = running.len() as u64;
    let mut hand_back = tx.prepare(sql::RESTORE_HAND_BACK)?;
    for (id, record, before) in running {
        let (id, before): (i64, Option<String>) = (id, before);
        ready_seq += 1;
        hand_back.execute((ready_seq, log::append(before.as_deref(), record), id))?;
    }
    drop(hand_back);
    tx.execute(sql::FILL_LINES, [])?;
    tx.execute(sql::RESTORE_END_WORKERS, [now.as_ms()])?;
    epoch::begin_at_restore(&tx)?;
    let queues_held = if options.hold { tx.execute(sql::RESTORE_HOLD, [now.as_ms()])? } else { 0 };
    tx.commit()?;
    Ok(Restored { handed_back, queues_held: queues_held as u64 })
}

/// The attempt that was under way when the copy was made.
fn attempt(row: &Row<'_>, now: Timestamp) -> rusqlite::Result<AttemptRecord> {
    Ok(AttemptRecord {
        attempt: row.get(1)?,
        lease: row.get(2)?,
        worker: row.get::<_, Option<i64>>(3)?.map(WorkerId),
        started_at: row.get::<_, Option<i64>>(4)?.map(Timestamp::from_ms),
        ended_at: now,
        result: AttemptResult::Released,
        error: Some("its store was restored from a copy".to_owned()),
    })
}

pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Moves a file and its log, if they exist.
fn move_store(from: &Path, to: &Path) -> Result<(), OpenError> {
    for suffix in STORE_SUFFIXES {
        let (old, new) = (with_suffix(from, suffix), with_suffix(to, suffix));
        match std::fs::rename(&old, &new) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(OpenError::io(&old, "move", &error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Removes a file and its log, if they exist.
pub(crate) fn remove_store(path: &Path) -> Result<(), OpenError> {
    for suffix in STORE_SUFFIXES {
        let file = with_suffix(path, suffix);
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(OpenError::io(&file, "remove", &error));
            }
            _ => {}
        }
    }
    Ok(())
}
