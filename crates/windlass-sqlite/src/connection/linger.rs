//! A short wait for the claim that follows an enqueue.
//!
//! A hint about a new task makes an idle worker claim within the time that waking a thread takes. If the
//! writer waits that long before it commits, task and claim share one commit, and the task starts as soon as
//! it is durable. If all workers are busy or absent, no claim comes; then the writer soon stops waiting.

use std::time::Duration;

/// How long to wait: about the time of waking a sleeping thread, and less than a commit.
pub(crate) const MOMENT: Duration = Duration::from_micros(100);
/// Each useless wait in a row doubles the pause before the next try; after so many it stops growing.
const MISSES_MAX: u32 = 10;

/// Whether waiting has been useful lately.
#[derive(Debug, Default)]
pub(crate) struct Linger {
    misses: u32,
    skip: u32,
}

impl Linger {
    /// Whether to wait this time.
    pub(crate) fn is_worth_it(&mut self) -> bool {
        let is_due = self.skip == 0;
        self.skip = self.skip.saturating_sub(1);
        is_due
    }

    /// A claim came.
    pub(crate) fn came(&mut self) {
        *self = Self::default();
    }

    /// No claim came: the next tries are further and further apart.
    pub(crate) fn missed(&mut self) {
        self.misses = (self.misses + 1).min(MISSES_MAX);
        self.skip = 1 << self.misses;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn useless_waits_become_rare_until_one_succeeds() {
        let mut linger = Linger::default();
        let mut waits = 0;
        for _ in 0..10_000 {
            if linger.is_worth_it() {
                waits += 1;
                linger.missed();
            }
        }
        assert!((10..25).contains(&waits), "{waits}");
        linger.came();
        assert!(linger.is_worth_it() && linger.is_worth_it());
    }
}
