//! How workers are told of new tasks: the doorbell of an idle worker, its offer to take the next task, and
//! the hints inside this process.

pub(crate) mod doorbell;
pub(crate) mod hints;
pub(crate) mod listener;
pub(crate) mod offer;
