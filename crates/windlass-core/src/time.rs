//! Time as the store sees it. The core never reads a clock: callers pass a clock or a reading.

use std::{fmt, str::FromStr, time::Duration};

use serde::{Deserialize, Serialize};

/// Milliseconds since 1970 by the store's clock. Text form: RFC 3339 in UTC.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The times that have a text form, for people.
    pub const RANGE: &str = "a time is from -009999-01-02T01:59:59Z to 9999-12-30T22:00:00Z";

    /// From milliseconds since 1970.
    pub const fn from_ms(ms: i64) -> Self {
        Self(ms)
    }

    /// Milliseconds since 1970.
    pub const fn as_ms(self) -> i64 {
        self.0
    }

    /// Whether the time is in the range that has a text form.
    pub fn has_text(self) -> bool {
        jiff::Timestamp::from_millisecond(self.0).is_ok()
    }

    /// This time plus a duration; saturates.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }

    /// This time minus a duration; saturates.
    #[must_use]
    pub fn before(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }

    /// How long it is from `earlier` to this time; zero if it is not later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0).max(0) as u64)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(time) => write!(f, "{time:.3}"),
            Err(_) => write!(f, "{} ms", self.0),
        }
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Why a text is not a time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseTimestampError {
    /// The text has another form.
    #[error("{0:?} is not a time: expected RFC 3339 such as 2027-01-31T09:30:00Z")]
    Form(String),
    /// The time is outside of the range.
    #[error("{0:?} is out of range: {range}", range = Timestamp::RANGE)]
    Range(String),
}

impl FromStr for Timestamp {
    type Err = ParseTimestampError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(time) = text.parse::<jiff::Timestamp>().map(|time| Self(time.as_millisecond()))
            && time.has_text()
        {
            return Ok(time);
        }
        let shown = text.chars().take(40).collect();
        Err(if is_far_away(text) {
            ParseTimestampError::Range(shown)
        } else {
            ParseTimestampError::Form(shown)
        })
    }
}

/// Whether a text has the form of a date and a time in a year that is not fully inside the range.
fn is_far_away(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let mut parts = unsigned.splitn(3, '-');
    let (Some(year), Some(month), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let Some((day, time)) = rest.split_once(['T', 't', ' ']) else { return false };
    let are_digits = [year, month, day].iter().all(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
    let is_far = year.len() > 4 || year == "9999";
    are_digits && is_far && month.len() == 2 && day.len() == 2 && time.contains(':')
}

impl Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The clock that a caller gives to a store: the wall clock for due times, monotonic time for leases.
///
/// A jump of the wall clock is harmless because leases do not use it (CLOCK-FREE).
pub trait Clock: Send + Sync + 'static {
    /// The wall clock. May jump.
    fn wall(&self) -> Timestamp;
    /// Time since an arbitrary start. Never goes back.
    fn monotonic(&self) -> Duration;
}

/// A clock that moves only when a test moves it.
#[derive(Debug)]
pub struct ManualClock {
    now: std::sync::Mutex<(Timestamp, Duration)>,
}

impl ManualClock {
    /// A clock that shows `start`.
    pub fn new(start: Timestamp) -> Self {
        Self { now: std::sync::Mutex::new((start, Duration::ZERO)) }
    }

    /// Moves both the wall clock and monotonic time.
    pub fn advance(&self, by: Duration) {
        let mut now = self.now.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *now = (now.0.after(by), now.1 + by);
    }

    /// Moves the wall clock alone, as an operator or NTP would.
    pub fn jump_wall(&self, to: Timestamp) {
        self.now.lock().unwrap_or_else(std::sync::PoisonError::into_inner).0 = to;
    }
}

impl Clock for ManualClock {
    fn wall(&self) -> Timestamp {
        self.now.lock().unwrap_or_else(std::sync::PoisonError::into_inner).0
    }

    fn monotonic(&self) -> Duration {
        self.now.lock().unwrap_or_else(std::sync::PoisonError::into_inner).1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_is_rfc_3339_in_utc() {
        let time: Timestamp = "2026-11-15T20:15:00.250+01:00".parse().unwrap();
        assert_eq!(time.to_string(), "2026-11-15T19:15:00.250Z");
        assert_eq!(time.to_string().parse::<Timestamp>().unwrap(), time);
    }

    #[test]
    fn an_out_of_range_error_names_the_range() {
        for text in ["9999-12-31T23:59:59Z", "10000-01-01T00:00:00Z", "+123456-01-01T00:00:00Z"] {
            let error = text.parse::<Timestamp>().unwrap_err();
            assert_eq!(error.to_string(), format!("{text:?} is out of range: {}", Timestamp::RANGE));
        }
        for text in ["", "soon", "2027", "2027-01-31", "10000-01-01", "2027-02-30T00:00:00Z", "1-2-3T:"] {
            assert!(matches!(text.parse::<Timestamp>(), Err(ParseTimestampError::Form(_))), "{text:?}");
        }
    }

    #[test]
    fn the_documented_range_is_exact() {
        let bounds: Vec<&str> =
            Timestamp::RANGE.split_whitespace().filter(|word| word.ends_with('Z')).collect();
        let [first, last] = bounds[..] else { panic!("{bounds:?}") };
        let (first, last): (Timestamp, Timestamp) = (first.parse().unwrap(), last.parse().unwrap());
        assert!(first.has_text() && last.has_text());
        assert!(!Timestamp::from_ms(first.as_ms() - 1).has_text());
        assert!(!Timestamp::from_ms(last.as_ms() + 1).has_text());
    }
}
