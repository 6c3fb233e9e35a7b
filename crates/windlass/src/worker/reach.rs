//! Whether the store can be reached, as the parts of a worker notice.
//!
//! ```text
//!   a call fails ──► unreachable, logged once ──► each part retries with its own growing pauses
//!                                          │ one of them is answered, or the store gives a hint
//!                                          ▼
//!                     back, logged once ◄── every pause ends
//! ```
//! Without it a worker would recover only when the longest of these pauses is over.

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{sync::watch, time::Instant};
use windlass_core::Error;

/// The shortest pause after a failure, even if there are many reasons to retry: if one sort of call fails and
/// another succeeds, the first must not be repeated at the rate of the second.
const PAUSE_MIN: Duration = Duration::from_millis(100);
/// Of several outages within this time only the first is logged at once; the others are logged if they last
/// for [`SAY_AFTER`].
const SAY_EVERY: Duration = Duration::from_secs(10);
/// See [`SAY_EVERY`].
const SAY_AFTER: Duration = Duration::from_secs(1);

/// Whether the store can be reached.
#[derive(Debug)]
pub(crate) struct Reach {
    /// Whether there is an outage: read with every answer, and therefore without the lock.
    is_away: AtomicBool,
    failed_calls: AtomicU64,
    state: Mutex<State>,
    /// Counts the reasons to retry.
    reasons: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    outage: Option<Outage>,
    said_at: Option<Instant>,
}

#[derive(Debug)]
struct Outage {
    since: Instant,
    is_said: bool,
}

impl Default for Reach {
    fn default() -> Self {
        Self {
            is_away: AtomicBool::new(false),
            failed_calls: AtomicU64::new(0),
            state: Mutex::default(),
            reasons: watch::Sender::new(0),
        }
    }
}

/// Whether an error says that the store was not reached, or that its answer was lost.
fn is_outage(error: &Error) -> bool {
    matches!(error, Error::Unavailable(_) | Error::Unknown(_))
}

impl Reach {
    /// A call of `part` failed. The returned value waits until it is time to retry.
    pub(crate) fn failed(&self, part: &'static str, error: &Error) -> Again {
        if !is_outage(error) {
            tracing::warn!(part, %error, "the store refused a call; it is tried again");
            return Again(self.reasons.subscribe());
        }
        tracing::debug!(part, %error, "a call of the store failed");
        self.failed_calls.fetch_add(1, Ordering::Relaxed);
        let mut state = self.lock();
        // Under the lock, so that a part that fails now does not miss an answer to another part.
        let again = Again(self.reasons.subscribe());
        let is_first = state.outage.is_none();
        let is_quiet = state.said_at.is_some_and(|at| at.elapsed() < SAY_EVERY);
        let outage = state.outage.get_or_insert_with(|| Outage { since: Instant::now(), is_said: false });
        if is_first {
            self.is_away.store(true, Ordering::Release);
        }
        if !outage.is_said && (!is_quiet || outage.since.elapsed() >= SAY_AFTER) {
            outage.is_said = true;
            state.said_at = Some(Instant::now());
            drop(state);
            tracing::warn!(part, %error, "the store cannot be reached; trying until it answers");
        }
        again
    }

    /// A call was answered: every pause ends.
    pub(crate) fn answered(&self) {
        if !self.is_away.load(Ordering::Acquire) {
            return;
        }
        let mut state = self.lock();
        let Some(outage) = state.outage.take() else { return };
        self.is_away.store(false, Ordering::Release);
        let failed_calls = self.failed_calls.swap(0, Ordering::Relaxed);
        self.reasons.send_modify(|reasons| *reasons += 1);
        drop(state);
        if outage.is_said {
            // The same level as the line about the outage: a log that has one must have both.
            tracing::warn!(
                away_ms = outage.since.elapsed().as_millis() as u64,
                failed_calls,
                "the store answers again"
            );
        }
    }

    /// The store may be back: every pause ends. Only an answered call proves that it is.
    pub(crate) fn may_be_back(&self) {
        if self.is_away.load(Ordering::Acquire) {
            self.reasons.send_modify(|reasons| *reasons += 1);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The wait of a part whose call failed.
#[derive(Debug)]
pub(crate) struct Again(watch::Receiver<u64>);

impl Again {
    /// Waits for `pause`, or until there is a reason to retry. Cancel safe.
    pub(crate) async fn after(&mut self, pause: Duration) {
        let _ = tokio::time::timeout(pause, self.wanted()).await;
    }

    /// Waits until there is a reason to retry, and at least the shortest pause. Cancel safe.
    pub(crate) async fn wanted(&mut self) {
        tokio::time::sleep(PAUSE_MIN).await;
        if self.0.changed().await.is_err() {
            // The worker has stopped; its parts stop too.
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn down() -> Error {
        Error::Unavailable("down".into())
    }

    async fn slept(mut again: Again, pause: Duration) -> Duration {
        let began = Instant::now();
        again.after(pause).await;
        began.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_answer_ends_every_pause() {
        let reach = Reach::default();
        let hour = Duration::from_hours(1);
        let (claims, renewals) = (reach.failed("claims", &down()), reach.failed("renewals", &down()));
        let answered = async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            reach.answered();
        };
        let (claims, renewals, ()) = tokio::join!(slept(claims, hour), slept(renewals, hour), answered);
        assert_eq!((claims, renewals), (Duration::from_secs(5), Duration::from_secs(5)));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_between_a_failure_and_its_pause_is_not_missed() {
        let reach = Reach::default();
        let again = reach.failed("claims", &down());
        reach.answered();
        assert_eq!(slept(again, Duration::from_hours(1)).await, PAUSE_MIN);
    }

    #[tokio::test(start_paused = true)]
    async fn a_hint_ends_pauses_but_not_the_outage() {
        let reach = Reach::default();
        let again = reach.failed("claims", &down());
        reach.may_be_back();
        assert_eq!(slept(again, Duration::from_hours(1)).await, PAUSE_MIN);
        assert!(reach.lock().outage.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_that_nothing_ends_is_as_long_as_it_was_asked_for() {
        let reach = Reach::default();
        reach.answered();
        reach.may_be_back();
        let short = Duration::from_millis(10);
        assert_eq!(slept(reach.failed("claims", &down()), short).await, short);
        assert_eq!(
            slept(reach.failed("claims", &down()), Duration::from_secs(3)).await,
            Duration::from_secs(3)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn outages_in_a_row_are_logged_once_and_a_long_one_always() {
        let reach = Reach::default();
        let is_said = || reach.lock().outage.as_ref().is_some_and(|outage| outage.is_said);
        reach.failed("settlements", &down());
        assert!(is_said(), "the first");
        for _ in 0..100 {
            reach.answered();
            reach.failed("settlements", &down());
            assert!(!is_said(), "one of many");
        }
        tokio::time::sleep(SAY_AFTER).await;
        reach.failed("settlements", &down());
        assert!(is_said(), "one that lasts");
        reach.answered();
        tokio::time::sleep(SAY_EVERY).await;
        reach.failed("settlements", &down());
        assert!(is_said(), "one that comes much later");
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_is_no_outage() {
        let reach = Reach::default();
        reach.failed("settlements", &Error::StoreFull("no space".into()));
        assert!(reach.lock().outage.is_none());
    }
}
