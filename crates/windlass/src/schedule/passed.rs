//! Ticks that have passed without a task of their own. Pure.

use windlass_core::Timestamp;

use super::{plan::LATE_MAX, spec::Spec};

/// Ticks that have passed without a task of their own, by the expression that the schedule has now.
///
/// A store does not keep why: no worker was there to fire them, or the schedule was paused or changed
/// meanwhile. With [`Missed::Once`](super::Missed::Once) one task has made up for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Passed {
    /// How many, counted up to a bound.
    pub count: u32,
    /// Whether there are more than were counted.
    pub at_least: bool,
    /// The first of them.
    pub first: Timestamp,
    /// The last one that was counted.
    pub last: Timestamp,
    /// Whether the schedule still waits for one of them: no worker fires it now.
    pub overdue: bool,
}

/// Counts ticks, at most `most`, of a schedule that is not paused. `next` is the tick that it waits for, and
/// `fired` the last one that was fired. A tick that is at most a minute late is in time.
pub(crate) fn passed(
    spec: &Spec,
    next: Option<Timestamp>,
    fired: Option<Timestamp>,
    now: Timestamp,
    most: u32,
) -> Option<Passed> {
    let until = now.before(LATE_MAX);
    let is_missed = |tick: &Timestamp| *tick < until;
    // Before its first tick was fired, what it waits for is all that is known.
    let first = fired.map_or(next, |fired| spec.next_after(fired));
    let mut ticks = std::iter::successors(first, |tick| spec.next_after(*tick)).take_while(is_missed);
    let first = ticks.next().filter(|_| most > 0)?;
    let mut found = Passed {
        count: 1,
        at_least: false,
        first,
        last: first,
        overdue: next.is_some_and(|next| next >= first && is_missed(&next)),
    };
    for tick in ticks {
        if found.count == most {
            found.at_least = true;
            break;
        }
        found.count += 1;
        found.last = tick;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use windlass_core::{NewTask, Payload};

    use super::*;

    fn at(time: &str) -> Timestamp {
        format!("2027-01-31T{time}Z").parse().unwrap()
    }

    /// How many ticks of a schedule have passed, the first, the last, and whether it is overdue.
    fn found(
        cron: &str,
        next: Option<&str>,
        fired: Option<&str>,
        now: &str,
    ) -> Option<(u32, bool, String, String, bool)> {
        let task = NewTask::new("k", Payload::json(&()).unwrap()).unwrap();
        let spec = Spec::raw(cron, task).unwrap();
        let time = |at: Timestamp| at.to_string()[11..16].to_owned();
        passed(&spec, next.map(at), fired.map(at), at(now), 10)
            .map(|p| (p.count, p.at_least, time(p.first), time(p.last), p.overdue))
    }

    #[test]
    fn a_schedule_in_time_has_missed_nothing() {
        let every = "*/5 * * * *";
        assert_eq!(found(every, Some("09:05:00"), Some("09:00:00"), "09:03:00"), None);
        assert_eq!(found(every, Some("09:05:00"), None, "09:03:00"), None);
        assert_eq!(found(every, Some("09:05:00"), Some("09:00:00"), "09:06:00"), None, "a minute is in time");
        assert_eq!(found(every, None, None, "09:06:00"), None);
    }

    #[test]
    fn a_schedule_that_no_worker_fires_is_overdue() {
        let every = "*/5 * * * *";
        let late = Some((2, false, "09:05".into(), "09:10".into(), true));
        assert_eq!(found(every, Some("09:05:00"), Some("09:00:00"), "09:14:00"), late);
        assert_eq!(found(every, Some("09:05:00"), None, "09:14:00"), late, "it has never fired");
        let many = Some((10, true, "09:05".into(), "09:50".into(), true));
        assert_eq!(found(every, Some("09:05:00"), Some("09:00:00"), "23:00:00"), many);
    }

    #[test]
    fn ticks_between_the_last_and_the_next_one_have_passed() {
        let gap = Some((3, false, "09:05".into(), "09:15".into(), false));
        assert_eq!(found("*/5 * * * *", Some("09:20:00"), Some("09:00:00"), "09:18:00"), gap);
        let fired = "2027-01-30T03:00:00Z".parse().unwrap();
        let task = NewTask::new("k", Payload::json(&()).unwrap()).unwrap();
        let spec = Spec::raw("0 3 * * *", task).unwrap();
        let next = spec.next_after(at("06:00:00"));
        let found = passed(&spec, next, Some(fired), at("06:00:00"), 10).unwrap();
        assert_eq!((found.count, found.first, found.overdue), (1, at("03:00:00"), false));
    }

    #[test]
    fn a_tick_that_was_put_back_is_counted_once() {
        // The row waits for a tick that was fired already.
        assert_eq!(found("*/5 * * * *", Some("09:00:00"), Some("09:05:00"), "09:08:00"), None);
    }
}
