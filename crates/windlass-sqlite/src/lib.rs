//! The embedded store of Windlass: one SQLite file, one writer thread with group commit.

mod error;
mod lock;
mod options;
mod restore;
mod store;

pub use error::OpenError;
pub use options::{
    Durability, History, Location, MIN_FREE_BYTES, MIN_FREE_PERCENT, Options, ParseLocationError, SystemClock,
};
pub use restore::{RestoreOptions, Restored, restore};
pub use store::SqliteStore;

/// The version of the SQLite library that is built in.
pub fn sqlite_version() -> &'static str {
    rusqlite::version()
}
