//! A consistent copy of a store, made while it runs.

use std::{fs::File, path::Path};

use rusqlite::Connection;
use windlass_core::{Error, Result};

use crate::connection::{disk::folder, reader};

/// Copies a store into a new file and syncs it: a copy that a power cut destroys is useless.
pub(crate) fn copy(conn: &Connection, to: &Path) -> rusqlite::Result<()> {
    conn.execute("VACUUM INTO ?1", [to.to_string_lossy()])?;
    sync(to).map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}

/// Syncs a file and the folder that names it.
pub(crate) fn sync(file: &Path) -> std::io::Result<()> {
    File::open(file)?.sync_all()?;
    File::open(folder(file))?.sync_all()
}

/// Copies the store of a file through a connection of its own, so that neither the writer nor a look-up
/// waits.
pub(crate) fn copy_file(from: &Path, to: &Path) -> Result<()> {
    refuse_existing(to)?;
    let conn = reader::connect(from).map_err(|error| reader::read_error(&error))?;
    copy(&conn, to).map_err(|error| failed(to, &error))
}

/// Refuses a file that exists: a copy never replaces one.
pub(crate) fn refuse_existing(to: &Path) -> Result<()> {
    match to.try_exists() {
        Ok(false) => Ok(()),
        Ok(true) => Err(Error::invalid(format!("{} exists; name a file that does not", to.display()))),
        Err(error) => Err(Error::invalid(format!("cannot look at {}: {error}", to.display()))),
    }
}

/// Removes a half-written copy; returns the error for the caller.
pub(crate) fn failed(to: &Path, error: &rusqlite::Error) -> Error {
    let _ = std::fs::remove_file(to);
    Error::Unavailable(format!("cannot write the copy {}: {error}", to.display()))
}
