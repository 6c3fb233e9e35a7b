//! Enqueue inside a transaction of the caller's own: from Rust, from psql, and from Python.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod commit;
mod desk;
mod gates;
mod isolation;
mod keys;
mod lanes;
mod python;
mod rights;
mod sql;
#[path = "../support/mod.rs"]
mod support;
