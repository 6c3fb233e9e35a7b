//! Counts by size in fixed buckets, without a lock.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use super::names::{Kind, Metric};

/// Ticks per second: fine enough for the shortest handler, and a sum of them lasts for years of ten thousand
/// slots.
const TICKS_PER_SECOND: f64 = 1e7;
const NANOS_PER_TICK: u128 = 100;

/// Sizes, counted. An observation is two relaxed additions.
#[derive(Debug)]
pub struct Histogram {
    bounds: &'static [f64],
    /// The bounds in the unit of the sum.
    limits: Box<[u64]>,
    /// One more than there are bounds: the last is for values above all of them.
    buckets: Box<[AtomicU64]>,
    sum: AtomicU64,
    units: f64,
}

/// A reading of a histogram.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reading {
    /// Upper bounds, each with the number of values that are not greater.
    pub(super) buckets: Vec<(f64, u64)>,
    pub(super) count: u64,
    pub(super) sum: f64,
}

impl Reading {
    /// Adds a reading of a histogram with the same bounds.
    pub(super) fn add(&mut self, other: &Self) {
        for ((_, count), (_, more)) in self.buckets.iter_mut().zip(&other.buckets) {
            *count += more;
        }
        self.count += other.count;
        self.sum += other.sum;
    }
}

impl Histogram {
    /// A histogram of times with the buckets of a metric.
    pub(super) fn of_seconds(metric: &Metric) -> Self {
        Self::new(metric, TICKS_PER_SECOND)
    }

    /// A histogram of numbers with the buckets of a metric.
    pub(super) fn of_numbers(metric: &Metric) -> Self {
        Self::new(metric, 1.0)
    }

    fn new(metric: &Metric, units: f64) -> Self {
        let bounds = match metric.kind {
            Kind::Histogram(bounds) => bounds,
            Kind::Counter | Kind::Gauge => &[],
        };
        Self {
            bounds,
            limits: bounds.iter().map(|bound| (bound * units).round() as u64).collect(),
            buckets: (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect(),
            sum: AtomicU64::new(0),
            units,
        }
    }

    /// Counts a time.
    pub fn observe(&self, took: Duration) {
        self.count((took.as_nanos() / NANOS_PER_TICK) as u64, 1);
    }

    /// Counts a number.
    pub fn observe_number(&self, number: u64) {
        self.count(number, 1);
    }

    fn count(&self, size: u64, times: u64) {
        let place = self.limits.partition_point(|limit| *limit < size);
        if let Some(bucket) = self.buckets.get(place) {
            bucket.fetch_add(times, Ordering::Relaxed);
        }
        self.sum.fetch_add(size, Ordering::Relaxed);
    }

    /// The counts. The total is the sum of the buckets, so that the two never disagree.
    pub(super) fn read(&self) -> Reading {
        let mut count = 0;
        let mut buckets = Vec::with_capacity(self.bounds.len());
        for (place, bucket) in self.buckets.iter().enumerate() {
            count += bucket.load(Ordering::Relaxed);
            if let Some(bound) = self.bounds.get(place) {
                buckets.push((*bound, count));
            }
        }
        Reading { buckets, count, sum: self.sum.load(Ordering::Relaxed) as f64 / self.units }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::names;

    #[test]
    fn a_value_equal_to_a_bound_is_in_its_bucket() {
        let times = Histogram::of_seconds(&names::TASK_DURATION);
        for ms in [0, 1, 2, 3, 700_000] {
            times.observe(Duration::from_millis(ms));
        }
        let read = times.read();
        assert_eq!(read.buckets.first(), Some(&(0.001, 2)));
        assert_eq!(read.buckets.get(1), Some(&(0.002, 3)));
        assert_eq!(read.buckets.get(2), Some(&(0.005, 4)));
        assert_eq!(read.buckets.last(), Some(&(600.0, 4)));
        assert_eq!(read.count, 5);
        assert!((read.sum - 700.006).abs() < 1e-6, "{}", read.sum);
    }

    #[test]
    fn nothing_is_a_number_of_its_own() {
        let sizes = Histogram::of_numbers(&names::CLAIM_SIZE);
        for number in [0, 0, 1, 1_001] {
            sizes.observe_number(number);
        }
        let read = sizes.read();
        assert_eq!(read.buckets.first(), Some(&(0.0, 2)));
        assert_eq!(read.buckets.get(1), Some(&(1.0, 3)));
        assert_eq!((read.buckets.last(), read.count), (Some(&(1000.0, 3)), 4));
    }
}
