//! Keeps the write-ahead log small: moves it into the file after the answers have gone out.

use rusqlite::Connection;

/// Pages in the log from which it is moved into the file: 16 MiB.
const PAGES_MAX: i64 = 4000;
/// Commits between two looks at the log's length.
const COMMITS_BETWEEN: u32 = 8;

/// When the log was last looked at.
#[derive(Debug)]
pub(crate) struct Checkpoints {
    is_file: bool,
    commits: u32,
}

impl Checkpoints {
    /// For a file; a store in memory has no log.
    pub(crate) fn new(is_file: bool) -> Self {
        Self { is_file, commits: 0 }
    }

    /// Counts a commit.
    pub(crate) fn committed(&mut self) {
        self.commits += 1;
    }

    /// Moves the log into the file if it has grown long.
    pub(crate) fn run(&mut self, conn: &Connection, _is_idle: bool) -> rusqlite::Result<()> {
        if !self.is_file || self.commits < COMMITS_BETWEEN {
            return Ok(());
        }
        self.commits = 0;
        if pages(conn)? >= PAGES_MAX {
            let mut statement = conn.prepare_cached("PRAGMA wal_checkpoint(PASSIVE)")?;
            statement.query_row([], |_| Ok(()))?;
        }
        Ok(())
    }

    /// Empties the log before the file is closed. Best effort: what is in it is safe.
    pub(crate) fn last(&mut self, conn: &Connection) {
        if self.is_file {
            let _ = conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        }
    }
}

/// Pages in the log that are not in the file yet.
fn pages(conn: &Connection) -> rusqlite::Result<i64> {
    let mut statement = conn.prepare_cached("PRAGMA wal_checkpoint(NOOP)")?;
    statement.query_row([], |row| Ok(row.get::<_, i64>(1)? - row.get::<_, i64>(2)?))
}
