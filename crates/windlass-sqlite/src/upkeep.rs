//! What the store does for all, and what operators ask for: audit, migration, retention, schedules, tokens.

pub(crate) mod audit;
pub(crate) mod lanes;
pub(crate) mod migrate;
pub(crate) mod operators;
pub(crate) mod retention;
pub(crate) mod schedule;
pub(crate) mod session;
pub(crate) mod token;
