//! The embedded store of Windlass: one SQLite file, one writer thread with group commit.
//!
//! Reading order: `store` turns each call of [`SqliteStore`] into a request; `call` queues it; `writer` runs
//! all queued requests in one transaction. `enqueue`, `straight`, `claim`, `settle`, `lease`, `operate` and
//! `maintain` run the requests. `gates` gives jobs (`turn`) and workflows their turn at the end of each.
//! `gate_calls`, `schedules` and `tokens` are for operators. `end` ends attempts; `memory` is the writer's
//! cache. Look-ups (`inspect`, `figures`, `audit`) go to `reader`, a small pool of read-only connections.
//! `backup`, `restore` and `export` handle whole stores.
//!
//! ```
//! use windlass_core::{NewTask, Payload, Store};
//! use windlass_sqlite::{Location, Options, SqliteStore};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = SqliteStore::open(&Location::Memory, Options::default()).await?;
//! let enqueued = store.enqueue(vec![NewTask::new("echo", Payload::json(&"hello")?)?]).await?;
//! assert!(store.task(enqueued[0].id).await?.is_some());
//! store.close().await?;
//! # Ok(())
//! # }
//! ```

mod claim;
mod connection;
mod enqueue;
mod gates;
mod leases;
mod memory;
mod operate;
mod settle;
mod shared;
mod sql;
mod store;
mod transfer;
mod upkeep;
mod wakeup;

pub use connection::error::OpenError;
pub use connection::options::{
    Durability, History, Location, MIN_FREE_BYTES, MIN_FREE_PERCENT, Options, ParseLocationError, SystemClock,
};
pub use store::SqliteStore;
#[doc(hidden)]
pub use transfer::export;
pub use transfer::restore::{RestoreOptions, Restored, restore};

/// The version of the SQLite library that is built in.
pub fn sqlite_version() -> &'static str {
    rusqlite::version()
}
