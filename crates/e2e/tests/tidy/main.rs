//! The tidiness of the tree: layers, licences, sources, sizes and the list of guarantees.
//!
//! No test here starts a Windlass process; every rule reads the files of the workspace or `cargo metadata`.
#![allow(clippy::panic, clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod audit;
mod guarantees;
mod house;
mod layers;
mod licences;
mod metadata;
mod names;
mod sql;
mod tree;
