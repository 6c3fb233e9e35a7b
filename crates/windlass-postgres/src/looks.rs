//! Which way a claim goes: the short one, which only takes tasks, or the long one, which also looks how things stand: what is
//! due, what waits at the gates, why less came than was asked for.
//!
//! ```text
//!   a hint that names one task ──► that task ──► brought it ──► as below
//!                                     │
//!                                     ▼ gone, or not for a claim that does not look
//!   a hint, or the last claim brought something ──► short ──► brought something ──► answer, and look with the next claim
//!                                                     │                             if the last look is a while ago
//!   the poll, or a look is owed ───────────────────► long ◄── brought nothing
//!
//!   many tasks of one lane are wanted, and the last claim brought all that was asked for
//!      ──► a look by itself, if the last one is a while ago ──► short, as above
//! ```
//! Where there is plenty the long way costs several times as much as the short one: it tries the lock of every row that somebody else
//! has locked, and its rows are kept twice. Of many workers on one line each comes so seldom that a look is due nearly every time.
//!
//! Only speed depends on what is noted here: the short way brings nothing where it does not know enough.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use windlass_core::{Timestamp, WorkerId};

/// For how long after a hint, or after a claim that brought something, tasks are expected.
const EXPECTED_FOR: Duration = Duration::from_millis(20);
/// For how long after a claim that brought all that was asked for there is thought to be more.
const PLENTY_FOR: Duration = Duration::from_secs(1);
/// Tasks of a claim from which on the long way is worth avoiding: for fewer it costs less than a look and a claim in vain.
const MANY: u32 = 50;
/// How old a look may be while claims go the short way.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// For how long the long way is taken after the short one found nothing and the long one did: a queue is paused, or a suspect
/// runs.
const IN_VAIN_FOR: Duration = Duration::from_secs(1);

/// What is known of the last claims of this process.
#[derive(Debug)]
pub(crate) struct Looks {
    state: Mutex<State>,
    /// Without it the short way is tried by every claim, and followed by a look.
    trusts_hearsay: bool,
}

/// Which way a claim goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// It only takes tasks.
    Short,
    /// It only takes tasks, after a look by itself.
    LookThenShort,
    /// It takes tasks and looks.
    Long,
}

/// What the hints since the last claim were about.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Said {
    #[default]
    Nothing,
    One(i64),
    More,
}

#[derive(Debug, Default)]
struct State {
    said: Said,
    /// The worker of the last claim, if that left nothing behind.
    sated: Option<WorkerId>,
    expected_since: Option<Instant>,
    looked_at: Option<Instant>,
    /// Somebody has looked indeed, and not only begun.
    has_looked: bool,
    in_vain_at: Option<Instant>,
    owes_look: bool,
    was_full: bool,
    next_due: Option<Timestamp>,
}

impl State {
    fn is_within(at: Option<Instant>, now: Instant, limit: Duration) -> bool {
        at.is_some_and(|at| now.saturating_duration_since(at) < limit)
    }

    fn way(&self, now: Instant, lanes: usize, n: u32) -> Way {
        let is_expected = |limit| Self::is_within(self.expected_since, now, limit);
        if Self::is_within(self.in_vain_at, now, IN_VAIN_FOR) {
            return Way::Long;
        }
        match self.was_full {
            // Their heads are compared where more is ready than one claim takes.
            true if lanes > 1 => Way::Long,
            true if n >= MANY && is_expected(PLENTY_FOR) => {
                if self.owes_look || !self.is_look_fresh(now) {
                    Way::LookThenShort
                } else {
                    Way::Short
                }
            }
            _ if is_expected(EXPECTED_FOR) && !self.owes_look => Way::Short,
            _ => Way::Long,
        }
    }

    fn is_look_fresh(&self, now: Instant) -> bool {
        Self::is_within(self.looked_at, now, LOOK_EVERY)
    }

    fn begin(&mut self, now: Instant) {
        self.expected_since = Some(now);
        // Nobody knows how much there is: several lanes are compared.
        self.was_full |= self.looked_at.is_none();
        self.looked_at.get_or_insert(now);
    }

