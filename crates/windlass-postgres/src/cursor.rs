//! Where in each ready line the last claim stopped.
//!
//! A claim that starts at the head of a line walks over the dead entries of everything that was claimed before; while
//! somebody holds an old snapshot those cannot be cleaned up, and there may be hundreds of thousands. So claims start
//! where the last one stopped. What appears behind that place (a transaction that drew its number early and committed
//! late, a row that somebody else had locked) is found in two ways: a claim that follows a short one starts a little
//! further back, and once in a while one starts at the head. While there is plenty in a line, rows that bear the mark of a lock are
//! passed over like those that are locked, and found in the same ways. Where such a claim brings all that was asked for there may be more
//! behind the place, and the next one goes on from where it ended.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use windlass_core::LaneId;

/// How far back, in time, a claim starts that follows a short one.
const LATE_COMMIT: Duration = Duration::from_millis(200);
/// How often a line is read from its head, when there is little to claim from it.
pub(crate) const FULL_SCAN_EVERY: Duration = Duration::from_secs(1);
/// Claims between two such reads while every claim is full: under a held horizon each of them walks over everything that
/// was ever claimed, and must stay the exception.
const CLAIMS_BETWEEN_SCANS: u32 = 250;
/// A busy line is read from its head this often, however few claims there were.
const FULL_SCAN_AT_LAST: Duration = Duration::from_secs(10);
/// Priorities of a lane that have a place of their own; with more the lane is read from its head.
const PRIORITIES_MAX: usize = 8;

/// The stretches of a claim, as arrays.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Stretches {
    pub lanes: Vec<i32>,
    pub highs: Vec<i32>,
    pub lows: Vec<i32>,
    pub afters: Vec<i64>,
    /// One line, whose last claim was full, from where that stopped: what anybody has locked can be passed over. Not with several lanes,
    /// because there the short way itself locks more than it takes.
    pub are_deep: bool,
}

impl Stretches {
    fn push(&mut self, lane: i32, high: i32, low: i32, after: i64) {
        self.lanes.push(lane);
        self.highs.push(high);
        self.lows.push(low);
        self.afters.push(after);
    }
}

/// The places of all lanes.
#[derive(Debug, Default)]
pub(crate) struct Cursors {
    lanes: HashMap<i32, Line>,
}

#[derive(Debug, Default)]
struct Line {
    /// By priority.
    places: BTreeMap<i32, Place>,
    last_full_scan: Option<Duration>,
    claims_since: u32,
    was_short: bool,
    /// The last claim was from this line alone and brought all that was asked for.
    is_deep: bool,
    /// The claim that is on its way started behind the place.
    is_behind: bool,
    /// How far it came in the lowest priority that it took from; of the higher ones it has left nothing.
    came_to: Option<(i32, i64)>,
}

impl Line {
    /// Whether the next claim starts at the head.
    fn is_scan_due(&self, now: Duration) -> bool {
        let Some(last) = self.last_full_scan else { return true };
        let since = now.saturating_sub(last);
        let is_cheap = self.was_short || self.claims_since >= CLAIMS_BETWEEN_SCANS;
        self.places.len() > PRIORITIES_MAX
            || since >= FULL_SCAN_AT_LAST
            || (since >= FULL_SCAN_EVERY && is_cheap)
    }

    fn took(&mut self, priority: i32, ready_seq: i64, now: Duration) {
        self.places.entry(priority).or_default().advance(ready_seq, now);
        let (lowest, furthest) = self.came_to.unwrap_or((priority, ready_seq));
        self.came_to = match priority.cmp(&lowest) {
            Ordering::Less => Some((priority, ready_seq)),
            Ordering::Equal => Some((priority, furthest.max(ready_seq))),
            Ordering::Greater => Some((lowest, furthest)),
        };
    }

