//! Few free slots wait for others, so that a claim is worth its way.

use std::time::Duration;

use super::SLOTS_MIN;

/// The share of slots that is waited for.
const SHARE: u32 = 10;
/// The longest that a free slot is kept empty for the sake of a larger claim.
pub const GATHER_MAX: Duration = Duration::from_millis(5);
/// For how long the next one is waited for. Where tasks started together, those that end last would else wait for nobody, and
/// end later with every round.
pub const GATHER_QUIET: Duration = Duration::from_millis(1);

/// Since when slots are free.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gathering {
    since: Option<Duration>,
    /// How many were free at the last look, and since when it is so many.
    last: (u32, Duration),
}

impl Gathering {
    /// How much longer free slots wait for others to come free: while fewer than a tenth of what may run are free, at most [`GATHER_MAX`]
    /// since the first of them was and [`GATHER_QUIET`] since the last. `None`: claim now, if any is free.
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

    /// What a row of looks at 100 slots says: when, how many are free, how much longer to wait.
    fn check(looks: &[(u64, u32, Option<u64>)]) {
        let mut gathering = Gathering::default();
        for (at, free, left) in looks {
            assert_eq!(gathering.left(100, *free, us(*at)), left.map(us), "{free} free at {at} in {looks:?}");
        }
    }

    #[test]
    fn they_wait_for_as_long_as_others_follow_soon_but_never_longer_than_five_milliseconds() {
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
    fn where_nobody_follows_nobody_is_waited_for() {
        check(&[(0, 3, Some(1_000)), (400, 3, Some(600)), (1_000, 3, None), (60_000, 3, None)]);
    }

    #[test]
    fn the_next_round_begins_anew() {
        check(&[(0, 3, Some(1_000)), (1_000, 3, None), (1_100, 0, None), (9_000, 3, Some(1_000))]);
    }
}
