//! The protocol of jobs and workflows on PostgreSQL, as a model.
#![expect(clippy::indexing_slicing, reason = "tasks, jobs, workers and connections are indices of fixed tables")]

pub mod db;
mod gate;
mod lease;
pub mod model;
pub mod protocol;
pub mod state;
