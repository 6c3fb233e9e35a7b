//! How long a task has been ready, from its place in the ready line.
//!
//! No store records when a task became ready. Places rise with time. This module regularly records the last
//! place given out, and so can later tell the age of a place, with an error of one interval. The result is
//! never too high.

use std::{collections::VecDeque, time::Duration};

use tokio::time::Instant;

/// Most marks. Beyond that every second mark of the older half is dropped: old ages need no precision.
const MARKS_MAX: usize = 1_000;

/// The last place given out at each recorded time.
#[derive(Debug, Default)]
pub struct Ages {
    marks: VecDeque<(i64, Instant)>,
}

impl Ages {
    /// Records that places up to `last` have been given out by now.
    pub fn note(&mut self, last: i64, now: Instant) {
        if self.marks.back().is_none_or(|(known, _)| *known < last) {
            self.marks.push_back((last, now));
        }
        if self.marks.len() > MARKS_MAX {
            let mut place = 0;
            self.marks.retain(|_| {
                place += 1;
                place > MARKS_MAX / 2 || place % 2 == 1
            });
        }
    }

    /// The least time since a place was given out.
    pub fn age(&self, place: i64, now: Instant) -> Duration {
        let first = self.marks.partition_point(|(known, _)| *known < place);
        self.marks.get(first).map_or(Duration::ZERO, |(_, at)| now.saturating_duration_since(*at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_as_old_as_the_first_note_that_knew_it() {
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let mut ages = Ages::default();
        assert_eq!(ages.age(1, start), Duration::ZERO);
        ages.note(10, start);
        ages.note(10, start + second);
        ages.note(20, start + 2 * second);
        let now = start + 10 * second;
        assert_eq!(ages.age(3, now), 10 * second, "from before the first note: since it, at least");
        assert_eq!(ages.age(10, now), 10 * second);
        assert_eq!(ages.age(11, now), 8 * second);
        assert_eq!(ages.age(21, now), Duration::ZERO);
    }

    #[test]
    fn marks_are_bounded_and_an_age_is_never_too_high() {
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let mut ages = Ages::default();
        for n in 0..5_000_u32 {
            ages.note(i64::from(n), start + second * n);
        }
        assert!(ages.marks.len() <= MARKS_MAX);
        let now = start + second * 5_000;
        for n in (0..5_000_u32).step_by(97) {
            assert!(ages.age(i64::from(n), now) <= second * (5_000 - n));
        }
        assert_eq!(ages.age(0, now), second * 5_000);
    }
}
