//! The gates of jobs and workflows: who may pass, decided in short transactions of our own.

pub(crate) mod admit;
pub(crate) mod job;
pub(crate) mod turns;
pub(crate) mod workflow;
