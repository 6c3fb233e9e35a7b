//! Duties that one process does for all, and what operators ask for: the leader, history, vacuum, depth,
//! schedules, tokens, migration.

pub(crate) mod audit;
pub(crate) mod depth;
pub(crate) mod doctor;
pub(crate) mod history;
pub(crate) mod lane_look;
pub(crate) mod lanes;
pub(crate) mod leader;
pub(crate) mod migrate;
pub(crate) mod operators;
pub(crate) mod schedule;
pub(crate) mod session;
pub(crate) mod token;
pub(crate) mod vacuum;
