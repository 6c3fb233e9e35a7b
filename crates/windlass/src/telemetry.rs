//! Metrics: what a process reports to a monitor, in Prometheus' text format.
//!
//! ```text
//! hot path ─► meters (relaxed atomics) ─┐
//! worker's own counters ────────────────┼─► exposition ─► text ─► /metrics
//! consumers of a broker ────────────────┤
//! store, queried every few seconds ─────┘   (sample)
//! ```
//!
//! [`names`] lists every metric. A scrape reads only memory and `/proc`: figures of the store are queried
//! beforehand, in the background, with a bound. Names that tasks bring (jobs, queues, kinds) get at most a
//! hundred series each; the rest is summed as `_other`. No payload and no address is ever a label.

pub(crate) mod ages;
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
