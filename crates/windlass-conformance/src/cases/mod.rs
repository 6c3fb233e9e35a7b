//! Every rule of a store as a named case. `suite.rs` lists them with their promises.
//!
//! The folders are named after the same steps as those of the stores. `suite.rs` names a case by its file
//! alone, so every file is also found here.
#![allow(missing_docs, reason = "a case's name is a sentence that says what it shows")]

pub mod claim;
pub mod durability;
pub mod enqueue;
pub mod fleet;
pub mod gates;
pub mod leases;
pub mod lost;
pub mod operate;
pub mod rig;
pub mod settle;
pub mod upkeep;

pub use claim::{order, suspects};
pub use enqueue::{keys, straight};
pub use gates::{delay, gate_audit, gate_fleet, job_states, jobs, lanes_alive, workflow_states, workflows};
pub use leases::{expiry, forgotten, lease, reconcile, unclaim};
pub use operate::{cancel, filter, inspect, pause, redrive, remove, why};
pub use settle::{fence, misnamed, receipts};
pub use upkeep::{audit, due, lanes, operators, retention, schedules, sessions, tokens};
