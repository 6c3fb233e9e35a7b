//! How workers hear of new tasks: the doorbell of an idle worker, its offer to take the next task, and the hints of this process.

pub(crate) mod doorbell;
pub(crate) mod hints;
pub(crate) mod offer;
