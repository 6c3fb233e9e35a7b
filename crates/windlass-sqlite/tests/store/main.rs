//! What the embedded store promises beyond the rules of every store.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod backup;
mod claim;
mod ended;
mod fatal;
mod flush;
mod gates;
mod hints;
mod history;
mod line;
mod list;
mod mutants;
mod open;
mod retention;
mod rig;
mod room;
#[path = "../support/mod.rs"]
mod support;
