//! How workers hear of new tasks: the hints of this process.

pub(crate) mod hints;
