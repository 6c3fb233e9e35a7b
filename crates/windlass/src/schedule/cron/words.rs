//! A cron expression in words, for people. Computed from the times that it selects, not from its text. Where
//! short words would leave something out there are none, and the caller shows the expression.

use super::{Calendar, DayRule, Every, When, field};

/// Single times or days that a sentence names; more are said as a range, or not at all.
const NAMED_MAX: usize = 6;
/// Days that every month has.
const SHORTEST_MONTH: i8 = 28;
/// Times of a day that a sentence names.
const TIMES_MAX: usize = 4;
const HOURS: i8 = 24;
const MINUTES: i8 = 60;
const ALL_DAYS: u64 = set(1, 31);
const ALL_MONTHS: u64 = set(1, 12);
const ALL_WEEKDAYS: u64 = set(0, 6);
const MONDAY_TO_FRIDAY: u64 = set(1, 5);
const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The numbers from a first to a last one.
const fn set(first: u32, last: u32) -> u64 {
    ((1 << (last + 1)) - 1) & !((1 << first) - 1)
}

/// The words of an expression.
pub(super) fn words(when: &When) -> Option<String> {
    match when {
        When::Every(every) => Some(every_words(*every)),
        When::Calendar(calendar) => calendar_words(calendar),
    }
}

fn every_words(every: Every) -> String {
    let seconds = every.seconds();
    for (size, unit) in [(60 * 60, "hour"), (60, "minute"), (1, "second")] {
        if seconds % size == 0 {
            return rate(seconds / size, unit);
        }
    }
    String::new()
}

/// "every minute", "every 5 minutes".
fn rate(n: i64, unit: &str) -> String {
    if n == 1 { format!("every {unit}") } else { format!("every {n} {unit}s") }
}

/// The times of a day.
enum Times {
    /// Some times: "at 09:00".
    At(String),
    /// At a rate: "every 15 minutes".
    Rate(String),
}

fn calendar_words(calendar: &Calendar) -> Option<String> {
    let (days, times) = (days(calendar)?, times(calendar)?);
    let months = all(calendar.months);
    let in_months = (calendar.months != ALL_MONTHS).then(|| months_named(&months));
    let days = match (days, in_months) {
        (None, None) => None,
        (None, Some(months)) => Some(format!("every day in {months}")),
        (Some(Days::Week(days)), None) => Some(days),
        (Some(Days::Week(days)), Some(months)) => Some(format!("{days} in {months}")),
        (Some(Days::Month(days)), _) => Some(format!("{days} of {}", of_months(calendar.days, &months)?)),
        (Some(Days::Either(of_month, of_week)), None) => {
            Some(format!("{of_month} of {}, and {of_week},", of_months(calendar.days, &months)?))
        }
        (Some(Days::Either(..)), Some(_)) => return None,
    };
    Some(match (days, times) {
        (None, Times::At(times)) => format!("every day {times}"),
        (None, Times::Rate(times)) => times,
        (Some(days), Times::At(times)) => format!("{days} {times}"),
        (Some(days), Times::Rate(times)) => format!("{times}, {}", days.trim_end_matches(',')),
    })
}

fn times(calendar: &Calendar) -> Option<Times> {
    let second = match only(calendar.seconds) {
        Some(second) => second,
        // Ticks within each minute.
        None if calendar.minutes == set(0, 59) && calendar.hours == set(0, 23) => {
            return step(calendar.seconds, MINUTES).map(|n| Times::Rate(rate(n, "second")));
        }
        None => return None,
    };
    let (hours, minutes) = (all(calendar.hours), all(calendar.minutes));
    if hours.len() * minutes.len() <= TIMES_MAX {
        let times = hours.iter().flat_map(|hour| minutes.iter().map(move |minute| (*hour, *minute)));
        let times: Vec<_> = times.map(|(hour, minute)| clock(hour, minute, second)).collect();
        return Some(Times::At(format!("at {}", listed(&times))));
    }
    // Seconds within a rate would make it hard to read.
    if second != 0 {
        return None;
    }
    rates(calendar, &hours, &minutes).map(Times::Rate)
}

/// Minutes at even distances, or one minute in many hours.
fn rates(calendar: &Calendar, hours: &[i8], minutes: &[i8]) -> Option<String> {
    let (first_hour, last_hour) = (*hours.first()?, *hours.last()?);
    let (first, last) = (*minutes.first()?, *minutes.last()?);
    let is_whole_day = calendar.hours == set(0, 23);
    let between = || format!("from {} to {}", clock(first_hour, first, 0), clock(last_hour, last, 0));
    if minutes.len() == 1 {
        return match step(calendar.hours, HOURS) {
            Some(1) if first == 0 => Some("every hour".to_owned()),
            Some(1) => Some(format!("every hour at minute {first}")),
            Some(n) => Some(format!("every {n} hours, from {}", clock(0, first, 0))),
            None => is_row(hours).then(|| format!("every hour {}", between())),
        };
    }
    let n = step(calendar.minutes, MINUTES)?;
    let every = rate(n, "minute");
    if is_whole_day { Some(every) } else { is_row(hours).then(|| format!("{every} {}", between())) }
}

/// The days on which there are ticks, if not on every day.
enum Days {
    Week(String),
    Month(String),
    /// Days of the month, and also days of the week.
    Either(String, String),
}

