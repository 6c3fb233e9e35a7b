//! Recurring tasks: when they are due, what they enqueue, and who sees to it.
//!
//! A schedule is a row of the store with a text that only this module reads: a [`Spec`]. Every worker looks for rows whose tick
//! has come and fires them; the store lets one of them win, in the commit that enqueues the task (SCHEDULE).
//!
//! Reading order: `cron`, `every` and `zone` (when), `spec` (what and when), `plan` (what becomes of a tick), `tick` (and how
//! that is done), `duty` (who does it).

mod cron;
pub(crate) mod duty;
mod every;
mod field;
mod plan;
mod spec;
#[doc(hidden)]
pub mod tick;
mod zone;

pub use cron::Cron;
pub use plan::LATE_MAX;
pub use spec::{Missed, Spec, Unreadable};
pub use windlass_core::schedule::*;
pub use zone::Zone;
