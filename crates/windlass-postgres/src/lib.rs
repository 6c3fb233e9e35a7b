//! The PostgreSQL store of Windlass: any number of processes on one schema.
//!
//! Reading order: [`PostgresStore`] in `store` sends each call to the file of its name; `enqueue`, `claim`, `settle`,
//! `lease`, `operate` are what tasks go through; `register` is how a worker comes; `gate`, `turns`, `job` and `workflow` decide who passes, `schedule` keeps recurring tasks; `within` is enqueue inside a caller's own transaction; `gather` is the group commit of enqueues, `keys` their idempotency; `renew` renews the leases of one moment together;
//! `cursor` is where claims start, `looks` which way they go, `short` the ways that do not look around, `place` where what they took lies, `doorbell` how idle workers hear of new tasks, `offer` how they have one without a claim; `leader`, `history`, `vacuum` and `depth` are what
//! one process does for all. `import` takes a whole store in from elsewhere. `pool` and `conn` are connections, `reach` is whether the server is there, `wire` and `driver` what moves their bytes. Every statement
//! lies in `sql/`, one a file.

mod audit;
mod awaited;
mod bell;
mod claim;
mod compare;
mod conn;
mod cursor;
mod depth;
mod doctor;
mod doorbell;
mod doubt;
mod driver;
mod ends;
mod enqueue;
mod epoch;
mod error;
mod gate;
mod gather;
mod hints;
mod history;
#[doc(hidden)]
pub mod import;
mod import_rows;
mod info;
#[doc(hidden)]
pub mod inside;
mod inspect;
mod job;
mod keys;
mod lanes;
mod leader;
mod lease;
mod line;
mod looks;
mod migrate;
mod offer;
mod open;
mod operate;
mod options;
mod patience;
mod place;
mod pool;
mod reach;
mod record;
mod register;
mod renew;
mod repeat;
mod schedule;
mod settle;
mod shared;
mod short;
mod sql;
mod store;
mod straight;
mod suspect;
mod taken;
mod tls;
mod token;
mod turns;
mod vacuum;
mod wire;
mod within;
mod workflow;

pub use doctor::{Examination, Horizon, TableHealth, examine};
pub use error::OpenError;
pub use migrate::{Migrated, Plan, PlannedStep, migrate, plan};
pub use options::{
    CONNECT_TIMEOUT, History, Location, Notify, Options, POOL_SIZE, ParseLocationError, STATEMENT_TIMEOUT,
    is_postgres,
};
pub use sql::{DEFAULT_SCHEMA, Schema};
pub use store::PostgresStore;
pub use within::{Call, Within, enqueue_within};
