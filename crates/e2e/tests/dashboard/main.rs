//! The dashboard in a real browser.
#![allow(clippy::panic, clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod axe;
mod bars;
mod doors;
mod inert;
mod keys;
mod people;
mod rig;
mod safe;
mod screens;