    fn hear(&mut self, task: Option<i64>) {
        self.said = match (self.said, task) {
            (Said::Nothing, Some(task)) => Said::One(task),
            _ => Said::More,
        };
    }

    fn take_named(&mut self, worker: WorkerId) -> Option<i64> {
        match std::mem::take(&mut self.said) {
            Said::One(task) if self.sated == Some(worker) => Some(task),
            _ => None,
        }
    }

    fn took(&mut self, now: Instant, worker: WorkerId, is_full: bool) -> bool {
        self.sated = (!is_full).then_some(worker);
        self.expected_since = Some(now);
        self.was_full = is_full;
        self.owes_look = !self.is_look_fresh(now) || !(self.has_looked || is_full);
        !self.owes_look
    }

    fn looked_around(&mut self, now: Instant) {
        (self.looked_at, self.owes_look, self.has_looked) = (Some(now), false, true);
    }

    fn looked(&mut self, now: Instant, worker: WorkerId, found: bool, is_full: bool, was_in_vain: bool) {
        self.sated = (!is_full).then_some(worker);
        self.was_full = is_full;
        self.looked_around(now);
        if found {
            self.expected_since = Some(now);
            if was_in_vain {
                self.in_vain_at = Some(now);
            }
        }
    }
}

impl Looks {
    /// `trusts_hearsay`: see [`crate::Options`].
    pub(crate) fn new(trusts_hearsay: bool) -> Self {
        Self { state: Mutex::default(), trusts_hearsay }
    }

    /// A worker came: it takes what is there first, and looks how things stand when there is nothing, or a little later.
    pub(crate) fn begin(&self) {
        self.lock().begin(Instant::now());
    }

    /// Something may be ready: this task, or nobody knows what.
    pub(crate) fn expect(&self, task: Option<i64>) {
        let mut state = self.lock();
        state.expected_since = Some(Instant::now());
        state.hear(task);
    }

    /// The task that the hints since the last claim were about, if it was one and this worker's claim was the last and left
    /// nothing behind: else it would go before those that have waited for longer. For one claim.
    pub(crate) fn take_named(&self, worker: WorkerId) -> Option<i64> {
        self.lock().take_named(worker).filter(|_| self.trusts_hearsay)
    }

    /// Whether somebody has told of tasks since the last claim that went to the server.
    pub(crate) fn are_told(&self) -> bool {
        self.lock().said != Said::Nothing
    }

    /// A claim for several workers comes: what was said is for all of them, and what it leaves for each is not noted.
    pub(crate) fn forget_named(&self) {
        let mut state = self.lock();
        (state.said, state.sated) = (Said::Nothing, None);
    }

    /// Which way a claim for `n` tasks over so many lanes goes.
    pub(crate) fn way(&self, lanes: usize, n: u32) -> Way {
        let state = self.lock();
        match self.trusts_hearsay {
            true => state.way(Instant::now(), lanes, n),
            false if state.owes_look => Way::Long,
            false => Way::Short,
        }
    }

    /// The short way brought something, all that was asked for or not. Answers whether the last look is fresh; if not, the next claim
    /// looks.
    pub(crate) fn took(&self, worker: WorkerId, is_full: bool) -> bool {
        let mut state = self.lock();
        let is_fresh = state.took(Instant::now(), worker, is_full);
        state.owes_look |= !self.trusts_hearsay;
        is_fresh && self.trusts_hearsay
    }

    /// A claim went the long way, perhaps because the short one brought nothing; what it heard of the next due time is remembered
    /// for those that do not look.
    pub(crate) fn looked(
        &self,
        worker: WorkerId,
        found: bool,
        is_full: bool,
        was_in_vain: bool,
        next_due: Option<Timestamp>,
    ) {
        let mut state = self.lock();
        state.looked(Instant::now(), worker, found, is_full, was_in_vain);
        state.next_due = next_due;
    }

    /// Somebody looked and took nothing.
    pub(crate) fn looked_around(&self, next_due: Option<Timestamp>) {
        let mut state = self.lock();
        state.looked_around(Instant::now());
        state.next_due = next_due;
    }

