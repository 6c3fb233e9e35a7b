//! `windlass consume` as a real process on a real broker.
#![allow(clippy::panic, clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod bench;
mod consume;
mod doctor;
mod foreign;
mod logs;
mod monitor;
mod rig;
mod traces;
