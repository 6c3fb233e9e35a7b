//! Works off runs: those that were started here, and those that another server left.

use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout};
use tracing::{info, warn};
use windlass_core::{Error, RunRow, operators::StillRuns};

use super::{super::change::bulk::STEP_TASKS, Operations, Run, SAVES_MAX, pace};
use crate::api::{ErrorCode, ErrorDetail, RunState};

/// Shortest pause between two steps of a run with a pace.
const TICK: Duration = Duration::from_secs(1);
/// A record is saved at least so often, also if nothing was due: it shows that a server works on the run.
const SAVE_EVERY: Duration = Duration::from_secs(5);
/// Longest time of a step. A run that is taken over must not be changed by its old server any more, so this and
/// [`SAVE_EVERY`] together are shorter than [`TAKE_OVER_AFTER`].
const STEP_MAX: Duration = Duration::from_secs(10);
/// A run whose record was not saved for so long has lost its server.
pub(super) const TAKE_OVER_AFTER: Duration = Duration::from_secs(20);
/// How often a server looks for such runs.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Pause after the store has failed.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// A run that this process works on.
struct Held {
    row: RunRow,
    run: Run,
    /// The run as it is in the store.
    saved: Run,
    stepped_at: Instant,
    due: Instant,
}

impl Held {
    fn new(row: RunRow, run: Run) -> Self {
        let now = Instant::now();
        Self { row, saved: run.clone(), run, stepped_at: now, due: now }
    }

    /// When the next step is due.
    fn next(&self) -> Instant {
        let (pace, worked) = (pace(&self.run), Duration::from_millis(self.run.worked_ms));
        let handled = self.run.handled();
        if pace.due(worked).is_none_or(|due| due > handled) {
            return Instant::now();
        }
        Instant::now() + pace.due_after(handled).saturating_sub(worked).clamp(TICK, SAVE_EVERY)
    }

    /// How many tasks are due now.
    fn quota(&mut self) -> u64 {
        let passed_ms = self.stepped_at.elapsed().as_millis() as u64;
        // The part of a millisecond that is left counts the next time.
        self.stepped_at += Duration::from_millis(passed_ms);
        self.run.worked_ms += passed_ms.min(2 * SAVE_EVERY.as_millis() as u64);
        let due = pace(&self.run).due(Duration::from_millis(self.run.worked_ms));
        let most = STEP_TASKS as u64;
        due.map_or(most, |due| due.saturating_sub(self.run.handled()).min(most))
    }
}

/// Whether this process still works on a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hold {
    Kept,
    Ended,
}

impl Operations {
    /// Works off bulk runs until `stop` resolves: those that were started here, and those that another server
    /// left. A run that has not ended then is left to another server.
    pub async fn work_runs(&self, stop: impl Future<Output = ()> + Send) {
        let mut stop = std::pin::pin!(stop);
        let mut held: Vec<Held> = Vec::new();
        let mut look_at = Instant::now();
        loop {
            let started = self.runs.take().into_iter();
            held.extend(started.filter_map(|row| Run::read(&row).ok().map(|run| Held::new(row, run))));
            if Instant::now() >= look_at {
                match self.take_over(&mut held).await {
                    // Nothing can be started on such a store.
                    Err(Error::Unsupported(_)) => return stop.await,
                    Err(error) => warn!(%error, "cannot look for bulk runs"),
                    Ok(()) => {}
                }
                look_at = Instant::now() + LOOK_EVERY;
            }
            let next = held.iter().map(|held| held.due).min().map_or(look_at, |due| due.min(look_at));
            tokio::select! {
                biased;
                () = &mut stop => break,
                () = self.runs.wake.notified() => {}
                () = sleep_until(next) => self.work_due(&mut held).await,
            }
        }
        for mut held in held {
            held.run.left = true;
            if let Err(error) = self.save(&mut held).await {
                warn!(run = held.row.id, %error, "a bulk run could not be left to another server at once");
            }
        }
    }

