//! Real servers: their properties, and that nothing of them is left.
#![allow(clippy::panic, clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod broker;
mod cluster;
mod pgbouncer;
mod processes;
mod program;
mod prometheus;
mod proxy;
