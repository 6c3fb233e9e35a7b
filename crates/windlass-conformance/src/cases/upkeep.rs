//! The duties of a store, and what else it keeps: lanes, schedules, tokens, sessions, and what operators do.

pub mod audit;
pub mod due;
pub mod lanes;
pub mod operators;
pub mod retention;
pub mod schedules;
pub mod sessions;
pub mod tokens;