    /// Takes the runs that have lost their server.
    async fn take_over(&self, held: &mut Vec<Held>) -> Result<(), Error> {
        for row in self.store.operators().running_runs().await? {
            let Ok(mut run) = Run::read(&row) else { continue };
            let is_lost = run.left || row.idle_for() >= TAKE_OVER_AFTER;
            if !is_lost || held.iter().any(|held| held.row.id == row.id) {
                continue;
            }
            run.left = false;
            run.owner.clone_from(&self.runs.owner);
            // Of several servers that see it, the one that saves it first has it.
            let text = run.text();
            let saved = self.store.operators().save_run(row.id, row.version, StillRuns::Yes, &text).await?;
            if let Some(row) = saved {
                info!(run = row.id, changed = run.changed, "goes on with a bulk run");
                held.push(Held::new(row, run));
            }
        }
        Ok(())
    }

    async fn work_due(&self, held: &mut Vec<Held>) {
        let mut kept = Vec::with_capacity(held.len());
        for mut one in std::mem::take(held) {
            if one.due > Instant::now() {
                kept.push(one);
                continue;
            }
            let next = match self.work(&mut one).await {
                Ok(Hold::Ended) => continue,
                Ok(Hold::Kept) => one.next(),
                Err(error) => {
                    warn!(run = one.row.id, %error, "a step of a bulk run failed; it is tried again");
                    Instant::now() + RETRY_AFTER
                }
            };
            one.due = next;
            kept.push(one);
        }
        *held = kept;
    }

    /// One step of a run, if it is still this process that works on it.
    async fn work(&self, held: &mut Held) -> Result<Hold, ErrorDetail> {
        let Some(row) = self.store.operators().run(held.row.id).await? else { return Ok(Hold::Ended) };
        let is_old = row.idle_for() >= SAVE_EVERY;
        // Save before the step: a run whose record is old may be taken over while the step is made.
        if (row.version != held.row.version || is_old || held.run != held.saved)
            && self.save(held).await? == Hold::Ended
        {
            return Ok(Hold::Ended);
        }
        if held.run.state != RunState::Running {
            return Ok(Hold::Ended);
        }
        let most = held.quota();
        if most == 0 {
            return Ok(Hold::Kept);
        }
        let step = timeout(STEP_MAX, self.step(&held.row, &mut held.run, most as u32)).await;
        match step {
            Ok(Ok(false)) => {}
            Ok(Ok(true)) => held.run.state = RunState::Done,
            Ok(Err(error)) if may_pass(&error) => return Err(error),
            Ok(Err(error)) => {
                held.run.state = RunState::Failed;
                held.run.failure = Some(error);
            }
            Err(_) => {
                return Err(ErrorDetail::new(ErrorCode::Unavailable, "the store did not answer in time"));
            }
        }
        let saved = self.save(held).await?;
        Ok(if held.run.state == RunState::Running { saved } else { Hold::Ended })
    }

    /// Saves what was done. If another server or a caller has changed the record meanwhile, adds it there.
    async fn save(&self, held: &mut Held) -> Result<Hold, Error> {
        let operators = self.store.operators();
        let text = held.run.text();
        let saved = operators.save_run(held.row.id, held.row.version, held.run.still(), &text).await?;
        if let Some(row) = saved {
            held.row = row;
            held.saved = held.run.clone();
            return Ok(Hold::Kept);
        }
        for _ in 0..SAVES_MAX {
            let Some(row) = operators.run(held.row.id).await? else { break };
            if row.text == text {
                // It was this process that saved it, and the answer was lost.
                held.row = row;
                held.saved = held.run.clone();
                return Ok(Hold::Kept);
            }
            let Ok(mut run) = Run::read(&row) else { break };
            run.add_late(&held.saved, &held.run);
            if operators.save_run(row.id, row.version, run.still(), &run.text()).await?.is_some() {
                break;
            }
        }
        Ok(Hold::Ended)
    }
}

/// Whether the same step may succeed later.
fn may_pass(error: &ErrorDetail) -> bool {
    matches!(error.code, ErrorCode::Unavailable | ErrorCode::UnknownOutcome | ErrorCode::StoreFull)
}
