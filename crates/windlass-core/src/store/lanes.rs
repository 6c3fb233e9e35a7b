//! How many lanes a store has, and when an empty one is retired.
//!
//! Names come with tasks, so a caller who may enqueue can make lanes without end. A store bounds the lanes
//! in use. It retires lanes that have stood empty, so that others can be made. A retired lane keeps its
//! number: the next task of its names brings it back.

use std::{collections::BTreeSet, time::Duration};

use crate::{
    error::{Error, Result},
    id::LaneId,
    rules::Rules,
};

/// The time between two looks at the lanes. A lane is retired when a look finds it as empty as the look
/// before.
pub const LOOK_EVERY: Duration = Duration::from_secs(10);
/// For each lane in use a store keeps at most this many rows of lanes: its history names retired ones too.
const ROWS_PER_LANE: usize = 10;
/// A store keeps this part of its lanes in use although they are empty: operators see their idle queues.
const KEPT_SHARE: usize = 10;

/// How many lanes a store has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneCounts {
    /// Those that are not retired.
    pub in_use: usize,
    /// Those that were ever made.
    pub ever: usize,
}

impl LaneCounts {
    /// Refuses new lanes that are over a bound. A lane that was made before is never refused.
    ///
    /// # Errors
    /// The text says which bound it is, and what the caller can do.
    pub fn check(self, rules: &Rules, new: usize) -> Result<()> {
        let Rules { lanes_max, .. } = *rules;
        if new > 0 && self.in_use + new > lanes_max {
            return Err(Error::invalid(format!(
                "a store has at most {lanes_max} pairs of queue and kind in use; use fewer queue names, or try again when others have been empty for a minute"
            )));
        }
        let ever_max = rules.lanes_ever_max();
        if new > 0 && self.ever + new > ever_max {
            return Err(Error::invalid(format!(
                "a store keeps at most {ever_max} pairs of queue and kind; use names that were used before"
            )));
        }
        Ok(())
    }

    /// How many empty lanes are to be retired.
    pub fn surplus(self, rules: &Rules) -> usize {
        self.in_use.saturating_sub(rules.lanes_kept())
    }
}

impl Rules {
    /// Most lanes that were ever made.
    pub fn lanes_ever_max(&self) -> usize {
        self.lanes_max.saturating_mul(ROWS_PER_LANE)
    }

    /// So many lanes stay in use although they are empty.
    pub fn lanes_kept(&self) -> usize {
        self.lanes_max / KEPT_SHARE
    }
}

/// Which lanes are retired now: those that have stood empty since the look before, the longest first, and no
/// more than the surplus. Each lane comes with the time for which it has stood empty.
pub fn retired(idle: impl IntoIterator<Item = (LaneId, Duration)>, surplus: usize) -> BTreeSet<LaneId> {
    let mut idle: Vec<_> = idle.into_iter().filter(|(_, idle_for)| *idle_for >= LOOK_EVERY).collect();
    idle.sort_unstable_by_key(|(lane, idle_for)| (std::cmp::Reverse(*idle_for), *lane));
    idle.into_iter().take(surplus).map(|(lane, _)| lane).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Rules {
        Rules { lanes_max: 20, ..Rules::default() }
    }

    fn check(in_use: usize, ever: usize, new: usize) -> Result<(), String> {
        LaneCounts { in_use, ever }.check(&rules(), new).map_err(|error| error.to_string())
    }

    #[test]
    fn new_lanes_are_refused_over_either_bound() {
        assert_eq!(check(19, 199, 1), Ok(()));
        assert!(check(20, 20, 1).unwrap_err().contains("at most 20 pairs of queue and kind in use"));
        assert!(check(19, 19, 2).unwrap_err().contains("in use"));
        assert!(check(1, 200, 1).unwrap_err().contains("at most 200 pairs"));
    }

    #[test]
    fn known_lanes_are_never_refused() {
        assert_eq!(check(150, 200, 0), Ok(()));
    }

    #[test]
    fn the_longest_empty_are_retired_and_some_are_kept() {
        let idle = [(1, 30), (2, 9), (3, 50), (4, 30), (5, 10)];
        let idle = idle.map(|(lane, s)| (LaneId(lane), Duration::from_secs(s)));
        let surplus = LaneCounts { in_use: 5, ever: 5 }.surplus(&rules());
        assert_eq!(retired(idle, surplus), BTreeSet::from([LaneId(1), LaneId(3), LaneId(4)]));
        assert_eq!(LaneCounts { in_use: 2, ever: 90 }.surplus(&rules()), 0);
    }
}
