//! The promises of the store on PostgreSQL beyond the rules of every store.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod alone;
mod audit;
mod bad_rows;
mod cancelled;
mod claim;
mod compare;
mod connections;
mod crash;
mod doorbell;
mod fleet;
mod gate_fleet;
mod gate_races;
mod history;
mod lanes;
mod leader;
mod life;
mod list;
mod lone;
mod migrate;
mod moved;
mod mutants;
mod offer;
mod pgbouncer;
mod place;
mod plans;
mod renew;
mod schema;
mod statements;
#[path = "../support/mod.rs"]
mod support;
mod take;
mod tls;
mod vacuum;
mod wait;
