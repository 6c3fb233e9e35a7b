//! One field of a cron expression: a set of numbers in a range.

/// The allowed values of a field.
pub(super) struct Field {
    name: &'static str,
    first: i8,
    last: i8,
    names: &'static [&'static str],
}

pub(super) const SECOND: Field = Field { name: "second", first: 0, last: 59, names: &[] };
pub(super) const MINUTE: Field = Field { name: "minute", first: 0, last: 59, names: &[] };
pub(super) const HOUR: Field = Field { name: "hour", first: 0, last: 23, names: &[] };
pub(super) const DAY: Field = Field { name: "day-of-month", first: 1, last: 31, names: &[] };
pub(super) const MONTH: Field = Field {
    name: "month",
    first: 1,
    last: 12,
    names: &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"],
};
/// Sunday is 0 and 7.
pub(super) const WEEKDAY: Field = Field {
    name: "day-of-week",
    first: 0,
    last: 7,
    names: &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"],
};

const SUNDAY_AGAIN: i8 = 7;

/// Whether a set contains a number.
pub(super) fn has(set: u64, value: i8) -> bool {
    u32::try_from(value).is_ok_and(|value| set.checked_shr(value).is_some_and(|rest| rest & 1 == 1))
}

/// The numbers of a set from `from` on, in order.
pub(super) fn values(set: u64, from: i8) -> impl Iterator<Item = i8> {
    (from..=63).filter(move |value| has(set, *value))
}

impl Field {
    /// The set that a text describes: parts separated by commas.
    pub(super) fn read(&self, text: &str) -> Result<u64, String> {
        let mut set = 0;
        for part in text.split(',') {
            set |= self.part(part)?;
        }
        if self.last == SUNDAY_AGAIN && has(set, SUNDAY_AGAIN) {
            set = set & !(1 << SUNDAY_AGAIN) | 1;
        }
        Ok(set)
    }

    /// The same for a field of days, in which `L` counts from the end of the month: `L` and `L-2` among days
    /// of the month, `FRIL` among days of the week. Returns the plain numbers, and those that count from the
    /// end.
    pub(super) fn read_with_last(&self, text: &str) -> Result<(u64, u64), String> {
        let (mut plain, mut last) = (Vec::new(), 0);
        for part in text.split(',') {
            match self.counted_from_end(part)? {
                Some(value) => last |= 1 << value,
                None => plain.push(part),
            }
        }
        let set = if plain.is_empty() { 0 } else { self.read(&plain.join(","))? };
        Ok((set, last))
    }

    /// The meaning of a part with an `L`.
    fn counted_from_end(&self, part: &str) -> Result<Option<i8>, String> {
        let upper = part.to_ascii_uppercase();
        if self.last == SUNDAY_AGAIN {
            // No name of a weekday ends in `L`.
            let Some(weekday) = upper.strip_suffix('L') else { return Ok(None) };
            return Ok(Some(self.value(weekday)? % SUNDAY_AGAIN));
        }
        let Some(before) = upper.strip_prefix('L') else { return Ok(None) };
        if before.is_empty() {
            return Ok(Some(0));
        }
        let days = before.strip_prefix('-').and_then(|days| days.parse::<i8>().ok());
        days.filter(|days| (0..=30).contains(days)).map(Some).ok_or_else(|| {
            format!(
                "{} is {:?}; write L for the last day, or L-1 to L-30 for one before it",
                self.name,
                cut(part)
            )
        })
    }

    /// `*`, `5` or `1-5`, each optionally followed by `/2`.
    fn part(&self, part: &str) -> Result<u64, String> {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(self.step(part, step)?)),
            None => (part, None),
        };
        let (first, last) = match range.split_once('-') {
            _ if range == "*" || range == "?" && matches!(self.name, "day-of-month" | "day-of-week") => {
                // Seven would be Sunday a second time, with a different remainder for steps.
                (self.first, if self.last == SUNDAY_AGAIN { SUNDAY_AGAIN - 1 } else { self.last })
            }
            Some((first, last)) => (self.value(first)?, self.value(last)?),
            None => {
                let value = self.value(range)?;
                (value, if step.is_some() { self.last } else { value })
            }
        };
        // SAT-SUN ends on the second Sunday.
        let last = if self.last == SUNDAY_AGAIN && last == 0 && first > 0 { SUNDAY_AGAIN } else { last };
        if first > last {
            return Err(format!("{} has the range {:?}, which runs backwards", self.name, cut(range)));
        }
        Ok((first..=last).step_by(step.unwrap_or(1)).fold(0, |set, value| set | 1 << value))
    }

    fn step(&self, part: &str, step: &str) -> Result<usize, String> {
        let most = usize::from(self.last.unsigned_abs());
        step.parse().ok().filter(|step| (1..=most).contains(step)).ok_or_else(|| {
            format!("{} has the step {:?}; the number after / must be 1 to {most}", self.name, cut(part))
        })
    }

    fn value(&self, text: &str) -> Result<i8, String> {
        let named = self.names.iter().zip(self.first..).find(|(name, _)| name.eq_ignore_ascii_case(text));
        let number = || {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| text.parse::<i8>().ok()).flatten()
        };
        let value = named.map(|(_, value)| value).or_else(number);
        value.filter(|value| (self.first..=self.last).contains(value)).ok_or_else(|| {
            let words = match (self.names.first(), self.names.last()) {
                (Some(first), Some(last)) => format!(" or {first} to {last}"),
                _ => String::new(),
            };
            format!("{} is {:?}; allowed are {} to {}{words}", self.name, cut(text), self.first, self.last)
        })
    }
}

/// Shortens the user's text for an error.
fn cut(text: &str) -> String {
    text.chars().take(20).collect()
}
