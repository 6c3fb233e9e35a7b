//! The API over real TCP, on an in-memory store.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod access;
mod audit;
mod bad_input;
mod bulk;
mod dead_store;
mod enqueue;
mod fleet;
mod guard;
mod harness;
mod jobs;
mod life;
mod limits;
mod look;
mod metrics;
mod openapi;
mod ready;
mod schedules;
mod tls;
mod wait;
mod workflows;
