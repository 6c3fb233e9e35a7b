//! Time as the store sees it. The core never reads a clock: it is handed one, or a reading of one.

use std::{fmt, str::FromStr, time::Duration};

use serde::{Deserialize, Serialize};

/// Milliseconds since 1970 by the store's clock. Text form: RFC 3339 in UTC.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    /// From milliseconds since 1970.
    pub const fn from_ms(ms: i64) -> Self {
        Self(ms)
    }

    /// Milliseconds since 1970.
    pub const fn as_ms(self) -> i64 {
        self.0
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

/// The text is not a time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a time: expected RFC 3339 such as 2027-01-31T09:30:00Z")]
pub struct ParseTimestampError(String);

impl FromStr for Timestamp {
    type Err = ParseTimestampError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse::<jiff::Timestamp>()
            .map(|time| Self(time.as_millisecond()))
            .map_err(|_| ParseTimestampError(text.chars().take(40).collect()))
    }
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

/// A clock that somebody hands to a store: the wall clock for due times, monotonic time for leases.
///
/// Keeping the two apart is what makes a jump of the wall clock harmless (CLOCK-FREE).
pub trait Clock: Send + Sync + 'static {
    /// The wall clock. May jump.
    fn wall(&self) -> Timestamp;
    /// Time since an arbitrary start. Never goes back.
    fn monotonic(&self) -> Duration;
}

/// A clock that only moves when told to, for tests.
#[derive(Debug)]
pub struct ManualClock {
    now: std::sync::Mutex<(Timestamp, Duration)>,
}

impl ManualClock {
    /// A clock that stands at `start`.
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
}
