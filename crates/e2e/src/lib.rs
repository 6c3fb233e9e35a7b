//! Real processes and real faults.
//!
//! This crate starts the built `windlass` program, drives it from outside, injects faults, and checks the
//! result. The library part contains what several tests share; none of it is part of the product.

pub mod browser;
pub mod collector;
pub mod containment;
pub mod http;
pub mod kill;
pub mod postgres;
pub mod process;
pub mod rng;
pub mod target;
pub mod tmux;
pub mod tree;
pub mod until;
pub mod up;
pub mod visits;

pub use tree::{files, read, workspace_root};
pub use until::until;
