//! Whether the server can be reached, shared by all connections of a store. During an outage one caller at a
//! time tries to connect, and the first connection lets all others try.
//!
//! A call is never refused because of an attempt that failed before the call was made: it waits for the next
//! attempt. Only a server that has no connection left is tried less often, because each refusal costs it a
//! process.

use std::time::{Duration, Instant};

use tokio::sync::{MutexGuard as Turn, Notify};

use crate::connection::sync::Lock;

/// Pause after the first attempt that failed; doubled with each, so that many callers do not overload a
/// server that starts.
const PAUSE_MIN: Duration = Duration::from_millis(25);
/// Longest such pause.
const PAUSE_MAX: Duration = Duration::from_millis(100);
/// Longest such pause while the server has no connection left.
const FULL_PAUSE_MAX: Duration = Duration::from_secs(2);
/// How long a caller waits while another connection tries. An attempt that hangs delays no caller for longer.
const TURN_MAX: Duration = Duration::from_millis(250);

/// Why there is no connection. Nothing was sent, so nothing changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub text: String,
    /// The server is there and has no connection left.
    pub is_full: bool,
}

impl Refusal {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_full: false }
    }
}

/// Whether the server can be reached.
#[derive(Debug, Default)]
pub(crate) struct Reach {
    state: Lock<State>,
    /// Locked by the caller that tries.
    turn: tokio::sync::Mutex<()>,
    back: Notify,
}

#[derive(Debug, Default)]
struct State {
    pause: Duration,
    refused: Option<Refused>,
}

#[derive(Debug)]
struct Refused {
    refusal: Refusal,
    at: Instant,
    until: Instant,
}

impl Reach {
    /// Waits for a turn to connect. During an outage only one caller has it. If its attempt fails, the
    /// callers that waited get the same refusal.
    pub(crate) async fn turn(&self) -> Result<Option<Turn<'_, ()>>, Refusal> {
        if self.state.lock().refused.is_none() {
            return Ok(None);
        }
        let asked_at = Instant::now();
        let turn = tokio::time::timeout(TURN_MAX, self.turn.lock()).await.ok();
        let back = self.back.notified();
        let Some(wait) = self.wait(asked_at)? else { return Ok(turn) };
        let _ = tokio::time::timeout(wait, back).await;
        Ok(turn)
    }

    /// How long the next attempt must wait, if there is an outage.
    fn wait(&self, asked_at: Instant) -> Result<Option<Duration>, Refusal> {
        let state = self.state.lock();
        let Some(refused) = &state.refused else { return Ok(None) };
        let left = refused.until.saturating_duration_since(Instant::now());
        if refused.at >= asked_at || (refused.refusal.is_full && !left.is_zero()) {
            return Err(refused.refusal.clone());
        }
        Ok(Some(left))
    }

    /// An attempt failed.
    pub(crate) fn refused(&self, refusal: &Refusal) {
        let mut state = self.state.lock();
        let longest = if refusal.is_full { FULL_PAUSE_MAX } else { PAUSE_MAX };
        state.pause = (state.pause * 2).clamp(PAUSE_MIN, longest);
        let at = Instant::now();
        state.refused = Some(Refused { refusal: refusal.clone(), at, until: at + state.pause });
    }

    /// A connection was made: the outage is over, if there was one.
    pub(crate) fn connected(&self) {
        let mut state = self.state.lock();
        state.pause = Duration::ZERO;
        if state.refused.take().is_some() {
            self.back.notify_waiters();
        }
    }

    /// Waits until the outage is over, if there is one, and not longer than `limit`.
    pub(crate) async fn back_within(&self, limit: Duration) {
        let _ = tokio::time::timeout(limit, self.back.notified()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn down() -> Refusal {
        Refusal::new("down")
    }

    #[tokio::test]
    async fn an_earlier_failure_refuses_no_call() {
        let reach = Reach::default();
        reach.refused(&down());
        // The caller has its turn: it must find out whether the server is back.
        assert!(reach.turn().await.unwrap().is_some());
    }

    #[tokio::test]
    async fn waiting_callers_share_one_refusal() {
        let reach = std::sync::Arc::new(Reach::default());
        reach.refused(&down());
        let turn = reach.turn().await.unwrap();
        let other = std::sync::Arc::clone(&reach);
        let waits = tokio::spawn(async move { other.turn().await.map(|turn| turn.is_some()) });
        // The second caller asks before the first one is refused.
        tokio::task::yield_now().await;
        reach.refused(&down());
        drop(turn);
        assert_eq!(waits.await.unwrap(), Err(down()));
    }

    #[tokio::test]
    async fn the_first_connection_ends_the_outage_for_all() {
        let reach = Reach::default();
        for _ in 0..10 {
            reach.refused(&down());
        }
        reach.connected();
        assert!(reach.turn().await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_full_server_is_not_asked_again_at_once() {
        let reach = Reach::default();
        let full = Refusal { text: "full".to_owned(), is_full: true };
        reach.refused(&full);
        assert_eq!(reach.turn().await.map(|turn| turn.is_some()), Err(full));
    }
}
