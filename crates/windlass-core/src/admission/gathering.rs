//! While only a few slots are free, the worker waits a moment for more of them, so that one claim fills
//! several.

use std::time::Duration;

use super::SLOTS_MIN;

/// The share of slots, one in `SHARE`, that the worker waits for.
const SHARE: u32 = 10;
/// The longest time that the worker keeps a free slot empty to make the next claim larger.
pub const GATHER_MAX: Duration = Duration::from_millis(5);
/// The longest wait for one more slot. Without this limit, tasks that started together drift apart: the last
/// slots wait for slots that do not come free soon, and each round ends later than the one before.
pub const GATHER_QUIET: Duration = Duration::from_millis(1);

/// Remembers since when slots are free.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gathering {
    since: Option<Duration>,
    /// How many slots were free at the last call, and since when the number is the same.
    last: (u32, Duration),
}

impl Gathering {
    /// How much longer the worker waits for more free slots. It waits while fewer than a tenth of the allowed
    /// slots are free, at most [`GATHER_MAX`] after the first slot came free and [`GATHER_QUIET`] after the
    /// last. `None`: claim now, if a slot is free.
    pub fn left(&mut self, allowed: u32, free: u32, now: Duration) -> Option<Duration> {
        if free == 0 {
            *self = Self::default();
            return None;
        }
        let since = *self.since.get_or_insert(now);
        if self.last.0 != free {
            self.last = (free, now);
        }
        let is_short = allowed >= SLOTS_MIN && free.saturating_mul(SHARE) < allowed;
        let until = (since + GATHER_MAX).min(self.last.1 + GATHER_QUIET);
        until.checked_sub(now).filter(|left| is_short && !left.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    #[test]
    fn few_free_slots_wait_for_others() {
        for (allowed, free, expected) in [
            (100, 0, None),
            (100, 9, Some(GATHER_QUIET)),
            (100, 10, None),
            (100, 100, None),
            (19, 1, Some(GATHER_QUIET)),
            (10, 1, None),
            (9, 0, None),
            (1, 1, None),
        ] {
            assert_eq!(Gathering::default().left(allowed, free, us(7)), expected, "{free} of {allowed}");
        }
    }

    /// Calls `left` with 100 slots. Each entry: the time, how many slots are free, the expected wait.
    fn check(looks: &[(u64, u32, Option<u64>)]) {
        let mut gathering = Gathering::default();
        for (at, free, left) in looks {
            assert_eq!(gathering.left(100, *free, us(*at)), left.map(us), "{free} free at {at} in {looks:?}");
        }
    }

    #[test]
    fn the_wait_ends_five_milliseconds_after_the_first_free_slot() {
        check(&[
            (0, 1, Some(1_000)),
            (900, 2, Some(1_000)),
            (1_800, 3, Some(1_000)),
            (2_700, 4, Some(1_000)),
            (3_600, 5, Some(1_000)),
            (4_500, 6, Some(500)),
            (5_000, 6, None),
            (5_001, 7, None),
        ]);
        check(&[(0, 1, Some(1_000)), (900, 9, Some(1_000)), (901, 10, None)]);
    }

    #[test]
    fn the_wait_ends_one_millisecond_after_the_last_free_slot() {
        check(&[(0, 3, Some(1_000)), (400, 3, Some(600)), (1_000, 3, None), (60_000, 3, None)]);
    }

    #[test]
    fn the_wait_starts_again_after_no_slot_was_free() {
        check(&[(0, 3, Some(1_000)), (1_000, 3, None), (1_100, 0, None), (9_000, 3, Some(1_000))]);
    }
}