    /// A claim ended. If it started behind the place and brought all that was asked for, there may be more where it ended; and what lies
    /// behind in lower priorities it did not come to, unless there were other lanes.
    fn ended(&mut self, was_short: bool, is_alone: bool) {
        let came_to = self.came_to.take().filter(|_| !was_short);
        for (priority, place) in &mut self.places {
            place.back = match came_to {
                Some((lowest, to)) if lowest == *priority => {
                    Some(to).filter(|to| self.is_behind && *to < place.now)
                }
                Some((lowest, _)) if *priority < lowest && is_alone => place.back,
                _ => None,
            };
        }
        self.was_short = was_short;
    }

    fn has_more_behind(&self) -> bool {
        self.places.values().any(|place| place.back.is_some())
    }
}

/// How far a line of one priority was claimed, now and a while ago.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    now: i64,
    /// What it was when `since` began; nothing before it is missed by a claim that starts at `before`.
    at_since: i64,
    before: i64,
    since: Duration,
    /// Where the next claim starts instead: the last one found so much behind the place that it did not come back to it.
    back: Option<i64>,
}

impl Place {
    fn advance(&mut self, to: i64, now: Duration) {
        if now.saturating_sub(self.since) >= LATE_COMMIT {
            (self.before, self.at_since, self.since) = (self.at_since, self.now, now);
        }
        self.now = self.now.max(to);
    }
}

impl Cursors {
    /// Where a claim over these lanes starts, highest priority of each lane first.
    pub(crate) fn stretches(&mut self, lanes: &[LaneId], now: Duration) -> Stretches {
        let mut stretches = Stretches { are_deep: lanes.len() == 1, ..Stretches::default() };
        for lane in lanes {
            let number = lane.0 as i32;
            let line = self.lanes.entry(number).or_default();
            line.claims_since = line.claims_since.saturating_add(1);
            stretches.are_deep &= line.is_deep && !line.places.is_empty() && !line.has_more_behind();
            let is_from_head = line.is_scan_due(now);
            line.is_behind = is_from_head || line.was_short || line.has_more_behind();
            line.came_to = None;
            if is_from_head {
                stretches.are_deep = false;
                (line.last_full_scan, line.claims_since) = (Some(now), 0);
                stretches.push(number, i32::MAX, i32::MIN, -1);
                continue;
            }
            let mut high = Some(i32::MAX);
            for (priority, place) in line.places.iter().rev() {
                if let Some(top) = high.filter(|top| top > priority) {
                    stretches.push(number, top, priority + 1, -1);
                }
                let usual = if line.was_short { place.before } else { place.now };
                stretches.push(number, *priority, *priority, place.back.unwrap_or(usual));
                high = priority.checked_sub(1);
            }
            if let Some(top) = high {
                stretches.push(number, top, i32::MIN, -1);
            }
        }
        stretches
    }

    /// A claim took a task from here.
    pub(crate) fn took(&mut self, lane: i32, priority: i32, ready_seq: i64, now: Duration) {
        self.lanes.entry(lane).or_default().took(priority, ready_seq, now);
    }

    /// A claim over these lanes ended, with less than it asked for or not.
    pub(crate) fn ended(&mut self, lanes: &[LaneId], was_short: bool) {
        for lane in lanes {
            if let Some(line) = self.lanes.get_mut(&(lane.0 as i32)) {
                line.ended(was_short, lanes.len() == 1);
                line.is_deep = !was_short && lanes.len() == 1;
            }
        }
    }

    /// Forgets every place: the next claim starts at the heads.
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

    fn starts(cursors: &mut Cursors, now: u64) -> Vec<(i32, i32, i64)> {
        let found = cursors.stretches(&[LANE], ms(now));
        found.highs.iter().zip(&found.lows).zip(&found.afters).map(|((h, l), a)| (*h, *l, *a)).collect()
    }

