//! What a store keeps beside its tasks, and the duties that look after it.

mod audit;
pub(super) mod lanes;
pub(super) mod operators;
mod retain;
mod schedule;
pub(super) mod session;
mod token;
