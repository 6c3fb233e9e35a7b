//! The rules of every store, over gRPC: a server in this process on a real socket, on each kind of store.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod callers;
mod crowd;
mod fuzz;
mod harness;
mod lost_stream;
mod memory;
mod names;
mod postgres;
mod push;
mod room;
mod servers;
mod sqlite;
mod stock;
mod wire;