/// The days of an expression: the inner value is `None` for every day.
#[expect(clippy::option_option, reason = "no words is another answer than every day")]
fn days(calendar: &Calendar) -> Option<Option<Days>> {
    let is_open = (calendar.days == ALL_DAYS, calendar.weekdays == ALL_WEEKDAYS);
    match (is_open, calendar.day_rule) {
        ((true, true), _) | ((true, _) | (_, true), DayRule::Either) => Some(None),
        ((true, false), DayRule::Both) => weekdays(calendar).map(|days| Some(Days::Week(days))),
        ((false, true), DayRule::Both) => month_days(calendar).map(|days| Some(Days::Month(days))),
        ((false, false), DayRule::Either) => {
            Some(Some(Days::Either(month_days(calendar)?, weekdays(calendar)?)))
        }
        ((false, false), DayRule::Both) => None,
    }
}

fn weekdays(calendar: &Calendar) -> Option<String> {
    let name = |day: i8| WEEKDAYS.get(usize::try_from(day).ok()?).copied();
    let named = |set| all(set).into_iter().map(name).collect::<Option<Vec<_>>>();
    match (calendar.weekdays, calendar.last_weekdays) {
        (MONDAY_TO_FRIDAY, 0) => Some("every weekday".to_owned()),
        (days, 0) => {
            // A week begins on Monday.
            let mut days = named(days)?;
            if days.first() == WEEKDAYS.first() {
                days.rotate_left(1);
            }
            Some(format!("every {}", listed(&days)))
        }
        (0, last) => only(last).and_then(name).map(|day| format!("on the last {day} of the month")),
        _ => None,
    }
}

fn month_days(calendar: &Calendar) -> Option<String> {
    let days = all(calendar.days);
    let from_end = match only(calendar.days_from_end) {
        None if calendar.days_from_end != 0 => return None,
        last => last,
    };
    match (days.as_slice(), from_end) {
        ([], Some(1)) => Some("on the day before the last day".to_owned()),
        ([], Some(n @ 2..)) => Some(format!("{n} days before the last day")),
        (_, Some(1..)) => None,
        (days, None) if days.len() > NAMED_MAX => {
            let (first, last) = (*days.first()?, *days.last()?);
            (is_row(days) && last <= SHORTEST_MONTH)
                .then(|| format!("from the {} to the {}", nth(first), nth(last)))
        }
        (days, last) if days.len() <= NAMED_MAX => {
            let mut named: Vec<_> = days.iter().map(|day| nth(*day)).collect();
            named.extend(last.map(|_| "last day".to_owned()));
            Some(format!("on the {}", listed(&named)))
        }
        _ => None,
    }
}

/// The months of some days: "every month". `None` if one of the months may lack one of the days.
fn of_months(days: u64, months: &[i8]) -> Option<String> {
    let last = all(days).last().copied().unwrap_or(0);
    let lacks = |month: &i8| match month {
        2 => last > SHORTEST_MONTH + 1,
        4 | 6 | 9 | 11 => last > SHORTEST_MONTH + 2,
        _ => false,
    };
    match months.len() {
        12 if last <= SHORTEST_MONTH => Some("every month".to_owned()),
        12 if only(days).is_some() => Some("every month that has one".to_owned()),
        12 => None,
        _ => (!months.iter().any(lacks)).then(|| months_named(months)),
    }
}

/// "January and July", "March to October".
fn months_named(months: &[i8]) -> String {
    let name = |month: i8| usize::try_from(month - 1).ok().and_then(|month| MONTHS.get(month)).copied();
    let named: Vec<_> = months.iter().copied().filter_map(name).collect();
    match named.as_slice() {
        [first, _, _, _, .., last] if is_row(months) => format!("{first} to {last}"),
        named => listed(named),
    }
}

/// The only number of a set.
fn only(set: u64) -> Option<i8> {
    let mut values = field::values(set, 0);
    values.next().filter(|_| values.next().is_none())
}

fn all(set: u64) -> Vec<i8> {
    field::values(set, 0).collect()
}

/// Whether the numbers follow each other.
fn is_row(values: &[i8]) -> bool {
    values.iter().zip(values.iter().skip(1)).all(|(one, next)| *next == one + 1)
}

/// The distance between the numbers of a set, if it is even up to the number at which they begin again.
fn step(set: u64, of: i8) -> Option<i64> {
    let values = all(set);
    let distance = match values.as_slice() {
        [0, second, ..] => *second,
        _ => return None,
    };
    let is_even =
        of % distance == 0 && (0..of).step_by(usize::try_from(distance).ok()?).eq(values.iter().copied());
    is_even.then_some(i64::from(distance))
}

fn clock(hour: i8, minute: i8, second: i8) -> String {
    if second == 0 { format!("{hour:02}:{minute:02}") } else { format!("{hour:02}:{minute:02}:{second:02}") }
}

/// "1st", "22nd", "31st".
fn nth(day: i8) -> String {
    let end = match (day % 10, day / 10) {
        (_, 1) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{day}{end}")
}

/// "a", "a and b", "a, b and c".
fn listed(names: &[impl AsRef<str>]) -> String {
    let names: Vec<_> = names.iter().map(AsRef::as_ref).collect();
    match names.split_last() {
        None => String::new(),
        Some((only, [])) => (*only).to_owned(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
    }
}

#[cfg(test)]
mod tests;
