//! Waiting longer after each failure, never in step with others.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

/// The first wait. A restarted broker needs seconds; a closed channel is open again at once.
const FIRST: Duration = Duration::from_millis(100);
/// The longest wait: how late a consumer may be back after its broker, besides the spread.
const LONGEST: Duration = Duration::from_secs(5);
/// A session that lasted this long starts the count anew.
const CALM: Duration = Duration::from_secs(30);

/// Doubles from a tenth of a second to five seconds; each wait is spread by up to a quarter either way.
#[derive(Debug, Default)]
pub struct Backoff {
    failures: u32,
}

impl Backoff {
    /// The wait after a session that lasted so long.
    pub fn after(&mut self, lasted: Duration) -> Duration {
        if lasted >= CALM {
            self.failures = 0;
        }
        let wait = FIRST.saturating_mul(1 << self.failures.min(16)).min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        let draw = RandomState::new().hash_one(self.failures) % 501;
        wait * (750 + draw as u32) / 1000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_the_longest_and_start_over_after_a_calm_time() {
        let mut backoff = Backoff::default();
        let waits: Vec<_> = (0..10).map(|_| backoff.after(Duration::ZERO)).collect();
        assert!(waits.iter().all(|wait| *wait >= FIRST * 3 / 4 && *wait <= LONGEST * 5 / 4), "{waits:?}");
        assert!(waits.last() > waits.first(), "{waits:?}");
        assert!(backoff.after(CALM) <= FIRST * 5 / 4);
    }
}
