//! Durations and times as users type them: `5m`, `1h30m`, `500ms`, `2027-01-31 09:30`.

use std::time::Duration;

use jiff::{Span, SpanRelativeTo, civil::DateTime, tz::TimeZone};
use windlass_core::{Timestamp, time::ParseTimestampError};

/// Longest duration that is accepted; a longer one is a typing error.
const LONGEST: Duration = Duration::from_hours(24 * 3_660);

/// Reads a duration with its unit.
pub fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a duration; write it like 500ms, 30s, 5m or 1h30m");
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("{text:?} has no unit; write it like {text}s or {text}ms"));
    }
    let span: Span = text.trim().parse().map_err(|_| wrong())?;
    let duration = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| wrong())?;
    let duration = Duration::try_from(duration).map_err(|_| format!("{text:?} is a negative duration"))?;
    if duration > LONGEST {
        return Err(format!("{text:?} is longer than ten years"));
    }
    Ok(duration)
}

/// Reads a time: RFC 3339, or a local date and time without an offset.
pub fn parse_time(text: &str) -> Result<Timestamp, String> {
    match text.parse::<Timestamp>() {
        Ok(time) => return Ok(time),
        Err(error @ ParseTimestampError::Range(_)) => return Err(error.to_string()),
        Err(ParseTimestampError::Form(_)) => {}
    }
    let wrong = || format!("{text:?} is not a time; write it like 2027-01-31T09:30:00Z or 2027-01-31 09:30");
    let local: DateTime = text.parse().map_err(|_| wrong())?;
    let time = local.to_zoned(TimeZone::system()).map_err(|_| wrong())?;
    Ok(Timestamp::from_ms(time.timestamp().as_millisecond()))
}

/// Reads "since": a duration back from now, or a time.
pub fn parse_since(text: &str) -> Result<Timestamp, String> {
    match parse(text) {
        Ok(back) => Ok(now().before(back)),
        Err(_) => parse_time(text).map_err(|error| match text.parse::<Timestamp>() {
            Err(ParseTimestampError::Range(_)) => error,
            _ => format!("{text:?} is neither a duration like 10m nor a time like 2027-01-31T09:30:00Z"),
        }),
    }
}

/// The wall clock of this machine.
pub fn now() -> Timestamp {
    Timestamp::from_ms(jiff::Timestamp::now().as_millisecond())
}

/// A duration in the shortest exact form that [`parse`] reads.
pub fn exact(duration: Duration) -> String {
    let ms = duration.as_millis();
    let units = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)];
    if ms > 0 {
        for (unit, size) in units {
            if ms.is_multiple_of(size) {
                return format!("{}{unit}", ms / size);
            }
        }
    }
    format!("{ms}ms")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_users_write_them() {
        for (text, ms) in
            [("5m", 300_000), ("30s", 30_000), ("500ms", 500), ("1h30m", 5_400_000), ("2d", 172_800_000)]
        {
            assert_eq!(parse(text).unwrap(), Duration::from_millis(ms), "{text}");
        }
    }

    #[test]
    fn invalid_durations_are_refused_with_an_example() {
        for text in ["", "5", "-5m", "soon", "99999999h", "5x"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse("5").unwrap_err().contains("5s"));
    }

    #[test]
    fn times_with_an_offset_do_not_depend_on_this_machine() {
        assert_eq!(parse_time("2027-01-31T09:30:00+01:00").unwrap().to_string(), "2027-01-31T08:30:00.000Z");
        assert!(parse_time("2027-01-31 09:30").is_ok());
        assert!(parse_time("tomorrow").is_err());
    }

    #[test]
    fn exact_form_is_read_back_as_the_same_duration() {
        for ms in [1, 500, 1_000, 1_500, 60_000, 5_400_000, 604_800_000] {
            let duration = Duration::from_millis(ms);
            assert_eq!(parse(&exact(duration)).unwrap(), duration);
        }
    }
}
