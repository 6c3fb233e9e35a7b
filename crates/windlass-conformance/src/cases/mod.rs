//! Every rule of a store as a named case. `suite.rs` lists them with the promises that they bear.
#![allow(missing_docs, reason = "a case's name is a sentence that says what it shows")]

pub mod audit;
pub mod cancel;
pub mod claim;
pub mod delay;
pub mod due;
pub mod durability;
pub mod enqueue;
pub mod expiry;
pub mod fence;
pub mod fleet;
pub mod gate_audit;
pub mod gate_fleet;
pub mod inspect;
pub mod job_states;
pub mod jobs;
pub mod keys;
pub mod lanes_alive;
pub mod lease;
pub mod lost;
pub mod misnamed;
pub mod order;
pub mod pause;
pub mod receipts;
pub mod reconcile;
pub mod redrive;
pub mod retention;
pub mod rig;
pub mod schedules;
pub mod settle;
pub mod suspects;
pub mod tokens;
pub mod unclaim;
pub mod why;
pub mod workflow_states;
pub mod workflows;
