//! Cron expressions: the local times that they select.

use std::{fmt, str::FromStr};

use jiff::civil::{Date, DateTime, Time, date};
use windlass_core::{Error, Result, Timestamp};

use super::{every::Every, field, zone::Zone};

mod words;

/// Longest expression: enough for every field as a list of all its values.
const TEXT_MAX_BYTES: usize = 1_024;
/// The calendar repeats after so many years: a day that has not come by then never comes.
const CALENDAR_YEARS: i16 = 400;

/// Short forms of common expressions.
const SHORT_FORMS: [(&str, &str); 7] = [
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@weekly", "0 0 * * 0"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
];

/// The prefix of a distance between ticks.
const EVERY: &str = "@every";

/// A cron expression: `minute hour day-of-month month day-of-week`, with seconds before them if there are six
/// fields; or a short form such as `@daily` or `@every 5m`.
///
/// ```
/// use windlass::schedule::{Cron, Zone};
///
/// let cron: Cron = "30 8 * * MON-FRI".parse()?;
/// let friday_noon = "2027-01-29T12:00:00Z".parse().unwrap();
/// let next = cron.next_after(friday_noon, &Zone::utc()).unwrap();
/// assert_eq!(next.to_string(), "2027-02-01T08:30:00.000Z");
/// # Ok::<(), windlass::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Cron {
    text: String,
    when: When,
}

/// When the ticks are.
#[derive(Clone, PartialEq, Eq)]
enum When {
    /// At local times of a calendar.
    Calendar(Calendar),
    /// At even distances.
    Every(Every),
}

/// Local times, as sets of numbers per field.
#[derive(Clone, PartialEq, Eq)]
struct Calendar {
    seconds: u64,
    minutes: u64,
    hours: u64,
    days: u64,
    /// Days counted from the end of the month: 0 is the last one.
    days_from_end: u64,
    months: u64,
    weekdays: u64,
    /// Weekdays that are selected only as the last of their kind in the month.
    last_weekdays: u64,
    day_rule: DayRule,
}

/// How day-of-month and day-of-week combine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DayRule {
    /// Both are restricted: a day that matches one of them is selected, as in cron.
    Either,
    /// One begins with `*`: a day must match both.
    Both,
}

impl Cron {
    /// The first time after `after` that the expression selects in a zone; `None` if there is none before the
    /// year 10000.
    ///
    /// A local time that the zone skips fires right after the gap. A local time that occurs twice fires the
    /// first time only. Several times at the same instant fire once. `@every` knows no zone.
    pub fn next_after(&self, after: Timestamp, zone: &Zone) -> Option<Timestamp> {
        match &self.when {
            When::Calendar(calendar) => calendar.next_after(after, zone),
            When::Every(every) => every.next_after(after),
        }
    }

    /// When it fires, in words: "every weekday at 09:00". `None` where short words would leave something out.
    pub fn words(&self) -> Option<String> {
        words::words(&self.when)
    }

    /// The expression as written, with single spaces.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether programs that know format 1 of a stored schedule can read it: they know neither `@every` nor
    /// `L`.
    pub(super) fn is_of_format_1(&self) -> bool {
        match &self.when {
            When::Calendar(calendar) => calendar.days_from_end == 0 && calendar.last_weekdays == 0,
            When::Every(_) => false,
        }
    }
}

impl Calendar {
    fn next_after(&self, after: Timestamp, zone: &Zone) -> Option<Timestamp> {
        // Local times are mapped in order; those up to the local time of `after` have passed. After a change
        // back of the clocks some later ones have passed too, hence the loop: it runs at most through the
        // repeated hour.
        let mut local = zone.local(after)?.checked_add(jiff::Span::new().seconds(1)).ok()?;
        loop {
            let meant = self.at_or_after(local)?;
            let instant = zone.instant(meant)?;
            if instant > after {
                return Some(instant);
            }
            local = meant.checked_add(jiff::Span::new().seconds(1)).ok()?;
        }
    }

    /// The first local time from `from` on, in whole seconds, that the expression selects.
    fn at_or_after(&self, from: DateTime) -> Option<DateTime> {
        let mut day = from.date();
        let mut time = from.time();
        let last_year = day.year().saturating_add(CALENDAR_YEARS);
        while day.year() <= last_year {
            if !field::has(self.months, day.month()) {
                day = day.last_of_month().tomorrow().ok()?;
            } else if let Some(time) = self.means_day(day).then(|| self.time_at_or_after(time)).flatten() {
                return Some(day.to_datetime(time));
            } else {
                day = day.tomorrow().ok()?;
            }
            time = Time::midnight();
        }
        None
    }

