//! Why a store could not be opened or restored. Each is one line that says what to do.

use std::path::{Path, PathBuf};

/// Why a store could not be opened or restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process has the store open.
    #[error("{} is in use by {}; stop it, or send commands to it", path.display(), owner(*pid, address.as_deref()))]
    InUse {
        /// The store.
        path: PathBuf,
        /// That process, if it wrote its pid.
        pid: Option<u32>,
        /// Where that process can be reached, if it wrote its address.
        address: Option<String>,
    },
    /// The file is not a Windlass store.
    #[error("{} is not a Windlass store; name another file or move this one away", .0.display())]
    NotADatabase(PathBuf),
    /// A newer program wrote the file, and this one must not write to it.
    #[error(
        "{} has schema version {found}, written only by programs that know version {oldest_writer} or later, \
         and this program knows up to {known}; use a newer windlass",
        path.display()
    )]
    NewerSchema {
        /// The store.
        path: PathBuf,
        /// Its schema version.
        found: u32,
        /// The oldest schema version whose programs may write it.
        oldest_writer: u32,
        /// The newest version that this program knows.
        known: u32,
    },
    /// The SQLite library has a bug that can corrupt a write-ahead log.
    #[error("SQLite {found} can corrupt a write-ahead log; build with {needed} or later")]
    SqliteTooOld {
        /// The version linked.
        found: String,
        /// The oldest version without that bug.
        needed: String,
    },
    /// There is no store, and the caller did not ask for a new one.
    #[error("there is no store at {}; start `windlass up` there, or name another with --store", .0.display())]
    NoSuchStore(PathBuf),
    /// A file of that name exists.
    #[error("{} exists; name another file, or say explicitly that it may be replaced", .0.display())]
    Exists(PathBuf),
    /// The operating system reported an error.
    #[error("cannot {action} {}: {reason}; check that the folder exists and may be written", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the store tried.
        action: &'static str,
        /// The system's message.
        reason: String,
    },
    /// SQLite reported an error.
    #[error("cannot {action} {}: {reason}", path.display())]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What the store tried.
        action: &'static str,
        /// SQLite's message.
        reason: String,
    },
}

impl OpenError {
    pub(crate) fn io(path: &Path, action: &'static str, error: &std::io::Error) -> Self {
        Self::Io { path: path.to_owned(), action, reason: error.to_string() }
    }

    pub(crate) fn sqlite(path: &Path, action: &'static str, error: &rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::NotADatabase | rusqlite::ErrorCode::DatabaseCorrupt) => {
                Self::NotADatabase(path.to_owned())
            }
            _ => Self::Sqlite { path: path.to_owned(), action, reason: error.to_string() },
        }
    }
}

fn owner(pid: Option<u32>, address: Option<&str>) -> String {
    match (pid, address) {
        (Some(pid), Some(address)) => format!("process {pid} at {address}"),
        (Some(pid), None) => format!("process {pid}"),
        (None, _) => "another process".to_owned(),
    }
}

/// Whether an error means that the file or the disk cannot be trusted any more. After a failed fsync the
/// state of the disk is unknown; a retry would only hide that.
pub(crate) fn is_fatal(error: &rusqlite::Error) -> bool {
    use rusqlite::ffi;
    match error {
        rusqlite::Error::SqliteFailure(failure, _) => match failure.code {
            rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase => true,
            rusqlite::ErrorCode::SystemIoFailure => !matches!(
                failure.extended_code,
                ffi::SQLITE_IOERR_SHMSIZE | ffi::SQLITE_IOERR_SHMMAP | ffi::SQLITE_IOERR_NOMEM
            ),
            _ => false,
        },
        rusqlite::Error::ToSqlConversionFailure(_) => true,
        _ => false,
    }
}
