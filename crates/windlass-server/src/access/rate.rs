//! How often one caller may call: a bucket that holds a second's worth of calls and fills steadily.

use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;

/// Most callers that are counted at once. A caller that has made no call for a second needs no bucket.
const CALLERS_MAX: usize = 10_000;

/// A bucket; full at first.
#[derive(Debug, Default)]
pub(super) struct Bucket {
    /// Calls taken and not yet refilled.
    taken: f64,
    at: Option<Instant>,
}

impl Bucket {
    /// Takes one call, or says how long it is until there is one.
    pub(super) fn take(&mut self, now: Instant, rate_per_s: u32) -> Result<(), Duration> {
        let (rate, before) = (f64::from(rate_per_s), self.at.replace(now));
        let idle = before.map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        self.taken = (self.taken - idle.as_secs_f64() * rate).max(0.0);
        if self.taken + 1.0 > rate {
            return Err(Duration::from_secs_f64((self.taken + 1.0 - rate) / rate));
        }
        self.taken += 1.0;
        Ok(())
    }

    /// Puts back the last call that was taken.
    pub(super) fn give_back(&mut self) {
        self.taken = (self.taken - 1.0).max(0.0);
    }
}

/// A bucket for each caller.
#[derive(Debug, Default)]
pub(super) struct Rates {
    buckets: HashMap<String, Bucket>,
}

impl Rates {
    /// Whether a caller may call now.
    pub(super) fn take(&mut self, caller: &str, now: Instant, rate_per_s: u32) -> bool {
        if let Some(bucket) = self.buckets.get_mut(caller) {
            return bucket.take(now, rate_per_s).is_ok();
        }
        if self.buckets.len() >= CALLERS_MAX {
            let second = Duration::from_secs(1);
            self.buckets
                .retain(|_, bucket| bucket.at.is_some_and(|at| now.saturating_duration_since(at) < second));
        }
        if self.buckets.len() >= CALLERS_MAX {
            // Too many callers in one second: refuse new ones for a moment rather than stop counting.
            return false;
        }
        self.buckets.entry(caller.to_owned()).or_default().take(now, rate_per_s).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_bucket_holds_one_seconds_worth_and_fills_steadily() {
        let (mut rates, start) = (Rates::default(), Instant::now());
        let taken = |rates: &mut Rates, who: &str, at: Duration| {
            (0..100).filter(|_| rates.take(who, start + at, 10)).count()
        };
        assert_eq!(taken(&mut rates, "a", Duration::ZERO), 10);
        assert_eq!(taken(&mut rates, "b", Duration::ZERO), 10, "another caller has another bucket");
        assert_eq!(taken(&mut rates, "a", Duration::from_millis(500)), 5);
        assert_eq!(taken(&mut rates, "a", Duration::from_hours(1)), 10);
        assert_eq!(taken(&mut rates, "a", Duration::ZERO), 0, "a clock that stands still fills nothing");
    }

    #[tokio::test(start_paused = true)]
    async fn callers_are_bounded_and_idle_ones_make_room() {
        let (mut rates, start) = (Rates::default(), Instant::now());
        for n in 0..CALLERS_MAX {
            assert!(rates.take(&n.to_string(), start, 1));
        }
        assert!(!rates.take("more", start, 1));
        assert!(rates.take("more", start + Duration::from_secs(1), 1));
        assert_eq!(rates.buckets.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_given_back_can_be_taken_again() {
        let (mut bucket, now) = (Bucket::default(), Instant::now());
        assert_eq!(bucket.take(now, 1), Ok(()));
        assert_eq!(bucket.take(now, 1), Err(Duration::from_secs(1)));
        bucket.give_back();
        assert_eq!(bucket.take(now, 1), Ok(()));
    }
}
