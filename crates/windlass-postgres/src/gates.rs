//! The gates of jobs and workflows: which tasks may pass, decided in short transactions of the store's own.

pub(crate) mod admit;
pub(crate) mod job;
pub(crate) mod turns;
pub(crate) mod workflow;
