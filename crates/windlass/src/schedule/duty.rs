//! The schedule loop of every worker: fires due ticks, then sleeps until the next.
//!
//! Any number of workers check; the store lets one of them fire each tick. A check is one statement, and
//! while nothing is due a worker checks once in 15 seconds.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use windlass_core::{Error, Name, Result, ScheduleRow, Timestamp};

use super::tick;
use crate::{
    engine::duties,
    inside::backoff::Backoff,
    telemetry,
    worker::{
        shared::{Phase, Shared},
        status::Counters,
    },
};

/// Approximate longest pause between two checks: how long a schedule that another process created may stay
/// unnoticed.
const LOOK_EVERY: Duration = Duration::from_secs(15);
/// Longest random delay before a fire, so that a fleet does not fire a tick all at once.
const SPREAD_MAX: Duration = Duration::from_millis(20);
/// First pause after a failure.
const RETRY_FIRST: Duration = Duration::from_secs(1);
/// Most schedules in one check.
const DUE_MAX: u32 = 100;
/// Most problems that are remembered so that they are not logged again.
const COMPLAINTS_MAX: usize = 1_000;

/// Fires due ticks until the worker drains.
pub(crate) async fn run(shared: Arc<Shared>) {
    let seed = shared.config.home.seed() ^ shared.worker().map_or(0, |worker| worker.0 as u64) << 20;
    let mut duty = Duty {
        shared,
        spread: Backoff::new(RETRY_FIRST, LOOK_EVERY, seed),
        complained: BTreeMap::new(),
        left_alone: 0,
    };
    loop {
        let looked = duty.look().await;
        if let Some(meters) = &duty.shared.meters {
            meters.duty(telemetry::Duty::Schedules, &looked);
        }
        let mut again = None;
        let pause = match looked {
            Ok(pause) => {
                duty.spread.reset();
                pause
            }
            // Such a store has no schedules.
            Err(Error::Unsupported(_)) => return,
            Err(error) => {
                Counters::add(&duty.shared.counters.duty_failures, 1);
                again = Some(duty.shared.reach.failed("schedules", &error));
                duty.spread.next()
            }
        };
        tokio::select! {
            () = duties::wait(again, pause) => {}
            () = duty.shared.schedules_changed.notified() => {}
            () = duty.shared.phase_reached(Phase::Draining) => return,
        }
    }
}

struct Duty {
    shared: Arc<Shared>,
    spread: Backoff,
    /// Texts that could not be read, or whose tasks were refused.
    complained: BTreeMap<Name, String>,
    /// Schedules of newer programs that were due at the last check: they stay due, and must not hide others.
    left_alone: u32,
}

impl Duty {
    /// Fires due ticks; returns how long no other is due.
    async fn look(&mut self) -> Result<Duration> {
        let shared = self.shared.clone();
        let due = shared.store.schedules().due(DUE_MAX.saturating_add(self.left_alone)).await?;
        self.left_alone = 0;
        let (mut next, mut failed) = (due.next_at, None);
        for row in &due.due {
            if shared.is_draining() {
                break;
            }
            // A failure of one must not keep the others from firing.
            match self.handle(row, due.now).await {
                Ok(after) => next = next.into_iter().chain(after).min(),
                Err(error) => failed = Some(error),
            }
        }
        match failed {
            Some(error) => Err(error),
            None => Ok(pause(&mut self.spread, due.now, next)),
        }
    }

    /// Fires the due tick of a schedule; returns when it is due again.
    async fn handle(&mut self, row: &ScheduleRow, now: Timestamp) -> Result<Option<Timestamp>> {
        let shared = self.shared.clone();
        let ticked = tick::fire(shared.store.schedules(), row, now).await?;
        let (name, tick) = (&row.name, row.next_at.unwrap_or(now));
        if let Some(problem) = &ticked.problem {
            self.complain(row, problem);
        }
        if ticked.left_alone {
            // Newer programs, which can read it, fire it.
            self.left_alone += 1;
        }
        if ticked.left_out {
            Counters::add(&shared.counters.ticks_left_out, 1);
            tracing::warn!(schedule = %name, %tick, "a tick was left out");
        }
        if let Some(task) = ticked.task {
            Counters::add(&shared.counters.ticks_fired, 1);
            tracing::debug!(schedule = %name, %tick, task = %task.id, existing = task.existing, "fired a tick");
            shared.wake.work();
        }
        Ok(ticked.next_at)
    }

    /// Logs once what is wrong with a schedule, and again only after a change of the problem.
    fn complain(&mut self, row: &ScheduleRow, problem: &str) {
        if self.complained.get(&row.name).is_some_and(|known| known == problem) {
            return;
        }
        if self.complained.len() >= COMPLAINTS_MAX {
            self.complained.clear();
        }
        self.complained.insert(row.name.clone(), problem.to_owned());
        tracing::error!(schedule = %row.name, problem, "a schedule cannot be fired; set it again or remove it");
    }
}

/// How long to sleep: until the next tick, and no longer than the maximum.
fn pause(spread: &mut Backoff, now: Timestamp, next: Option<Timestamp>) -> Duration {
    let longest = spread.spread(LOOK_EVERY);
    let Some(next) = next else { return longest };
    // `spread` moves a delay by a quarter either way, so this is between zero and the longest delay.
    let after_others = spread.spread(2 * SPREAD_MAX).saturating_sub(SPREAD_MAX * 3 / 2);
    next.since(now).saturating_add(after_others).min(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_workers_check_every_15_seconds_at_different_times() {
        let now = Timestamp::from_ms(1_763_000_000_000);
        let mut spread = Backoff::new(RETRY_FIRST, LOOK_EVERY, 7);
        let pauses: Vec<_> = (0..1_000).map(|_| pause(&mut spread, now, None)).collect();
        assert!(pauses.iter().all(|pause| *pause >= LOOK_EVERY * 3 / 4 && *pause <= LOOK_EVERY * 5 / 4));
        let mean = pauses.iter().sum::<Duration>() / 1_000;
        assert!(mean.abs_diff(LOOK_EVERY) < Duration::from_millis(500), "{mean:?}");
        let tomorrow = Some(now.after(Duration::from_hours(24)));
        assert!(
            pause(&mut spread, now, tomorrow) >= LOOK_EVERY * 3 / 4,
            "a far tick is no reason to look earlier"
        );
    }

    #[test]
    fn a_worker_sleeps_until_the_next_tick_and_hardly_longer() {
        let now = Timestamp::from_ms(1_763_000_000_000);
        let mut spread = Backoff::new(RETRY_FIRST, LOOK_EVERY, 7);
        for _ in 0..1_000 {
            let pause = pause(&mut spread, now, Some(now.after(Duration::from_secs(5))));
            let late = pause.checked_sub(Duration::from_secs(5)).expect("not before it is due");
            assert!(late <= SPREAD_MAX, "{late:?}");
        }
        assert!(
            pause(&mut spread, now, Some(now.before(RETRY_FIRST))) <= SPREAD_MAX,
            "what is due is due now"
        );
    }
}
