//! Keeps the write-ahead log small: moves it into the file after the callers have their answers.

use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::connection::open::BUSY_TIMEOUT;

/// From so many pages (16 MiB) on the writer moves the log into the file.
const PAGES_MAX: i64 = 4_000;
/// From so many pages on the writer also waits for readers, so that the log can start again from its
/// beginning.
const PAGES_WAIT: i64 = 4 * PAGES_MAX;
/// How long it waits for readers.
const READERS_WAIT_MAX: Duration = Duration::from_millis(20);
/// Shortest time between two such waits.
const WAIT_AGAIN: Duration = Duration::from_secs(1);
/// A log of fewer pages is not emptied while the store is idle.
const PAGES_IDLE: i64 = 250;

/// The state of the log.
#[derive(Debug)]
pub(crate) struct Checkpoints {
    is_file: bool,
    has_commit: bool,
    waited_at: Option<Instant>,
}

/// Pages of the log, and how many of them are in the file.
#[derive(Debug, Clone, Copy)]
struct Log {
    pages: i64,
    moved: i64,
}

impl Checkpoints {
    /// For a file; a store in memory has no log.
    pub(crate) fn new(is_file: bool) -> Self {
        Self { is_file, has_commit: false, waited_at: None }
    }

    /// Notes a commit.
    pub(crate) fn committed(&mut self) {
        self.has_commit = true;
    }

    /// Moves the log into the file if it has grown long.
    pub(crate) fn run(&mut self, conn: &Connection) -> rusqlite::Result<()> {
        if !self.is_file || !std::mem::take(&mut self.has_commit) {
            return Ok(());
        }
        let log = checkpoint(conn, "PRAGMA wal_checkpoint(NOOP)")?;
        if log.pages >= PAGES_WAIT && self.waited_at.is_none_or(|at| at.elapsed() >= WAIT_AGAIN) {
            // Readers that overlap without a gap would let the log grow for ever, so wait for them. One long
            // reader, such as a copy, must not be waited for at every commit.
            self.waited_at = Some(Instant::now());
            conn.busy_timeout(READERS_WAIT_MAX)?;
            let result = checkpoint(conn, "PRAGMA wal_checkpoint(RESTART)");
            conn.busy_timeout(BUSY_TIMEOUT)?;
            result?;
        } else if log.pages - log.moved >= PAGES_MAX {
            checkpoint(conn, "PRAGMA wal_checkpoint(PASSIVE)")?;
        }
        Ok(())
    }

    /// The store is idle: empties the log and truncates its file.
    pub(crate) fn idle(&mut self, conn: &Connection) -> rusqlite::Result<()> {
        if !self.is_file || checkpoint(conn, "PRAGMA wal_checkpoint(NOOP)")?.pages < PAGES_IDLE {
            return Ok(());
        }
        conn.busy_timeout(READERS_WAIT_MAX)?;
        let result = checkpoint(conn, "PRAGMA wal_checkpoint(TRUNCATE)");
        conn.busy_timeout(BUSY_TIMEOUT)?;
        result.map(|_| ())
    }

    /// Empties the log before the file is closed. Best effort: its contents are safe.
    pub(crate) fn last(&mut self, conn: &Connection) {
        if self.is_file {
            let _ = checkpoint(conn, "PRAGMA wal_checkpoint(TRUNCATE)");
        }
    }
}

fn checkpoint(conn: &Connection, pragma: &str) -> rusqlite::Result<Log> {
    conn.prepare_cached(pragma)?.query_row([], |row| Ok(Log { pages: row.get(1)?, moved: row.get(2)? }))
}
