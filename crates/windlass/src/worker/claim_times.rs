//! How long claims take.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// Most times that are kept: the latest ones.
const TIMES_MAX: usize = 100_000;

/// How long claims took, empty ones included.
#[derive(Debug, Default)]
pub struct ClaimTimes(Mutex<VecDeque<Duration>>);

impl ClaimTimes {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Duration>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn note(&self, took: Duration) {
        let mut times = self.lock();
        if times.len() == TIMES_MAX {
            times.pop_front();
        }
        times.push_back(took);
    }

    /// Drops the recorded times.
    pub fn clear(&self) {
        self.lock().clear();
    }

    /// The time that 99 of 100 claims did not exceed.
    pub fn p99(&self) -> Duration {
        let mut times: Vec<Duration> = self.lock().iter().copied().collect();
        times.sort_unstable();
        let place = (times.len() * 99).div_ceil(100).saturating_sub(1);
        times.get(place).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_claim_in_a_hundred_is_not_the_p99_and_two_are() {
        let claims = ClaimTimes::default();
        let (fast, slow) = (Duration::from_millis(1), Duration::from_millis(80));
        assert_eq!(claims.p99(), Duration::ZERO);
        for _ in 0..99 {
            claims.note(fast);
        }
        claims.note(slow);
        assert_eq!(claims.p99(), fast);
        claims.note(slow);
        assert_eq!(claims.p99(), slow);
    }
}
