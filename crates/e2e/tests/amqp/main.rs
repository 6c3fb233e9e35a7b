//! `windlass consume` as a real process on a real broker.
#![allow(clippy::panic, clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod bench;
mod consume;
mod foreign;
mod monitor;
mod rig;
mod traces;
