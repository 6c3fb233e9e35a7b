//! Where claims read each ready line from.
//!
//! A claim that reads a line from its head walks over the index entries of everything that was claimed
//! before. While a session holds an old snapshot, vacuum cannot remove those, and there may be hundreds of
//! thousands. So a claim reads from where the last one stopped.
//!
//! Tasks can become ready behind that position: a transaction drew its number early and committed late, or
//! another session had locked the row. They are found in two ways. A claim that follows one with fewer tasks
//! than it asked for reads from a little further back. From time to time a claim reads from the head. If the
//! claim from the head is full, more tasks may lie between the place where it stopped and the position. So the
//! position moves back to that place, and the next claim goes on from there.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use windlass_core::LaneId;

/// How far back, in time, a claim reads if the one before got fewer tasks than it asked for.
const LATE_COMMIT: Duration = Duration::from_millis(200);
/// How often a line is read from its head after such a claim.
pub(crate) const FROM_HEAD_EVERY: Duration = Duration::from_secs(1);
/// The same while claims are full: with many dead entries such a read is slow.
const FROM_HEAD_EVERY_BUSY: Duration = Duration::from_secs(5);
/// Priorities of a lane that have a position of their own; a line with more is read from its head.
const PRIORITIES_MAX: usize = 8;

/// The ranges that a claim reads, as the arrays of its statement; the best range of a lane first.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Start {
    pub lanes: Vec<i32>,
    pub highs: Vec<i32>,
    pub lows: Vec<i32>,
    pub afters: Vec<i64>,
    /// Lanes that are read from their head.
    from_head: Vec<i32>,
}

impl Start {
    fn push(&mut self, lane: i32, high: i32, low: i32, after: i64) {
        self.lanes.push(lane);
        self.highs.push(high);
        self.lows.push(low);
        self.afters.push(after);
    }
}

/// Where a claim took a task.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taken {
    pub lane: i32,
    pub priority: i32,
    pub ready_seq: i64,
}

/// The positions of all lanes. [`ReadPositions::ended`] is the only one that changes them.
#[derive(Debug, Default)]
pub(crate) struct ReadPositions {
    lanes: HashMap<i32, ReadyLine>,
}

#[derive(Debug, Default)]
struct ReadyLine {
    /// By priority.
    positions: BTreeMap<i32, Position>,
    head_read_at: Option<Duration>,
    was_short: bool,
}

/// How far one priority of a line was read, now and a while ago.
#[derive(Debug, Clone, Copy, Default)]
struct Position {
    /// The highest number (`ready_seq`) that was taken.
    now: i64,
    /// What `now` was at the time `since`.
    at_since: i64,
    /// What `at_since` was before: at least [`LATE_COMMIT`] ago. A claim that reads from here finds every task whose
    /// transaction committed up to that much later than its number was drawn.
    before: i64,
    since: Duration,
}

impl Position {
    fn advance(&mut self, to: i64, at: Duration) {
        if at.saturating_sub(self.since) >= LATE_COMMIT {
            (self.before, self.at_since, self.since) = (self.at_since, self.now, at);
        }
        self.now = self.now.max(to);
    }

    /// A claim from the head was full, so there may be more tasks behind the position: the position moves
    /// back.
    fn move_back(&mut self, to: i64) {
        if to < self.now {
            *self = Self { now: to, at_since: to, before: to, since: self.since };
        }
    }
}

impl ReadyLine {
    fn is_head_due(&self, now: Duration) -> bool {
        let every = if self.was_short { FROM_HEAD_EVERY } else { FROM_HEAD_EVERY_BUSY };
        self.positions.len() > PRIORITIES_MAX
            || self.head_read_at.is_none_or(|last| now.saturating_sub(last) >= every)
    }
}

impl ReadPositions {
    /// Where a claim over these lanes reads.
    pub(crate) fn start(&self, lanes: &[LaneId], now: Duration) -> Start {
        let mut start = Start::default();
        for lane in lanes {
            let number = lane.0 as i32;
            let known = self.lanes.get(&number).filter(|line| !line.is_head_due(now));
            let Some(line) = known else {
                start.from_head.push(number);
                start.push(number, i32::MAX, i32::MIN, -1);
                continue;
            };
            let mut high = Some(i32::MAX);
            for (priority, position) in line.positions.iter().rev() {
                if let Some(top) = high.filter(|top| top > priority) {
                    start.push(number, top, priority + 1, -1);
                }
                let after = if line.was_short { position.before } else { position.now };
                start.push(number, *priority, *priority, after);
                high = priority.checked_sub(1);
            }
            if let Some(top) = high {
                start.push(number, top, i32::MIN, -1);
            }
        }
        start
    }

    /// A claim that read from `start` ended. `taken` are its tasks in the order in which they are ready;
    /// `is_short` says whether it got fewer than it asked for.
    pub(crate) fn ended(
        &mut self,
        start: &Start,
        taken: impl Iterator<Item = Taken>,
        is_short: bool,
        now: Duration,
    ) {
        let mut last_of: BTreeMap<(i32, i32), i64> = BTreeMap::new();
        for task in taken {
            let last = last_of.entry((task.lane, task.priority)).or_insert(task.ready_seq);
            *last = (*last).max(task.ready_seq);
        }
        for lane in &start.lanes {
            self.lanes.entry(*lane).or_default().was_short = is_short;
        }
        for lane in &start.from_head {
            let line = self.lanes.entry(*lane).or_default();
            line.head_read_at = Some(now);
            let mut of_lane = last_of.range((*lane, i32::MIN)..=(*lane, i32::MAX));
            // It may have left some of the lowest priority that it took from; it took all of the priorities
            // above.
            if let (false, Some(((_, lowest), to))) = (is_short, of_lane.next()) {
                line.positions.entry(*lowest).or_default().move_back(*to);
            }
        }
        for ((lane, priority), to) in last_of {
            self.lanes.entry(lane).or_default().positions.entry(priority).or_default().advance(to, now);
        }
    }

