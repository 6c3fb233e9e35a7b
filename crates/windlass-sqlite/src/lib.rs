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

mod answer;
mod audit;
mod awaited;
mod away;
mod backup;
mod call;
mod checkpoint;
mod claim;
mod disk;
mod end;
mod enqueue;
mod epoch;
mod error;
#[doc(hidden)]
pub mod export;
mod figures;
mod gate_calls;
mod gates;
mod hints;
mod id_map;
mod inspect;
mod jobs;
mod keys;
mod later;
mod lease;
mod leases;
mod line;
mod linger;
mod lock;
mod maintain;
mod memory;
mod migrate;
mod open;
mod operate;
mod options;
mod reader;
mod record;
mod restore;
mod schedules;
mod settle;
mod shared;
mod sql;
mod store;
mod straight;
mod suspect;
mod tokens;
mod turn;
mod tx;
mod workflows;
mod writer;

pub use error::OpenError;
pub use options::{
    Durability, History, Location, MIN_FREE_BYTES, MIN_FREE_PERCENT, Options, ParseLocationError, SystemClock,
};
pub use restore::{RestoreOptions, Restored, restore};
pub use store::SqliteStore;

/// The version of the SQLite library that is linked.
pub fn sqlite_version() -> &'static str {
    rusqlite::version()
}
