//! Metrics: what a process tells a monitor about itself, in Prometheus' text format.
//!
//! ```text
//! hot path ─► meters (relaxed atomics) ─┐
//! worker's own counters ────────────────┼─► exposition ─► text ─► /metrics
//! consumers of a broker ────────────────┤
//! store, a look every few seconds ──────┘   (sample)
//! ```
//!
//! Every name stands in [`names`]. A scrape reads memory and `/proc` only: what has to be asked of the store is asked beforehand,
//! in the background, with a bound. Names that tasks bring along (jobs, queues, kinds) become at most a hundred series each;
//! the rest is summed as `_other`. No payload and no address is ever a label.

mod ages;
mod audit;
mod consumers;
mod exposition;
mod figures;
mod histogram;
mod jobs;
mod meters;
pub mod names;
mod process;
mod sample;
mod series;
mod text;
mod times;

pub use consumers::{ConsumerReading, ConsumerSource, ConsumerTimes};
pub use exposition::{CONTENT_TYPE, Exposition, Options};
pub use histogram::Histogram;
pub(crate) use meters::{Duty, KindMeter, Meters};
pub use times::{Ended, OutcomeTimes};

/// The label under which everything beyond the bound of a family is summed.
pub const OTHER: &str = "_other";
/// Most names of one sort that have series of their own.
pub const SERIES_MAX: usize = 100;