    /// Forgets every position: the next claim reads from the heads.
    pub(crate) fn forget(&mut self) {
        self.lanes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LANE: LaneId = LaneId(3);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// One claim over the lane: where it reads, as (high, low, after), before it takes these (priority,
    /// ready_seq).
    fn claim(
        positions: &mut ReadPositions,
        at: u64,
        taken: &[(i32, i64)],
        is_short: bool,
    ) -> Vec<(i32, i32, i64)> {
        let start = positions.start(&[LANE], ms(at));
        let tasks = taken.iter().map(|(priority, ready_seq)| Taken {
            lane: 3,
            priority: *priority,
            ready_seq: *ready_seq,
        });
        positions.ended(&start, tasks, is_short, ms(at));
        start.highs.iter().zip(&start.lows).zip(&start.afters).map(|((h, l), a)| (*h, *l, *a)).collect()
    }

    const HEAD: (i32, i32, i64) = (i32::MAX, i32::MIN, -1);

    #[test]
    fn a_claim_reads_from_where_the_last_one_stopped() {
        let mut positions = ReadPositions::default();
        assert_eq!(claim(&mut positions, 0, &[(7, 12), (0, 40), (0, 41)], false), [HEAD]);
        assert_eq!(
            claim(&mut positions, 2, &[], false),
            [(i32::MAX, 8, -1), (7, 7, 12), (6, 1, -1), (0, 0, 41), (-1, i32::MIN, -1)],
            "other priorities are read from their head"
        );
    }

    #[test]
    fn start_changes_nothing() {
        let positions = ReadPositions::default();
        assert_eq!(positions.start(&[LANE], ms(0)), positions.start(&[LANE], ms(0)));
    }

    #[test]
    fn after_a_short_claim_the_next_reads_from_further_back() {
        let mut positions = ReadPositions::default();
        for at in 0..10 {
            claim(&mut positions, at * 100, &[(0, i64::try_from(at).unwrap() * 10)], false);
        }
        assert_eq!(claim(&mut positions, 901, &[], true)[1], (0, 0, 90));
        let after = claim(&mut positions, 902, &[], true)[1].2;
        assert!((0..=70).contains(&after), "at least 200 ms back: {after}");
    }

    #[test]
    fn after_a_short_claim_the_head_is_read_every_second() {
        let mut positions = ReadPositions::default();
        claim(&mut positions, 0, &[(0, 5)], true);
        assert_eq!(claim(&mut positions, 999, &[], true).len(), 3);
        assert_eq!(claim(&mut positions, 1000, &[], true), [HEAD]);
        assert_eq!(claim(&mut positions, 1001, &[], true).len(), 3);
        positions.forget();
        assert_eq!(claim(&mut positions, 1002, &[], true), [HEAD]);
    }

    #[test]
    fn while_claims_are_full_the_head_is_read_less_often() {
        let mut positions = ReadPositions::default();
        claim(&mut positions, 0, &[(0, 5)], false);
        assert_eq!(claim(&mut positions, 4_999, &[(0, 6)], false).len(), 3);
        assert_eq!(claim(&mut positions, 5_000, &[(0, 7)], false), [HEAD]);
    }

    #[test]
    fn the_rest_of_a_full_claim_from_the_head_is_read_next() {
        let mut positions = ReadPositions::default();
        claim(&mut positions, 0, &[(7, 800), (0, 900)], true);
        assert_eq!(claim(&mut positions, 1_000, &[(0, 50)], false), [HEAD]);
        let next = claim(&mut positions, 1_001, &[(0, 60)], false);
        assert_eq!((next[1].2, next[3].2), (800, 50), "the higher priority has nothing left behind");
        assert_eq!(claim(&mut positions, 1_002, &[], false)[3].2, 60, "and so on");
    }

    #[test]
    fn a_short_claim_from_the_head_leaves_the_position() {
        let mut positions = ReadPositions::default();
        claim(&mut positions, 0, &[(0, 900)], false);
        claim(&mut positions, 5_000, &[(0, 50)], true);
        claim(&mut positions, 5_001, &[], false);
        assert_eq!(claim(&mut positions, 5_002, &[], false)[1].2, 900);
    }

    #[test]
    fn the_outermost_priorities_leave_no_range_beyond_them() {
        let mut positions = ReadPositions::default();
        claim(&mut positions, 0, &[(i32::MAX, 5), (i32::MIN, 6)], false);
        assert_eq!(
            claim(&mut positions, 1, &[], false),
            [(i32::MAX, i32::MAX, 5), (i32::MAX - 1, i32::MIN + 1, -1), (i32::MIN, i32::MIN, 6)]
        );
    }

    #[test]
    fn a_lane_with_many_priorities_is_read_from_its_head() {
        let mut positions = ReadPositions::default();
        let taken: Vec<(i32, i64)> = (0..9).map(|priority| (priority, 5)).collect();
        claim(&mut positions, 0, &taken, false);
        assert_eq!(claim(&mut positions, 1, &[], false), [HEAD]);
    }
}
