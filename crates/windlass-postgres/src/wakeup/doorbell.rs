//! The doorbell: an idle worker asks to be notified, a busy one does not.
//!
//! ```text
//!   claim took all it asked for ──► busy: disarm once, notify the next idle worker
//!   claim took less ──► arm, in a transaction of its own ──► claim once more ──► sleep, armed
//! ```
//!
//! A caller that enqueues only reads which workers are armed, and notifies one of them. So there is no
//! notification while workers are busy, and never a lock. A notification that is missed costs one poll. Only
//! the offer of an idle worker (see `offer`) is locked, by the enqueue that takes it.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use windlass_core::{LaneId, Result};

use crate::{
    connection::{pool::Session, sync::Lock, values::ms},
    shared::Shared,
    sql,
};

/// How long other processes take a worker for idle after it armed its doorbell; each renewal prolongs it.
pub(crate) const ARMED_FOR: Duration = Duration::from_secs(6);
/// More notifications than this within [`OFTEN_WITHIN`] cost too much: the doorbell is disarmed until the
/// worker is idle again.
const OFTEN: u32 = 50;
/// See [`OFTEN`].
const OFTEN_WITHIN: Duration = Duration::from_millis(100);
/// The doorbell of this process.
pub(crate) struct Doorbell {
    /// The number of this process in a notification.
    pub listener: i64,
    pub channel: String,
    is_listening: AtomicBool,
    state: Lock<State>,
}

#[derive(Default)]
struct State {
    armed: Option<Armed>,
    /// Notifications since `since`.
    notifications: u32,
    since: Option<Instant>,
}

struct Armed {
    lanes: Vec<i32>,
    at: Instant,
}

impl Doorbell {
    pub(crate) fn new(listener: i64, channel: String) -> Self {
        Self { listener, channel, is_listening: AtomicBool::new(false), state: Lock::default() }
    }

    /// Whether notifications reach this process now.
    pub(crate) fn is_listening(&self) -> bool {
        self.is_listening.load(Ordering::Acquire)
    }

    /// Whether an idle worker of this process serves these lanes. It is told directly of what this process
    /// enqueues.
    pub(crate) fn covers(&self, lanes: &[i32]) -> bool {
        self.state
            .lock()
            .armed
            .as_ref()
            .is_some_and(|armed| lanes.iter().all(|lane| armed.lanes.contains(lane)))
    }

    /// Arms the doorbell unless it is armed. Answers whether it was not: then the caller claims once more.
    pub(crate) async fn arm(&self, session: &mut Session<'_>, lanes: &[LaneId]) -> Result<bool> {
        let mut lanes = numbers(lanes);
        if !self.is_listening() || self.covers(&lanes) {
            return Ok(false);
        }
        if let Some(armed) = &self.state.lock().armed {
            lanes.extend(&armed.lanes);
            lanes.sort_unstable();
            lanes.dedup();
        }
        let armed_for = ms(ARMED_FOR);
        session.query(&sql::DOORBELL_ARM, &[&self.listener, &lanes, &armed_for]).await?;
        let mut state = self.state.lock();
        state.armed = Some(Armed { lanes, at: Instant::now() });
        state.notifications = 0;
        Ok(true)
    }

    /// Disarms the doorbell of a worker that has become busy, and notifies another worker of what this one
    /// leaves. It does so once, when the worker becomes busy.
    pub(crate) async fn disarm(&self, session: &mut Session<'_>, lanes: &[LaneId]) -> Result<()> {
        if self.state.lock().armed.take().is_none() {
            return Ok(());
        }
        session.query(&sql::DOORBELL_DISARM, &[&self.listener]).await?;
        self.notify_another(session, &numbers(lanes)).await
    }

    /// Disarms the doorbell of a worker that leaves. The worker may have been notified without claiming
    /// afterwards, so another one is notified.
    pub(crate) async fn leave(&self, session: &mut Session<'_>) -> Result<()> {
        let Some(armed) = self.state.lock().armed.take() else { return Ok(()) };
        session.query(&sql::DOORBELL_DISARM, &[&self.listener]).await?;
        self.notify_another(session, &armed.lanes).await
    }

    /// Notifies another process that is idle and serves one of these lanes.
    pub(crate) async fn notify_another(&self, session: &mut Session<'_>, lanes: &[i32]) -> Result<()> {
        session.query(&sql::DOORBELL_RING, &[&lanes, &self.channel, &self.listener]).await?;
        Ok(())
    }

    /// A renewal told whether the doorbell is still armed in the database.
    pub(crate) fn renewed(&self, is_armed: bool) {
        if !is_armed {
            let mut state = self.state.lock();
            // A doorbell that was armed a moment ago may have been armed after the renewal read the table.
            if state.armed.as_ref().is_some_and(|armed| armed.at.elapsed() > ARMED_FOR / 2) {
                state.armed = None;
            }
        }
    }

    /// Whether there are so many notifications that the doorbell should be disarmed until the worker is idle
    /// again.
    pub(crate) fn is_notified_often(&self) -> bool {
        let state = self.state.lock();
        state.armed.is_some() && state.notifications >= OFTEN
    }

    /// The listener begins to receive notifications.
    pub(super) fn listens(&self) {
        self.is_listening.store(true, Ordering::Release);
    }

    pub(super) fn notified(&self) {
        let mut state = self.state.lock();
        if state.since.is_none_or(|since| since.elapsed() > OFTEN_WITHIN) {
            (state.notifications, state.since) = (0, Some(Instant::now()));
        }
        state.notifications += 1;
    }

    /// The listener receives nothing any more.
    pub(super) fn lost(&self) {
        self.is_listening.store(false, Ordering::Release);
        self.state.lock().armed = None;
    }
}

/// Disarms the doorbell of this process. An error must not lose what was claimed before.
pub(crate) async fn disarm(shared: &Shared, lanes: &[LaneId]) {
    let disarmed = async { shared.doorbell.disarm(&mut shared.claims.session().await?, lanes).await };
    if let Err(error) = disarmed.await {
        tracing::debug!(%error, "the doorbell could not be disarmed");
    }
}

/// Lanes as the server has them.
pub(crate) fn numbers(lanes: &[LaneId]) -> Vec<i32> {
    lanes.iter().map(|lane| lane.0 as i32).collect()
}