    #[test]
    fn the_first_claim_starts_at_the_head_and_the_next_where_it_stopped() {
        let mut cursors = Cursors::default();
        assert_eq!(starts(&mut cursors, 0), [(i32::MAX, i32::MIN, -1)]);
        cursors.took(3, 0, 41, ms(1));
        cursors.took(3, 0, 40, ms(1));
        cursors.took(3, 7, 12, ms(1));
        assert_eq!(
            starts(&mut cursors, 2),
            [(i32::MAX, 8, -1), (7, 7, 12), (6, 1, -1), (0, 0, 41), (-1, i32::MIN, -1)],
            "other priorities are still looked at"
        );
    }

    #[test]
    fn after_a_short_claim_the_next_looks_a_little_back() {
        let mut cursors = Cursors::default();
        starts(&mut cursors, 0);
        for at in 0..10 {
            cursors.took(3, 0, i64::try_from(at).unwrap() * 10, ms(at * 100));
        }
        cursors.ended(&[LANE], false);
        assert_eq!(starts(&mut cursors, 901)[1], (0, 0, 90));
        cursors.ended(&[LANE], true);
        let back = starts(&mut cursors, 902)[1].2;
        assert!((0..=70).contains(&back), "at least 200 ms back: {back}");
    }

    #[test]
    fn what_is_locked_is_passed_over_only_in_one_line_that_gave_all_that_was_asked_for() {
        const OTHER: LaneId = LaneId(4);
        let mut cursors = Cursors::default();
        let are_deep =
            |cursors: &mut Cursors, lanes: &[LaneId], at| cursors.stretches(lanes, ms(at)).are_deep;
        assert!(!are_deep(&mut cursors, &[LANE], 0), "from the head");
        assert!(!are_deep(&mut cursors, &[OTHER], 0), "from the head");
        cursors.ended(&[LANE], false);
        assert!(!are_deep(&mut cursors, &[LANE], 1), "nobody knows where");
        for lane in [LANE, OTHER] {
            cursors.took(lane.0 as i32, 0, 5, ms(1));
            cursors.ended(&[lane], false);
            assert!(are_deep(&mut cursors, &[lane], 2));
        }
        assert!(!are_deep(&mut cursors, &[LANE, OTHER], 2), "two lines");
        cursors.ended(&[LANE, OTHER], false);
        assert!(!are_deep(&mut cursors, &[LANE], 2), "nobody knows which of them gave all");
        cursors.ended(&[LANE], true);
        assert!(!are_deep(&mut cursors, &[LANE], 2), "after a short claim");
        cursors.ended(&[LANE], false);
        assert!(are_deep(&mut cursors, &[LANE], 9_999));
        assert!(!are_deep(&mut cursors, &[LANE], 10_000), "from the head at last");
    }

    #[test]
    fn once_in_a_while_a_line_is_read_from_its_head() {
        let mut cursors = Cursors::default();
        starts(&mut cursors, 0);
        cursors.took(3, 0, 5, ms(1));
        cursors.ended(&[LANE], true);
        assert_eq!(starts(&mut cursors, 999).len(), 3);
        assert_eq!(starts(&mut cursors, 1000), [(i32::MAX, i32::MIN, -1)]);
        assert_eq!(starts(&mut cursors, 1001).len(), 3);
        cursors.forget();
        assert_eq!(starts(&mut cursors, 1002), [(i32::MAX, i32::MIN, -1)]);
    }

    /// A line of two priorities whose last claim stopped at 800 and 900, when one from the head is due at 1 s.
    fn far_ahead() -> Cursors {
        let mut cursors = Cursors::default();
        starts(&mut cursors, 0);
        cursors.took(3, 7, 800, ms(1));
        cursors.took(3, 0, 900, ms(1));
        cursors.ended(&[LANE], true);
        assert_eq!(starts(&mut cursors, 1_000), [(i32::MAX, i32::MIN, -1)]);
        cursors
    }

    /// Where the next claim starts in priorities 7 and 0.
    fn places(cursors: &mut Cursors, now: u64) -> (i64, i64) {
        let found = starts(cursors, now);
        (found[1].2, found[3].2)
    }