    fn means_day(&self, day: Date) -> bool {
        let from_end = day.days_in_month() - day.day();
        let weekday = day.weekday().to_sunday_zero_offset();
        let of_month = field::has(self.days, day.day()) || field::has(self.days_from_end, from_end);
        let of_week =
            field::has(self.weekdays, weekday) || from_end < 7 && field::has(self.last_weekdays, weekday);
        match self.day_rule {
            DayRule::Either => of_month || of_week,
            DayRule::Both => of_month && of_week,
        }
    }

    fn time_at_or_after(&self, from: Time) -> Option<Time> {
        let (hour, minute, second) = (from.hour(), from.minute(), from.second());
        for h in field::values(self.hours, hour) {
            for m in field::values(self.minutes, if h == hour { minute } else { 0 }) {
                let first = if (h, m) == (hour, minute) { second } else { 0 };
                if let Some(s) = field::values(self.seconds, first).next() {
                    return Time::new(h, m, s, 0).ok();
                }
            }
        }
        None
    }
}

impl FromStr for Cron {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = |problem: &str| {
            let shown: String = text.chars().take(60).collect();
            Error::invalid(format!("cron {shown:?}: {problem}"))
        };
        if text.len() > TEXT_MAX_BYTES {
            return Err(wrong(&format!("is {} bytes long; at most {TEXT_MAX_BYTES}", text.len())));
        }
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let when = if let Some(distance) = strip_every(&text) {
            Every::read(distance).map(When::Every)
        } else if text.starts_with('@') {
            long_form(&text).and_then(Calendar::read).map(When::Calendar)
        } else {
            Calendar::read(&text).map(When::Calendar)
        };
        Ok(Self { when: when.map_err(|problem| wrong(&problem))?, text })
    }
}

impl Calendar {
    fn read(text: &str) -> Result<Self, String> {
        let fields: Vec<&str> = text.split(' ').filter(|field| !field.is_empty()).collect();
        let (second, fields) = match *fields.as_slice() {
            [minute, hour, day, month, weekday] => ("0", [minute, hour, day, month, weekday]),
            [second, minute, hour, day, month, weekday] => (second, [minute, hour, day, month, weekday]),
            _ => {
                return Err(format!(
                    "has {} fields; 5 are expected (minute hour day-of-month month day-of-week), or 6 with seconds first",
                    fields.len()
                ));
            }
        };
        let [minute, hour, day, month, weekday] = fields;
        let is_open = |text: &str| text.starts_with(['*', '?']);
        let (days, days_from_end) = field::DAY.read_with_last(day)?;
        let (weekdays, last_weekdays) = field::WEEKDAY.read_with_last(weekday)?;
        let calendar = Self {
            seconds: field::SECOND.read(second)?,
            minutes: field::MINUTE.read(minute)?,
            hours: field::HOUR.read(hour)?,
            days,
            days_from_end,
            months: field::MONTH.read(month)?,
            weekdays,
            last_weekdays,
            day_rule: if is_open(day) || is_open(weekday) { DayRule::Both } else { DayRule::Either },
        };
        if calendar.at_or_after(date(2000, 1, 1).at(0, 0, 0, 0)).is_none() {
            return Err("never fires: no month that it names has such a day".to_owned());
        }
        Ok(calendar)
    }
}

/// The rest after `@every`, if the text begins with that.
fn strip_every(text: &str) -> Option<&str> {
    let (head, distance) = text.split_once(' ').unwrap_or((text, ""));
    head.eq_ignore_ascii_case(EVERY).then_some(distance)
}

fn long_form(text: &str) -> Result<&'static str, String> {
    let found = SHORT_FORMS.iter().find(|(short, _)| short.eq_ignore_ascii_case(text));
    found.map(|(_, long)| *long).ok_or_else(|| {
        let known: Vec<_> = SHORT_FORMS.iter().map(|(short, _)| *short).collect();
        format!("is not a short form; known are {}, @every 5m", known.join(", "))
    })
}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl fmt::Debug for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.text)
    }
}

#[cfg(test)]
mod tests;
