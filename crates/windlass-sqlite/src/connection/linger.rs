//! Waiting a moment for the claim that an enqueue brings about.
//!
//! An idle worker that was told of a new task asks for it within the time that waking a thread takes. If the
//! writer gives it that moment before it commits, task and claim share one commit and the task starts as soon
//! as it is durable. Where workers are busy or absent nobody comes; then it soon stops waiting.

use std::time::Duration;

/// How long to wait: about what waking a sleeping thread takes, and less than a commit.
pub(crate) const MOMENT: Duration = Duration::from_micros(100);
/// After how many useless waits in a row (as a power of two) the pauses between tries stop growing.
const MISSES_MAX: u32 = 10;

/// Whether waiting has been worth it lately.
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

    /// Somebody came.
    pub(crate) fn came(&mut self) {
        *self = Self::default();
    }

    /// Nobody came: the next tries are ever further apart.
    pub(crate) fn missed(&mut self) {
        self.misses = (self.misses + 1).min(MISSES_MAX);
        self.skip = 1 << self.misses;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn useless_waits_become_rare_and_one_success_brings_them_back() {
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
