//! What is known between two claims, and the look at how things stand.
//!
//! ```text
//!   a hint came, or the last take was full ──► take ──► full, or the last look is fresh ──► answer
//!                                               │  └──► some, and the last look is old ──► answer;
//!                                               │                       the next claim looks first
//!                                               ▼ none
//!   the poll, or a look is owed ────────────► look ──► a task is ready ──► take ──► answer
//!                                                 └──► no task is ready ──► answer
//! ```
//! Only speed depends on what is noted here: take.sql checks everything that a claim must not break.

use std::time::{Duration, Instant};

use windlass_core::{Demand, Result, Timestamp};

use crate::{
    claim::{
        read_position::Start,
        row::unreadable,
        suspect::{ISOLATION_MS, last_chance},
    },
    connection::{options::Clock, pool::Session, sync::Lock, values::Cells},
    shared::Shared,
    sql,
    upkeep::lanes::LanesInUse,
};

/// How old a look may be while takes are full.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// How things stand for one demand.
#[expect(clippy::struct_excessive_bools, reason = "each is a column of the answer")]
pub(crate) struct View {
    pub now: Timestamp,
    /// The worker's lease is in force.
    pub is_live: bool,
    /// A suspect on its last chance has the worker to itself.
    pub is_isolated: bool,
    /// Suspects wait for their turn.
    pub has_suspects: bool,
    /// A take would find something.
    pub has_ready: bool,
    /// Ready tasks are kept from the worker: their queue is paused, or suspects come first.
    pub is_blocked: bool,
    pub next_due: Option<Timestamp>,
    pub lanes: LanesInUse,
    /// Admission must look at a gate.
    pub has_todo: bool,
}

/// Looks how things stand, and takes nothing.
pub(crate) async fn look(
    shared: &Shared,
    session: &mut Session<'_>,
    demand: &Demand,
    start: &Start,
) -> Result<View> {
    let (claim_no, last_chance) = (demand.claim_no as i64, last_chance(&shared.rules));
    let row = session
        .row(
            &sql::LOOK,
            &[
                &demand.worker.0,
                &claim_no,
                &start.lanes,
                &start.highs,
                &start.lows,
                &start.afters,
                &last_chance,
                &ISOLATION_MS,
            ],
        )
        .await?
        .ok_or_else(|| unreadable("a look without an answer"))?;
    let view = View {
        now: row.time(0),
        is_live: row.get(1),
        is_isolated: row.get(2),
        has_suspects: row.get(3),
        has_ready: row.get(4),
        is_blocked: row.get(5),
        next_due: row.time_if_any(6),
        lanes: LanesInUse { n: row.get::<_, i64>(7) as usize, sum: row.get(8) },
        has_todo: row.get(9),
    };
    shared.looks.looked(view.next_due);
    Ok(view)
}

/// What this process remembers between two claims.
pub(crate) struct Looks {
    clock: Clock,
    state: Lock<State>,
}

#[derive(Debug, Default)]
struct State {
    /// A hint came since the last claim.
    is_hinted: bool,
    /// The last take brought all that was asked for.
    was_full: bool,
    /// The last claim took tasks and put off the look that was due.
    owes_look: bool,
    looked_at: Option<Instant>,
    next_due: Option<Timestamp>,
}

impl Looks {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, state: Lock::default() }
    }

    /// Something may be ready.
    pub(crate) fn hint(&self) {
        self.state.lock().is_hinted = true;
    }

    /// Whether a hint came since the last claim that went to the server.
    pub(crate) fn is_hinted(&self) -> bool {
        self.state.lock().is_hinted
    }

    /// A claim begins: whether it takes before it looks.
    pub(crate) fn begin(&self) -> bool {
        let mut state = self.state.lock();
        let is_hinted = std::mem::take(&mut state.is_hinted);
        !state.owes_look && state.looked_at.is_some() && (is_hinted || state.was_full)
    }

    /// Whether the last look is fresh.
    pub(crate) fn is_fresh(&self) -> bool {
        let looked_at = self.state.lock().looked_at;
        looked_at.is_some_and(|at| (self.clock)().saturating_duration_since(at) < LOOK_EVERY)
    }

    /// A claim ended with tasks and without a look. Answers whether the next one looks first.
    pub(crate) fn took(&self, is_full: bool) -> bool {
        let owes_look = !self.is_fresh();
        let mut state = self.state.lock();
        (state.was_full, state.owes_look) = (is_full, owes_look);
        owes_look
    }

    /// A claim ended that had looked.
    pub(crate) fn ended(&self, is_full: bool) {
        self.state.lock().was_full = is_full;
    }

    fn looked(&self, next_due: Option<Timestamp>) {
        let now = (self.clock)();
        let mut state = self.state.lock();
        (state.looked_at, state.owes_look, state.next_due) = (Some(now), false, next_due);
    }

    /// The next due time as the last look found it, if it has not passed.
    pub(crate) fn next_due(&self, now: Timestamp) -> Option<Timestamp> {
        self.state.lock().next_due.filter(|due| *due > now)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Looks whose clock the test moves, after a first look.
    fn looked() -> (Looks, Arc<Mutex<Instant>>) {
        let now = Arc::new(Mutex::new(Instant::now()));
        let clock = Arc::clone(&now);
        let looks = Looks::new(Arc::new(move || *clock.lock().unwrap()));
        looks.looked(None);
        (looks, now)
    }

    #[test]
    fn the_first_claim_of_all_looks_first() {
        let looks = Looks::new(Arc::new(Instant::now));
        looks.hint();
        assert!(!looks.begin());
    }

    #[test]
    fn a_poll_looks_first_and_a_hinted_claim_takes_first() {
        let (looks, _) = looked();
        assert!(!looks.begin());
        looks.hint();
        assert!(looks.begin());
        assert!(!looks.begin(), "a hint is for one claim");
    }

    #[test]
    fn after_a_full_take_the_next_claim_takes_first() {
        let (looks, _) = looked();
        assert!(!looks.took(true));
        assert!(looks.begin());
        assert!(!looks.took(false));
        assert!(!looks.begin());
    }

    #[test]
    fn a_look_is_owed_when_the_last_one_is_old() {
        let (looks, now) = looked();
        *now.lock().unwrap() += LOOK_EVERY;
        assert!(looks.took(true));
        looks.hint();
        assert!(!looks.begin(), "the next claim looks first");
        looks.looked(None);
        assert!(looks.begin());
    }

    #[test]
    fn a_claim_without_a_look_answers_a_due_time_that_is_to_come() {
        let (looks, _) = looked();
        looks.looked(Some(Timestamp::from_ms(10)));
        assert_eq!(looks.next_due(Timestamp::from_ms(9)), Some(Timestamp::from_ms(10)));
        assert_eq!(looks.next_due(Timestamp::from_ms(10)), None);
    }
}
