//! Recurring tasks: when they are due, what they enqueue, and which process fires them.
//!
//! A schedule is a row of the store with a text that only this module reads: a [`Spec`]. Every worker looks
//! for due rows and fires them; the store accepts the first, in the commit that enqueues the task (SCHEDULE).
//!
//! Reading order: `cron`, `every` and `zone` (when), `spec` (what and when), `plan` (what to do about a
//! tick), `tick` (how to do it), `duty` (the loop of a worker), `passed` (what a person is told).

mod cron;
pub(crate) mod duty;
mod every;
mod field;
pub(crate) mod passed;
mod plan;
mod spec;
pub(crate) mod tick;
mod zone;

pub use cron::Cron;
pub use passed::Passed;
pub use plan::LATE_MAX;
pub use spec::{Missed, Spec, Unreadable};
#[doc(inline)]
pub use windlass_core::schedule::{DueSchedules, Fire, ScheduleRow};
pub use zone::Zone;
