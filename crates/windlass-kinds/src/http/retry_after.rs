//! Reads when a server wants the next request.

use std::time::{Duration, SystemTime};

use http::{
    HeaderMap,
    header::{DATE, RETRY_AFTER},
};

/// Longest wait that a server may ask for; after a longer one the task would look lost.
const RETRY_AFTER_MAX: Duration = Duration::from_hours(1);

/// The wait that an answer asks for, as seconds or as a date; `None` without a valid one.
///
/// A date is measured from the answer's own `Date`, so that a wrong clock on this machine does not matter.
/// Without a `Date` it is measured from `now`.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        // More digits than fit still mean "very long".
        Duration::from_secs(text.parse().unwrap_or(u64::MAX))
    } else {
        let sent_at = headers.get(DATE).and_then(|date| httpdate::parse_http_date(date.to_str().ok()?).ok());
        httpdate::parse_http_date(text).ok()?.duration_since(sent_at.unwrap_or(now)).ok()?
    };
    // A wait of zero is ignored: the policy's delay protects a broken server from too many requests.
    (!wait.is_zero()).then(|| wait.min(RETRY_AFTER_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(retry_after_text: &str, date: Option<&str>) -> Option<u64> {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, retry_after_text.parse().unwrap());
        if let Some(date) = date {
            headers.insert(DATE, date.parse().unwrap());
        }
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        retry_after(&headers, now).map(|wait| wait.as_secs())
    }

    #[test]
    fn seconds_and_dates_are_honoured_up_to_an_hour() {
        for (text, expected) in [
            ("120", Some(120)),
            (" 7 ", Some(7)),
            ("3600", Some(3600)),
            ("3601", Some(3600)),
            ("99999999999999999999999999", Some(3600)),
            ("0", None),
            ("-5", None),
            ("1.5", None),
            ("soon", None),
            ("", None),
            ("Sun, 06 Nov 1994 08:50:37 GMT", Some(60)),
            ("Sunday, 06-Nov-94 08:50:37 GMT", Some(60)),
            ("Sun Nov  6 08:50:37 1994", Some(60)),
            ("Mon, 07 Nov 1994 08:49:37 GMT", Some(3600)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", None),
            ("Sat, 05 Nov 1994 08:49:37 GMT", None),
        ] {
            assert_eq!(wait(text, None), expected, "{text:?}");
        }
    }

    #[test]
    fn a_date_is_measured_by_the_clock_of_the_server() {
        let date = Some("Fri, 01 Jan 2100 00:00:00 GMT");
        assert_eq!(wait("Fri, 01 Jan 2100 00:00:30 GMT", date), Some(30));
        assert_eq!(wait("Fri, 01 Jan 2100 00:00:30 GMT", Some("yesterday")), Some(3600));
    }
}
