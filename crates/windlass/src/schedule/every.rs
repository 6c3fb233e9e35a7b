//! `@every 5m`: ticks at even distances, independent of the calendar.

use windlass_core::Timestamp;

/// Longest distance, in seconds: a year. Beyond it the user has probably mistaken the unit.
const SECONDS_MAX: i64 = 366 * 24 * 60 * 60;

/// A distance between ticks, in whole seconds. The ticks are its multiples since 1970 in UTC, so that every
/// process and every restart has the same ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Every {
    seconds: i64,
}

impl Every {
    /// Reads the text after `@every`: `90s`, `5m`, `1h30m`, `1d`.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let expected = || "needs a length of time after @every, such as 30s, 5m, 1h30m or 1d".to_owned();
        let (mut seconds, mut rest) = (0_i64, text);
        while !rest.is_empty() {
            let digits = rest.len() - rest.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
            let (number, tail) = rest.split_at_checked(digits).ok_or_else(expected)?;
            let unit = match tail.chars().next() {
                Some('s') => 1,
                Some('m') if !tail.starts_with("ms") => 60,
                Some('h') => 60 * 60,
                Some('d') => 24 * 60 * 60,
                _ => return Err(expected()),
            };
            let part = number.parse::<i64>().ok().and_then(|number| number.checked_mul(unit));
            seconds = part.and_then(|part| part.checked_add(seconds)).ok_or_else(expected)?;
            rest = tail.get(1..).unwrap_or_default();
        }
        match seconds {
            0 if text.is_empty() => Err(expected()),
            1..=SECONDS_MAX => Ok(Self { seconds }),
            _ => Err("needs 1 second to 366 days after @every".to_owned()),
        }
    }

    /// How long it is.
    pub(super) fn seconds(self) -> i64 {
        self.seconds
    }

    /// The first tick after a time.
    pub(super) fn next_after(self, after: Timestamp) -> Option<Timestamp> {
        let distance = self.seconds.checked_mul(1_000)?;
        let next = after.as_ms().div_euclid(distance).checked_add(1)?.checked_mul(distance)?;
        Some(Timestamp::from_ms(next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_needs_a_unit_and_a_length_within_bounds() {
        for (text, seconds) in
            [("30s", 30), ("5m", 300), ("1h30m", 5_400), ("1d", 86_400), ("1d2h3m4s", 93_784)]
        {
            assert_eq!(Every::read(text), Ok(Every { seconds }), "{text}");
        }
        for text in
            ["", "5", "m", "5 m", "-5m", "1.5h", "500ms", "5m3", "0s", "367d", "99999999999999999999d"]
        {
            assert!(Every::read(text).unwrap_err().contains("@every"), "{text}");
        }
    }

    #[test]
    fn ticks_are_multiples_since_1970() {
        let every = Every { seconds: 300 };
        for (after, next) in [(0, 300_000), (299_999, 300_000), (300_000, 600_000), (-1, 0), (-300_000, 0)] {
            assert_eq!(
                every.next_after(Timestamp::from_ms(after)),
                Some(Timestamp::from_ms(next)),
                "{after}"
            );
        }
    }
}
