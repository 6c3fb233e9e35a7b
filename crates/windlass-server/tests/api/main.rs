//! The API over real TCP, on an in-memory store.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod access;
mod audit;
mod bad_input;
mod bound;
mod bulk;
mod dead_store;
mod doors;
mod effects;
mod enqueue;
mod export;
mod filter;
mod fleet;
mod foreign;
mod framing;
mod guard;
mod harness;
mod jobs;
mod lanes;
mod life;
mod limits;
mod look;
mod matrix;
mod metrics;
mod names;
mod names_grpc;
mod openapi;
mod operate;
mod operators;
mod pages;
mod public;
mod queue_why;
mod ready;
mod schedules;
mod sessions;
mod tls;
mod viewers;
mod wait;
mod watched;
#[path = "../remote/wire.rs"]
#[expect(dead_code, reason = "shared with tests that need more of it")]
mod wire;
mod workflows;
