//! How workers of other processes are told of new tasks: the doorbell of an idle worker, and its offer to take
//! the next task.

pub(crate) mod doorbell;
pub(crate) mod listener;
pub(crate) mod offer;