    /// The next due time as the last look had it, if it has not come yet.
    pub(crate) fn next_due(&self, now: Timestamp) -> Option<Timestamp> {
        self.lock().next_due.filter(|due| *due > now)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: WorkerId = WorkerId(1);

    struct Clock(Instant);

    impl Clock {
        fn at(&self, ms: u64) -> Instant {
            self.0 + Duration::from_millis(ms)
        }
    }

    fn looked_at(clock: &Clock, ms: u64) -> State {
        let mut state = State::default();
        state.looked(clock.at(ms), ME, false, false, false);
        state
    }

    #[test]
    fn a_poll_goes_the_long_way_and_a_hint_the_short_one() {
        let clock = Clock(Instant::now());
        let mut state = looked_at(&clock, 0);
        assert_eq!(state.way(clock.at(1), 1, 50), Way::Long);
        state.expected_since = Some(clock.at(5));
        assert_eq!(state.way(clock.at(6), 1, 50), Way::Short);
        assert_eq!(state.way(clock.at(25), 1, 50), Way::Long, "a hint is soon forgotten");
    }

    #[test]
    fn a_look_is_owed_when_the_last_one_is_a_while_ago() {
        let clock = Clock(Instant::now());
        let mut state = looked_at(&clock, 0);
        assert!(state.took(clock.at(99), ME, false));
        assert_eq!(state.way(clock.at(100), 1, 50), Way::Short);
        assert!(!state.took(clock.at(100), ME, false));
        assert_eq!(state.way(clock.at(101), 1, 50), Way::Long, "the next one looks");
        state.looked(clock.at(102), ME, false, false, false);
        assert_eq!(state.way(clock.at(103), 1, 50), Way::Short);
    }

    #[test]
    fn whoever_does_not_look_is_told_of_a_due_time_that_is_still_to_come() {
        let looks = Looks::new(true);
        looks.looked(ME, false, false, false, Some(Timestamp::from_ms(10)));
        assert_eq!(looks.next_due(Timestamp::from_ms(9)), Some(Timestamp::from_ms(10)));
        assert_eq!(looks.next_due(Timestamp::from_ms(10)), None);
    }

    fn sated() -> State {
        State { sated: Some(ME), ..State::default() }
    }

    #[test]
    fn a_task_that_was_named_alone_is_for_the_next_claim() {
        let mut state = sated();
        assert_eq!(state.take_named(ME), None);
        state.hear(Some(7));
        assert_eq!(state.take_named(ME), Some(7));
        assert_eq!(state.take_named(ME), None, "once");
    }

    #[test]
    fn where_more_has_come_no_task_goes_before_the_others() {
        for others in [[Some(7), Some(8)], [Some(7), None], [None, Some(7)]] {
            let mut state = sated();
            for task in others {
                state.hear(task);
            }
            assert_eq!(state.take_named(ME), None, "{others:?}");
        }
    }

    #[test]
    fn where_more_may_be_left_no_task_goes_before_the_others() {
        let clock = Clock(Instant::now());
        let mut state = State::default();
        state.hear(Some(7));
        assert_eq!(state.take_named(ME), None, "nobody has looked yet");
        for (is_full, worker, expected) in
            [(true, ME, None), (false, WorkerId(2), None), (false, ME, Some(7))]
        {
            let mut state = State::default();
            state.took(clock.at(0), worker, is_full);
            state.hear(Some(7));
            assert_eq!(state.take_named(ME), expected);
            state.looked(clock.at(0), worker, false, is_full, false);
            state.hear(Some(7));
            assert_eq!(state.take_named(ME), expected);
        }
    }

    #[test]
    fn the_first_claim_of_all_is_followed_by_a_look() {
        let clock = Clock(Instant::now());
        assert!(!State::default().took(clock.at(0), ME, true));
    }

    #[test]
    fn a_worker_that_has_come_takes_what_is_there_before_it_looks() {
        let clock = Clock(Instant::now());
        let mut state = State::default();
        state.begin(clock.at(0));
        assert_eq!(state.way(clock.at(1), 1, 50), Way::Short);
        assert!(state.took(clock.at(2), ME, true) && state.took(clock.at(99), ME, true));
        assert!(!state.took(clock.at(100), ME, true), "then it looks");
    }

    #[test]
    fn a_worker_that_has_come_looks_when_it_has_taken_all_there_is() {
        let clock = Clock(Instant::now());
        let mut state = State::default();
        state.begin(clock.at(0));
        assert!(!state.took(clock.at(1), ME, false));
    }

    #[test]
    fn a_worker_that_has_come_compares_its_lanes() {
        let clock = Clock(Instant::now());
        let mut state = State::default();
        state.begin(clock.at(0));
        assert_eq!(state.way(clock.at(1), 2, 50), Way::Long);
        let mut state = looked_at(&clock, 0);
        state.begin(clock.at(1));
        assert_eq!(state.way(clock.at(2), 2, 50), Way::Short, "somebody has looked before");
    }

    #[test]
    fn another_worker_that_comes_later_does_not_put_the_look_off() {
        let clock = Clock(Instant::now());
        let mut state = looked_at(&clock, 0);
        state.begin(clock.at(90));
        assert!(!state.took(clock.at(100), ME, true));
    }

    #[test]
    fn where_there_is_plenty_a_look_is_taken_by_itself() {
        let clock = Clock(Instant::now());
        let mut state = looked_at(&clock, 0);
        assert!(state.took(clock.at(1), ME, true));
        assert_eq!(state.way(clock.at(99), 1, 50), Way::Short, "however long ago the claim was");
        assert_eq!(state.way(clock.at(100), 1, 50), Way::LookThenShort);
        state.looked_around(clock.at(101));
        assert_eq!(state.way(clock.at(102), 1, 50), Way::Short);
        assert!(state.took(clock.at(103), ME, true));
        assert!(!state.took(clock.at(250), ME, true));
        assert_eq!(state.way(clock.at(251), 1, 50), Way::LookThenShort, "also when it is owed");
        assert_eq!(state.way(clock.at(251), 2, 50), Way::Long, "their heads are compared");
        assert_eq!(state.way(clock.at(251), 1, 49), Way::Long, "for a few the long way is cheap");
        assert_eq!(state.way(clock.at(1_249), 1, 50), Way::LookThenShort);
        assert_eq!(state.way(clock.at(1_250), 1, 50), Way::Long, "who knows what is left");
    }

    #[test]
    fn where_there_was_plenty_and_is_no_more_the_long_way_tells_why() {
        let clock = Clock(Instant::now());
        let mut state = looked_at(&clock, 0);
        state.took(clock.at(1), ME, true);
        assert!(!state.took(clock.at(150), ME, false));
        assert_eq!(state.way(clock.at(151), 1, 50), Way::Long);
        state.took(clock.at(152), ME, true);
        state.looked(clock.at(153), ME, true, true, true);
        assert_eq!(state.way(clock.at(154), 1, 50), Way::Long, "a queue is paused, or a suspect runs");
    }

    #[test]
    fn several_lanes_are_compared_while_there_is_more_than_one_claim_takes() {
        let clock = Clock(Instant::now());
        let mut state = looked_at(&clock, 0);
        assert!(state.took(clock.at(1), ME, true));
        assert_eq!(state.way(clock.at(2), 1, 50), Way::Short);
        assert_eq!(state.way(clock.at(2), 2, 50), Way::Long);
        assert!(state.took(clock.at(3), ME, false));
        assert_eq!(state.way(clock.at(4), 2, 50), Way::Short);
    }

    #[test]
    fn where_the_short_way_finds_nothing_it_is_not_tried_for_a_while() {
        let clock = Clock(Instant::now());
        let mut state = looked_at(&clock, 0);
        state.looked(clock.at(1), ME, true, false, true);
        assert_eq!(state.way(clock.at(2), 1, 50), Way::Long);
        state.looked(clock.at(1_001), ME, true, false, false);
        assert_eq!(state.way(clock.at(1_002), 1, 50), Way::Short);
    }
}
