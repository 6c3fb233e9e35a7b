//! The PostgreSQL store of Windlass: any number of processes on one schema.
//!
//! Reading order: [`PostgresStore`] in `store` sends each call to the file of its name. A task goes through
//! `enqueue`, `claim` and `settle`; a folder of the same name has the ways of each. `gates` decides which
//! tasks of jobs and workflows become ready. `leases` registers and renews workers, and takes leases back.
//! `wakeup` tells idle workers of new tasks. `operate` has what clients and operators do to tasks, `upkeep`
//! what one process does for all, and `transfer` copies a whole store in. `connection` has the pools, the
//! statements on a connection, and the threads that drive connections. Every statement is a file in `sql/`.

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
