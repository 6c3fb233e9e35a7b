//! The PostgreSQL store of Windlass: any number of processes on one schema.
//!
//! Reading order: [`PostgresStore`] in `store` sends each call to the file of its name; `enqueue`, `claim`, `settle`,
//! `lease`, `operate` are what tasks go through; `register` is how a worker comes; `gate`, `turns`, `job` and `workflow` decide who passes, `schedule` keeps recurring tasks; `within` is enqueue inside a caller's own transaction; `gather` is the group commit of enqueues, `keys` their idempotency; `renew` renews the leases of one moment together;
//! `cursor` is where claims start, `looks` which way they go, `short` the ways that do not look around, `place` where what they took lies, `doorbell` how idle workers hear of new tasks, `offer` how they have one without a claim; `leader`, `history`, `vacuum` and `depth` are what
//! one process does for all. `import` takes a whole store in from elsewhere. `pool` and `conn` are connections, `reach` is whether the server is there, `wire` and `driver` what moves their bytes. Every statement
//! lies in `sql/`, one a file.

mod claim;
mod connection;
mod enqueue;
mod gates;
#[doc(hidden)]
pub mod inside;
mod leases;
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
    CONNECT_TIMEOUT, History, Location, Notify, Options, POOL_SIZE, ParseLocationError, STATEMENT_TIMEOUT,
    is_postgres,
};
pub use enqueue::in_transaction::{Call, Within, enqueue_within};
pub use sql::{DEFAULT_SCHEMA, Schema};
pub use store::PostgresStore;
#[doc(hidden)]
pub use transfer::import;
pub use upkeep::doctor::{Examination, Horizon, TableHealth, examine};
pub use upkeep::migrate::{Migrated, Plan, PlannedStep, migrate, plan, remove_schema};