    #[test]
    fn what_a_full_claim_from_the_head_leaves_behind_is_claimed_next() {
        let mut cursors = far_ahead();
        cursors.took(3, 0, 50, ms(1_001));
        cursors.ended(&[LANE], false);
        assert!(!cursors.stretches(&[LANE], ms(1_002)).are_deep, "every lock is tried there");
        assert_eq!(places(&mut cursors, 1_002), (800, 50));
        cursors.took(3, 0, 60, ms(1_003));
        cursors.ended(&[LANE], false);
        assert_eq!(places(&mut cursors, 1_004), (800, 60), "and so on");
        cursors.took(3, 7, 810, ms(1_004));
        cursors.ended(&[LANE], false);
        assert_eq!(places(&mut cursors, 1_004), (810, 60), "also after others that came first");
        cursors.took(3, 0, 900, ms(1_005));
        cursors.ended(&[LANE], false);
        assert!(cursors.stretches(&[LANE], ms(1_006)).are_deep);
        assert_eq!(places(&mut cursors, 1_006), (810, 900), "until it is back at the place");
    }

    #[test]
    fn nobody_goes_back_to_where_a_claim_has_left_nothing() {
        let mut cursors = far_ahead();
        cursors.took(3, 7, 50, ms(1_001));
        cursors.took(3, 0, 950, ms(1_001));
        cursors.ended(&[LANE], false);
        assert_eq!(
            places(&mut cursors, 1_002),
            (800, 950),
            "it came to the next priority, and further than before"
        );
        let mut cursors = far_ahead();
        cursors.took(3, 0, 50, ms(1_001));
        cursors.ended(&[LANE], true);
        cursors.ended(&[LANE], false);
        assert_eq!(places(&mut cursors, 1_002), (800, 900), "it was short");
    }

    /// Of several lanes one may have been read to its end: it is looked at once more, not with every claim.
    #[test]
    fn a_lane_that_gave_nothing_more_is_left_where_it_was() {
        const OTHER: LaneId = LaneId(4);
        let mut cursors = far_ahead();
        cursors.took(3, 0, 50, ms(1_001));
        cursors.took(4, 0, 7, ms(1_001));
        cursors.ended(&[LANE, OTHER], false);
        let of_lane = |cursors: &mut Cursors, now| cursors.stretches(&[LANE, OTHER], ms(now)).afters[3];
        assert_eq!(of_lane(&mut cursors, 1_002), 50);
        cursors.took(4, 0, 8, ms(1_003));
        cursors.ended(&[LANE, OTHER], false);
        assert_eq!(of_lane(&mut cursors, 1_004), 900);
    }

    #[test]
    fn a_busy_line_is_read_from_its_head_only_every_so_many_claims() {
        let mut cursors = Cursors::default();
        starts(&mut cursors, 0);
        cursors.took(3, 0, 5, ms(1));
        cursors.ended(&[LANE], false);
        let heads = |cursors: &mut Cursors, claims: u32, at| {
            (0..claims).filter(|_| starts(cursors, at).len() == 1).count()
        };
        assert_eq!(heads(&mut cursors, CLAIMS_BETWEEN_SCANS - 1, 5_000), 0);
        assert_eq!(heads(&mut cursors, 1, 5_000), 1);
        assert_eq!(heads(&mut cursors, 10, 14_999), 0);
        assert_eq!(heads(&mut cursors, 10, 15_000), 1, "at last even with few claims");
    }

    #[test]
    fn the_outermost_priorities_leave_no_stretch_beyond_them() {
        let mut cursors = Cursors::default();
        starts(&mut cursors, 0);
        cursors.took(3, i32::MAX, 5, ms(1));
        cursors.took(3, i32::MIN, 6, ms(1));
        assert_eq!(
            starts(&mut cursors, 2),
            [(i32::MAX, i32::MAX, 5), (i32::MAX - 1, i32::MIN + 1, -1), (i32::MIN, i32::MIN, 6)]
        );
    }
}
