//! The p99 of the run times of a kind over the last seconds, from a histogram that costs one addition per
//! task.

use std::{
    sync::atomic::{AtomicU32, AtomicUsize, Ordering},
    time::Duration,
};

/// Buckets between a time and twice that time: a result is at most an eighth too high.
const PER_DOUBLING: u32 = 8;
/// Doublings from a microsecond: the last bucket holds everything above 19 hours.
const DOUBLINGS: u32 = 36;
const BUCKETS: usize = (PER_DOUBLING * DOUBLINGS) as usize;
/// Windows that are evaluated together; each turn drops the oldest.
const WINDOWS: usize = 5;
/// How long one window lasts.
pub(super) const WINDOW: Duration = Duration::from_secs(2);
/// With fewer ends the p99 has no meaning.
const ENDS_MIN: u32 = 10;

/// Run times of tasks, in windows.
pub(super) struct Latency {
    windows: [Window; WINDOWS],
    current: AtomicUsize,
}

struct Window([AtomicU32; BUCKETS]);

impl Latency {
    pub(super) fn new() -> Self {
        let window = |_| Window(std::array::from_fn(|_| AtomicU32::new(0)));
        Self { windows: std::array::from_fn(window), current: AtomicUsize::new(0) }
    }

    /// Records the end of a task. An end at the border of two windows is counted in one of them.
    pub(super) fn note(&self, took: Duration) {
        let window = self.windows.get(self.current.load(Ordering::Relaxed) % WINDOWS);
        if let Some(bucket) = window.and_then(|window| window.0.get(bucket(took))) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Starts the next window and drops the oldest.
    pub(super) fn turn(&self) {
        let next = (self.current.load(Ordering::Relaxed) + 1) % WINDOWS;
        if let Some(window) = self.windows.get(next) {
            window.0.iter().for_each(|bucket| bucket.store(0, Ordering::Relaxed));
        }
        self.current.store(next, Ordering::Relaxed);
    }

    /// The time that 99 of 100 tasks did not exceed; `None` if too few ended.
    pub(super) fn p99(&self) -> Option<Duration> {
        let count = |place: usize| -> u32 {
            let of_window =
                |window: &Window| window.0.get(place).map_or(0, |bucket| bucket.load(Ordering::Relaxed));
            self.windows.iter().map(of_window).sum()
        };
        let counts: Vec<u32> = (0..BUCKETS).map(count).collect();
        let total: u32 = counts.iter().sum();
        if total < ENDS_MIN {
            return None;
        }
        let mut above = total - (u64::from(total) * 99).div_ceil(100) as u32;
        for (place, n) in counts.iter().enumerate().rev() {
            if *n > above {
                return Some(upper_edge(place));
            }
            above -= n;
        }
        None
    }
}

fn bucket(took: Duration) -> usize {
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).max(1);
    let doubling = micros.ilog2();
    // The three bits below the highest give the eighth.
    let eighth = if doubling >= 3 { (micros >> (doubling - 3)) & 7 } else { (micros << (3 - doubling)) & 7 };
    ((doubling * PER_DOUBLING) as usize + eighth as usize).min(BUCKETS - 1)
}

/// The end of a bucket.
fn upper_edge(place: usize) -> Duration {
    let (doubling, eighth) = (place as u32 / PER_DOUBLING, place as u32 % PER_DOUBLING);
    Duration::from_secs_f64(2_f64.powi(doubling as i32) * f64::from(PER_DOUBLING + eighth + 1) / 8.0 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_at_most_an_eighth_wide() {
        for micros in [1_u64, 2, 3, 7, 8, 9, 100, 999, 1_000, 12_345, 1_000_000, 60_000_000] {
            let took = Duration::from_micros(micros);
            let edge = upper_edge(bucket(took));
            assert!(
                edge >= took && edge.as_secs_f64() <= took.as_secs_f64() * 1.126 + 1.2e-6,
                "{took:?} {edge:?}"
            );
        }
        assert_eq!(bucket(Duration::ZERO), 0);
        assert_eq!(bucket(Duration::MAX), BUCKETS - 1);
    }

    #[test]
    fn one_slow_task_in_a_hundred_is_not_the_p99_and_two_are() {
        let latency = Latency::new();
        assert_eq!(latency.p99(), None);
        let (fast, slow) = (Duration::from_millis(10), Duration::from_secs(1));
        (0..99).for_each(|_| latency.note(fast));
        latency.note(slow);
        assert!(latency.p99().unwrap() < 2 * fast);
        latency.note(slow);
        assert!(latency.p99().unwrap() >= slow);
    }

    #[test]
    fn the_p99_ignores_old_windows_and_few_ends() {
        let latency = Latency::new();
        (0..9).for_each(|_| latency.note(Duration::from_secs(1)));
        assert_eq!(latency.p99(), None);
        latency.note(Duration::from_secs(1));
        for _ in 0..WINDOWS - 1 {
            latency.turn();
            assert!(latency.p99().is_some());
        }
        latency.turn();
        assert_eq!(latency.p99(), None);
    }
}
