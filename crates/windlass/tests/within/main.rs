//! A client that enqueues inside transactions of its caller, with both drivers, and workers that the commit
//! wakes.

#![cfg(feature = "postgres")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod drivers;
mod open;
mod place;
mod wake;
