//! Every worker's look at the schedules: fires the ticks that have come, then sleeps until the next.
//!
//! Any number of workers look; the store lets one of them fire each tick. A look is one statement, and while nothing is due there
//! is one in a quarter of a minute.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use windlass_core::{Error, Name, Result, ScheduleRow, Timestamp};

use super::tick;
use crate::{
    backoff::Backoff,
    duties, telemetry,
    worker::{
        shared::{Phase, Shared},
        status::Counters,
    },
};

/// Longest pause between two looks, about: what a schedule that somebody else made waits at most to be seen.
const LOOK_EVERY: Duration = Duration::from_secs(15);
/// Most by which a worker lets others go first, so that a fleet does not fire a tick all at once.
const SPREAD_MAX: Duration = Duration::from_millis(20);
/// First pause after a failure.
const RETRY_FIRST: Duration = Duration::from_secs(1);
/// Most schedules that one look takes.
const DUE_MAX: u32 = 100;
/// Complaints that are remembered so as not to repeat them.
const COMPLAINTS_MAX: usize = 1_000;

/// Fires what is due until the worker drains.
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
            // Such a store has no schedules to look after.
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
    /// Schedules of newer programs that were due at the last look: they stay due, and must not keep others from being seen.
    left_alone: u32,
}

impl Duty {
    /// Fires what is due; answers how long nothing else is.
    async fn look(&mut self) -> Result<Duration> {
        let shared = self.shared.clone();
        let due = shared.store.schedules().due(DUE_MAX.saturating_add(self.left_alone)).await?;
        self.left_alone = 0;
        let (mut next, mut failed) = (due.next_at, None);
        for row in &due.due {
            if shared.is_draining() {
                break;
            }
            // One that fails does not keep the others from firing.
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

    /// Fires the tick of a schedule that is due; answers when it is due again.
    async fn handle(&mut self, row: &ScheduleRow, now: Timestamp) -> Result<Option<Timestamp>> {
        let shared = self.shared.clone();
        let ticked = tick::fire(shared.store.schedules(), row, now).await?;
        let (name, tick) = (&row.name, row.next_at.unwrap_or(now));
        if let Some(problem) = &ticked.problem {
            self.complain(row, problem);
        }
        if ticked.left_alone {
            // Those who can read it fire it.
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

    /// Says once what is wrong with a schedule, and again only when that has changed.
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

/// How long to sleep: until the next tick, and not too long.
fn pause(spread: &mut Backoff, now: Timestamp, next: Option<Timestamp>) -> Duration {
    let longest = spread.spread(LOOK_EVERY);
    let Some(next) = next else { return longest };
    // A spread moves by a quarter either way, so this is nothing to the most.
    let after_others = spread.spread(2 * SPREAD_MAX).saturating_sub(SPREAD_MAX * 3 / 2);
    next.since(now).saturating_add(after_others).min(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_worker_looks_every_quarter_of_a_minute_and_not_in_step_with_others() {
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
