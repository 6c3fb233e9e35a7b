//! What to do about a due tick. Pure.

use std::time::Duration;

use windlass_core::{Fire, ScheduleRow, Timestamp};

use super::spec::{Missed, Spec};

/// How late a tick may be before [`Missed::Skip`] drops it.
pub const LATE_MAX: Duration = Duration::from_mins(1);

/// The decision about the tick that `row` waits for, at a time of the store's clock at which it is due.
///
/// ```text
///  fired already (the row was put back meanwhile) ──► dropped; the next one after it
///  missed: once                                   ──► fired;   the next one after now: one makes up for all
///  missed: skip, at most a minute late            ──► fired;   the next one after it
///  missed: skip, later than that                  ──► dropped; the first that is at most a minute late
/// ```
pub(super) fn plan(row: &ScheduleRow, spec: &Spec, tick: Timestamp, now: Timestamp) -> Fire {
    let task = || Some(spec.task_of(&row.name, tick));
    let fired = row.last_at.filter(|last| *last >= tick);
    let (task, after) = match (fired, spec.missed) {
        (Some(last), _) => (None, last),
        (None, Missed::Once) => (task(), now),
        (None, Missed::Skip) if now.since(tick) <= LATE_MAX => (task(), tick),
        (None, Missed::Skip) => (None, now.before(LATE_MAX + Duration::from_millis(1))),
    };
    let next_at = spec.next_after(after.max(tick));
    Fire { name: row.name.clone(), spec: row.spec.clone(), tick, task, next_at }
}

/// Drops a tick and waits for no other: its time cannot be computed.
pub(super) fn give_up(row: &ScheduleRow, tick: Timestamp) -> Fire {
    Fire { name: row.name.clone(), spec: row.spec.clone(), tick, task: None, next_at: None }
}

#[cfg(test)]
mod tests {
    use windlass_core::{Name, NewTask, Payload};

    use super::*;

    fn at(time: &str) -> Timestamp {
        format!("2027-01-31T{time}Z").parse().unwrap()
    }

    /// Whether a tick is fired, and the next one.
    fn planned(
        cron: &str,
        missed: Missed,
        tick: &str,
        now: &str,
        last: Option<&str>,
    ) -> (bool, Option<Timestamp>) {
        let task = NewTask::new("k", Payload::json(&()).unwrap()).unwrap();
        let spec = Spec::raw(cron, task).unwrap().missed(missed);
        let row = ScheduleRow {
            name: Name::new("schedule", "s").unwrap(),
            spec: String::new(),
            paused: false,
            next_at: Some(at(tick)),
            last_at: last.map(at),
            last_task: None,
        };
        let fire = plan(&row, &spec, at(tick), at(now));
        assert_eq!(fire.tick, at(tick));
        (fire.task.is_some(), fire.next_at)
    }

    #[test]
    fn a_tick_in_time_is_fired_and_the_next_one_awaited() {
        for missed in Missed::ALL {
            let plan = planned("*/5 * * * *", missed, "09:00:00", "09:00:00.040", Some("08:55:00"));
            assert_eq!(plan, (true, Some(at("09:05:00"))), "{missed:?}");
        }
    }

    #[test]
    fn one_task_makes_up_for_all_missed_ticks() {
        let plan = planned("*/5 * * * *", Missed::Once, "09:00:00", "09:47:00", None);
        assert_eq!(plan, (true, Some(at("09:50:00"))));
    }

    #[test]
    fn skip_drops_a_tick_that_is_more_than_a_minute_late() {
        let skip = |tick, now| planned("* * * * *", Missed::Skip, tick, now, None);
        assert_eq!(skip("09:00:00", "09:01:00"), (true, Some(at("09:01:00"))), "a minute is in time");
        assert_eq!(skip("09:00:00", "09:01:00.001"), (false, Some(at("09:01:00"))));
        assert_eq!(skip("09:00:00", "09:30:20"), (false, Some(at("09:30:00"))), "which is in time");
        let seldom = planned("0 9 * * *", Missed::Skip, "09:00:00", "09:30:00", None);
        assert_eq!(seldom, (false, Some("2027-02-01T09:00:00Z".parse().unwrap())));
    }

    #[test]
    fn a_tick_that_was_fired_already_is_not_fired_again() {
        for last in ["09:00:00", "09:05:00"] {
            let plan = planned("*/5 * * * *", Missed::Once, "09:00:00", "09:05:01", Some(last));
            let next = if last == "09:00:00" { "09:05:00" } else { "09:10:00" };
            assert_eq!(plan, (false, Some(at(next))), "{last}");
        }
    }
}
