//! The gates: the limit of a job and the order of a workflow.

pub mod delay;
pub mod gate_audit;
pub mod gate_fleet;
pub mod job_states;
pub mod jobs;
pub mod lanes_alive;
pub mod workflow_states;
pub mod workflows;
