//! Time zones: from an instant to the local time and back, across changes of the clocks.

use std::{fmt, str::FromStr};

use jiff::{
    civil::DateTime,
    tz::{AmbiguousOffset, TimeZone},
};
use windlass_core::{Error, Result, Timestamp};

/// A time zone by its IANA name, such as `Europe/Berlin`.
///
/// Uses the zones of the machine if it has some, else those built into the program.
#[derive(Clone, PartialEq, Eq)]
pub struct Zone {
    name: String,
    rules: TimeZone,
}

impl Zone {
    /// Coordinated universal time, whose clocks never change.
    pub fn utc() -> Self {
        Self { name: "UTC".to_owned(), rules: TimeZone::UTC }
    }

    /// Its name.
    pub fn as_str(&self) -> &str {
        &self.name
    }

    /// An instant as RFC 3339 with the offset of the zone, in whole seconds: `2027-02-01T08:30:00+01:00`.
    pub fn text(&self, at: Timestamp) -> String {
        let Ok(second) = jiff::Timestamp::from_second(at.as_ms().div_euclid(1_000)) else {
            return at.to_string();
        };
        second.display_with_offset(self.rules.to_offset(second)).to_string()
    }

    /// The local time of an instant, in whole seconds; `None` outside of the calendar's years.
    pub(super) fn local(&self, at: Timestamp) -> Option<DateTime> {
        let second = jiff::Timestamp::from_second(at.as_ms().div_euclid(1_000)).ok()?;
        Some(self.rules.to_datetime(second))
    }

    /// The instant of a local time: right after the gap if the clocks skip it, the first one if it occurs
    /// twice.
    pub(super) fn instant(&self, local: DateTime) -> Option<Timestamp> {
        let instant = match self.rules.to_ambiguous_timestamp(local).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(local).ok()?,
            AmbiguousOffset::Fold { before, .. } => before.to_timestamp(local).ok()?,
            AmbiguousOffset::Gap { after, .. } => {
                // Computed with the offset after the gap, the instant lies before the gap, so the next change
                // is the gap.
                let before_gap = after.to_timestamp(local).ok()?;
                self.rules.following(before_gap).next()?.timestamp()
            }
        };
        Some(Timestamp::from_ms(instant.as_millisecond()))
    }
}

impl FromStr for Zone {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        if name.eq_ignore_ascii_case("utc") {
            return Ok(Self::utc());
        }
        let shown: String = name.chars().take(60).collect();
        let rules = TimeZone::get(name).map_err(|_| {
            Error::invalid(format!(
                "tz {shown:?} is not a known time zone; write its IANA name, such as Europe/Berlin or UTC"
            ))
        })?;
        let name = rules.iana_name().unwrap_or(name).to_owned();
        Ok(Self { name, rules })
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name)
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_built_in_for_a_machine_without_any() {
        let bundled = jiff::tz::TimeZoneDatabase::bundled();
        assert!(bundled.get("Europe/Berlin").is_ok());
    }

    #[test]
    fn a_name_that_is_no_zone_is_refused() {
        for name in ["", "Europe/Berln", "local", "+02:00", "../../etc/passwd", &"x".repeat(9_000)] {
            let error = name.parse::<Zone>().unwrap_err().to_string();
            assert!(error.contains("IANA") && error.len() < 300, "{name}: {error}");
        }
        assert_eq!("europe/berlin".parse::<Zone>().unwrap().as_str(), "Europe/Berlin");
    }

    #[test]
    fn an_instant_is_told_with_the_offset_of_its_time_of_year() {
        let zone: Zone = "Europe/Berlin".parse().unwrap();
        let told = |at: &str| zone.text(at.parse().unwrap());
        assert_eq!(told("2027-02-01T02:00:00.500Z"), "2027-02-01T03:00:00+01:00");
        assert_eq!(told("2027-07-01T02:00:00Z"), "2027-07-01T04:00:00+02:00");
        assert_eq!(Zone::utc().text(Timestamp::from_ms(0)), "1970-01-01T00:00:00+00:00");
    }

    #[test]
    fn instants_before_1970_have_a_local_time() {
        let at = Timestamp::from_ms(-1);
        assert_eq!(Zone::utc().local(at).unwrap().to_string(), "1969-12-31T23:59:59");
    }
}
