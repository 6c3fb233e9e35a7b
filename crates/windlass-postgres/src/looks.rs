//! Which way a claim goes: the short one, which only takes tasks, or the long one, which also looks how things stand: what is
//! due, what waits at the gates, why less came than was asked for.
//!
//! ```text
//!   a hint, or the last claim brought something ──► short ──► brought something ──► answer, and look with the next claim
//!                                                     │                             if the last look is a while ago
//!   the poll, or a look is owed ───────────────────► long ◄── brought nothing
//! ```
//! Only speed depends on what is noted here: the short way brings nothing where it does not know enough.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use windlass_core::Timestamp;

/// For how long after a hint, or after a claim that brought something, tasks are expected.
const EXPECTED_FOR: Duration = Duration::from_millis(20);
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

#[derive(Debug, Default)]
struct State {
    expected_since: Option<Instant>,
    looked_at: Option<Instant>,
    in_vain_at: Option<Instant>,
    owes_look: bool,
    was_full: bool,
    next_due: Option<Timestamp>,
}

impl State {
    fn is_within(at: Option<Instant>, now: Instant, limit: Duration) -> bool {
        at.is_some_and(|at| now.saturating_duration_since(at) < limit)
    }

    fn may_be_short(&self, now: Instant, lanes: usize) -> bool {
        Self::is_within(self.expected_since, now, EXPECTED_FOR)
            && !Self::is_within(self.in_vain_at, now, IN_VAIN_FOR)
            && !self.owes_look
            // The heads of several lanes are compared where more is ready than one claim takes.
            && (lanes < 2 || !self.was_full)
    }

    fn took(&mut self, now: Instant, is_full: bool) -> bool {
        self.expected_since = Some(now);
        self.was_full = is_full;
        self.owes_look = !Self::is_within(self.looked_at, now, LOOK_EVERY);
        !self.owes_look
    }

    fn looked(&mut self, now: Instant, found: bool, is_full: bool, was_in_vain: bool) {
        (self.looked_at, self.owes_look, self.was_full) = (Some(now), false, is_full);
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

    /// Something may be ready.
    pub(crate) fn expect(&self) {
        self.lock().expected_since = Some(Instant::now());
    }

    /// Whether a claim over so many lanes may go the short way.
    pub(crate) fn may_be_short(&self, lanes: usize) -> bool {
        let state = self.lock();
        if self.trusts_hearsay { state.may_be_short(Instant::now(), lanes) } else { !state.owes_look }
    }

    /// The short way brought something, all that was asked for or not. Answers whether the last look is fresh; if not, the next claim
    /// looks.
    pub(crate) fn took(&self, is_full: bool) -> bool {
        let mut state = self.lock();
        let is_fresh = state.took(Instant::now(), is_full);
        state.owes_look |= !self.trusts_hearsay;
        is_fresh && self.trusts_hearsay
    }

    /// A claim went the long way, perhaps because the short one brought nothing; what it heard of the next due time is remembered
    /// for those that do not look.
    pub(crate) fn looked(&self, found: bool, is_full: bool, was_in_vain: bool, next_due: Option<Timestamp>) {
        let mut state = self.lock();
        state.looked(Instant::now(), found, is_full, was_in_vain);
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

    struct Clock(Instant);

    impl Clock {
        fn at(&self, ms: u64) -> Instant {
            self.0 + Duration::from_millis(ms)
        }
    }

    fn looked_at(clock: &Clock, ms: u64) -> State {
        let mut state = State::default();
        state.looked(clock.at(ms), false, false, false);
        state
    }

    #[test]
    fn a_poll_goes_the_long_way_and_a_hint_the_short_one() {
        let clock = Clock(Instant::now());
        let mut state = looked_at(&clock, 0);
        assert!(!state.may_be_short(clock.at(1), 1));
        state.expected_since = Some(clock.at(5));
        assert!(state.may_be_short(clock.at(6), 1));
        assert!(!state.may_be_short(clock.at(25), 1), "a hint is soon forgotten");
    }

    #[test]
    fn a_look_is_owed_when_the_last_one_is_a_while_ago() {
        let clock = Clock(Instant::now());
        let mut state = looked_at(&clock, 0);
        assert!(state.took(clock.at(99), false));
        assert!(state.may_be_short(clock.at(100), 1));
        assert!(!state.took(clock.at(100), false));
        assert!(!state.may_be_short(clock.at(101), 1), "the next one looks");
        state.looked(clock.at(102), false, false, false);
        assert!(state.may_be_short(clock.at(103), 1));
    }

    #[test]
    fn whoever_does_not_look_is_told_of_a_due_time_that_is_still_to_come() {
        let looks = Looks::new(true);
        looks.looked(false, false, false, Some(Timestamp::from_ms(10)));
        assert_eq!(looks.next_due(Timestamp::from_ms(9)), Some(Timestamp::from_ms(10)));
        assert_eq!(looks.next_due(Timestamp::from_ms(10)), None);
    }

    #[test]
    fn the_first_claim_of_all_is_followed_by_a_look() {
        let clock = Clock(Instant::now());
        assert!(!State::default().took(clock.at(0), true));
    }

    #[test]
    fn several_lanes_are_compared_while_there_is_more_than_one_claim_takes() {
        let clock = Clock(Instant::now());
        let mut state = looked_at(&clock, 0);
        assert!(state.took(clock.at(1), true));
        assert!(state.may_be_short(clock.at(2), 1));
        assert!(!state.may_be_short(clock.at(2), 2));
        assert!(state.took(clock.at(3), false));
        assert!(state.may_be_short(clock.at(4), 2));
    }

    #[test]
    fn where_the_short_way_finds_nothing_it_is_not_tried_for_a_while() {
        let clock = Clock(Instant::now());
        let mut state = looked_at(&clock, 0);
        state.looked(clock.at(1), true, false, true);
        assert!(!state.may_be_short(clock.at(2), 1));
        state.looked(clock.at(1_001), true, false, false);
        assert!(state.may_be_short(clock.at(1_002), 1));
    }
}
