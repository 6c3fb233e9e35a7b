//! What the embedded store promises beyond the rules that every store keeps.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod backup;
mod claim;
mod ended;
mod fatal;
mod gates;
mod hints;
mod history;
mod line;
mod list;
mod open;
mod retention;
mod rig;
mod room;
