//! Consumers and publishers on a real broker.
#![allow(clippy::panic, clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod bridge;
mod consume;
mod faults;
mod pressure;
mod publish;
mod rig;
mod shown;
mod tls;
mod traces;
