//! Recurring tasks: when they are due, what they enqueue, and who sees to it.
//!
//! A schedule is a row of the store with a text that only this module reads: a [`Spec`]. Every worker looks for rows whose tick
//! has come and fires them; the store lets one of them win, in the commit that enqueues the task (SCHEDULE).

mod cron;
mod field;
mod zone;

pub use cron::Cron;
pub use windlass_core::schedule::*;
pub use zone::Zone;
