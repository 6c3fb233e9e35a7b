//! How long a host takes to answer: uniform between one and two seconds.

use std::time::Duration;

/// The shortest delay.
pub(super) const DELAY_MIN: Duration = Duration::from_secs(1);
/// How much longer the longest is.
const DELAY_SPAN: Duration = Duration::from_secs(1);
/// The span is divided into so many equal parts. In as many draws each part comes once.
const PARTS: u32 = 16;

/// Random delays of one host.
///
/// The parts of the span come in a random order, each once before any comes again; the delay lies
/// anywhere in its part. So a delay is uniform over the whole span, and yet all hosts have about the same
/// mean. If one job gets less done than another, the random delays are not the reason.
#[derive(Debug)]
pub(super) struct Dice {
    state: u64,
    /// Parts that have not been drawn in this round.
    left: Vec<u32>,
}

impl Dice {
    /// The delays of the host with this number. Every run draws others.
    pub(super) fn new(place: u64) -> Self {
        let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Self::seeded(clock.as_nanos() as u64 ^ place.rotate_left(32))
    }

    fn seeded(state: u64) -> Self {
        Self { state, left: Vec::new() }
    }

    /// The delay of one answer.
    pub(super) fn draw(&mut self) -> Duration {
        if self.left.is_empty() {
            self.left = (0..PARTS).collect();
        }
        let place = self.next() as usize % self.left.len();
        let part = f64::from(self.left.swap_remove(place));
        let within = self.next() as f64 / u64::MAX as f64;
        DELAY_MIN + DELAY_SPAN.mul_f64((part + within) / f64::from(PARTS))
    }

    /// SplitMix64: random enough for delays, and no dependency.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_1_to_2_seconds_and_use_every_part_once() {
        let mut dice = Dice::seeded(7);
        for _ in 0..100 {
            let mut parts: Vec<u32> = (0..PARTS)
                .map(|_| {
                    let beyond = dice.draw().checked_sub(DELAY_MIN).unwrap();
                    assert!(beyond <= DELAY_SPAN, "{beyond:?}");
                    ((beyond.as_secs_f64() * f64::from(PARTS)) as u32).min(PARTS - 1)
                })
                .collect();
            parts.sort_unstable();
            assert_eq!(parts, (0..PARTS).collect::<Vec<_>>());
        }
    }
}
