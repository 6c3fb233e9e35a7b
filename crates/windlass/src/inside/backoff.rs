//! Delays that grow with each failure and differ between processes.

use std::time::Duration;

use tokio::time::Instant;
use windlass_core::Error;

/// Doubles from `base` to `max`; each delay is spread by up to a quarter either way.
#[derive(Debug, Clone)]
pub struct Backoff {
    base: Duration,
    max: Duration,
    failures: u32,
    seed: u64,
}

impl Backoff {
    /// A backoff without failures. Two with the same seed give the same delays.
    pub fn new(base: Duration, max: Duration, seed: u64) -> Self {
        Self { base, max, failures: 0, seed }
    }

    /// Starts over.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    /// Number of delays since the last reset.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// The next delay.
    #[expect(clippy::should_implement_trait, reason = "delays never end, so an iterator is no use")]
    pub fn next(&mut self) -> Duration {
        let delay = self.base.saturating_mul(1 << self.failures.min(16)).min(self.max);
        self.failures = self.failures.saturating_add(1);
        self.spread(delay)
    }

    /// A delay moved by up to a quarter either way, so that two processes do not act at the same time.
    pub fn spread(&mut self, delay: Duration) -> Duration {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let place = (self.seed >> 33) as u32 % 501;
        delay * (750 + place) / 1000
    }
}

/// First pause between two tries to reach a peer.
const WAIT_MIN: Duration = Duration::from_millis(100);
const WAIT_MAX: Duration = Duration::from_secs(2);
/// How often a continuing wait is logged.
const SAY_EVERY: Duration = Duration::from_secs(30);

/// Waits for a peer that cannot be reached yet, and logs that once in a while.
#[derive(Debug)]
pub struct Waiting {
    backoff: Backoff,
    since: Instant,
    said_at: Option<Instant>,
}

impl Waiting {
    /// Starts a wait. Two with the same seed wait equally long.
    pub fn new(seed: u64) -> Self {
        Self { backoff: Backoff::new(WAIT_MIN, WAIT_MAX, seed), since: Instant::now(), said_at: None }
    }

    /// Waits before the next try. The first time and every half minute it logs `what` and why.
    pub async fn pause(&mut self, why: &Error, what: &str) {
        if self.said_at.is_none_or(|at| at.elapsed() >= SAY_EVERY) {
            self.said_at = Some(Instant::now());
            tracing::warn!(error = %why, waited_s = self.since.elapsed().as_secs(), "{what}");
        }
        tokio::time::sleep(self.backoff.next()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_to_the_cap_and_start_over_after_a_success() {
        let second = Duration::from_secs(1);
        let mut backoff = Backoff::new(second, 10 * second, 7);
        let delays: Vec<_> = (0..8).map(|_| backoff.next()).collect();
        assert!(delays[0] < delays[2] && delays[7] <= 13 * second, "{delays:?}");
        assert!(delays.iter().all(|delay| *delay >= second * 3 / 4));
        backoff.reset();
        assert!(backoff.next() <= second * 5 / 4);
    }
}
