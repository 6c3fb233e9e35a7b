//! The gates of jobs and workflows: who may pass, decided by the writer in the transaction that touched them.

pub(crate) mod admit;
pub(crate) mod calls;
pub(crate) mod held_line;
pub(crate) mod job;
pub(crate) mod turns;
pub(crate) mod workflow;
