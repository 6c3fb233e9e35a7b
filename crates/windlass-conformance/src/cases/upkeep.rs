//! The duties of a store, and what else it keeps: lanes, schedules, tokens, sessions.

pub mod audit;
pub mod due;
pub mod lanes;
pub mod retention;
pub mod schedules;
pub mod sessions;
pub mod tokens;
