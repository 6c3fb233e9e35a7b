//! Cron expressions: which local times they mean.

use std::{fmt, str::FromStr};

use jiff::civil::{Date, DateTime, Time, date};
use windlass_core::{Error, Result, Timestamp};

use super::{field, zone::Zone};

/// Longest expression: every field as a list of all its values fits.
const TEXT_MAX_BYTES: usize = 1_024;
/// After so many years the calendar repeats itself: a day that has not come by then never comes.
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

/// A cron expression: `minute hour day-of-month month day-of-week`, with seconds before them if there are six fields.
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
    seconds: u64,
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    day_rule: DayRule,
}

/// How day-of-month and day-of-week meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DayRule {
    /// Both are restricted: a day that fits one of them is meant, as cron has it.
    Either,
    /// One begins with `*`: a day must fit both.
    Both,
}

impl Cron {
    /// The first time after `after` that the expression means in a zone; `None` if there is none before the year 10000.
    ///
    /// A local time that the zone skips comes right after the gap, and one that it has twice comes the first time only.
    /// Several that fall on the same instant are one.
    pub fn next_after(&self, after: Timestamp, zone: &Zone) -> Option<Timestamp> {
        // Local times are mapped in order, and those up to the local time of `after` are over. After clocks were set back some
        // later ones are over as well, hence the loop: it goes through the repeated hour at most.
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

    /// The first local time from `from` on, whole seconds, that the expression means.
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
        let of_month = field::has(self.days, day.day());
        let of_week = field::has(self.weekdays, day.weekday().to_sunday_zero_offset());
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

    /// The expression as it was written, with single spaces.
    pub fn as_str(&self) -> &str {
        &self.text
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
        let long =
            if text.starts_with('@') { long_form(&text).map_err(|problem| wrong(&problem))? } else { &text };
        let fields: Vec<&str> = long.split(' ').filter(|field| !field.is_empty()).collect();
        let (second, fields) = match *fields.as_slice() {
            [minute, hour, day, month, weekday] => ("0", [minute, hour, day, month, weekday]),
            [second, minute, hour, day, month, weekday] => (second, [minute, hour, day, month, weekday]),
            _ => {
                return Err(wrong(&format!(
                    "has {} fields; 5 are expected (minute hour day-of-month month day-of-week), or 6 with seconds first",
                    fields.len()
                )));
            }
        };
        let [minute, hour, day, month, weekday] = fields;
        let read = |field: &field::Field, text| field.read(text).map_err(|problem| wrong(&problem));
        let is_open = |text: &str| text.starts_with(['*', '?']);
        let cron = Self {
            seconds: read(&field::SECOND, second)?,
            minutes: read(&field::MINUTE, minute)?,
            hours: read(&field::HOUR, hour)?,
            days: read(&field::DAY, day)?,
            months: read(&field::MONTH, month)?,
            weekdays: read(&field::WEEKDAY, weekday)?,
            day_rule: if is_open(day) || is_open(weekday) { DayRule::Both } else { DayRule::Either },
            text: text.clone(),
        };
        if cron.at_or_after(date(2000, 1, 1).at(0, 0, 0, 0)).is_none() {
            return Err(wrong("never fires: no month that it names has such a day"));
        }
        Ok(cron)
    }
}

fn long_form(text: &str) -> Result<&'static str, String> {
    let found = SHORT_FORMS.iter().find(|(short, _)| short.eq_ignore_ascii_case(text));
    found.map(|(_, long)| *long).ok_or_else(|| {
        let known: Vec<_> = SHORT_FORMS.iter().map(|(short, _)| *short).collect();
        format!("is not a short form; known are {}", known.join(", "))
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
