//! Pseudo-random numbers from a seed.

use std::{ops::Range, time::Duration};

/// A pseudo-random sequence; the same seed gives the same sequence (`SplitMix64`).
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// The sequence of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// One of the first `n` numbers.
    pub fn below(&mut self, n: u64) -> u64 {
        self.roll() % n.max(1)
    }

    /// A time within bounds.
    pub fn time(&mut self, ms: Range<u64>) -> Duration {
        Duration::from_millis(ms.start + self.below(ms.end - ms.start))
    }
}
