//! What a status code means for the task.

use http::StatusCode;

/// The consequence of a status code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Success.
    Done,
    /// Follow the redirect, if the answer has a location.
    Redirect,
    /// Try again later.
    Retry,
    /// Failed for good.
    Dead,
}

/// Decides by the status code.
pub(crate) fn verdict(status: StatusCode) -> Verdict {
    match status.as_u16() {
        200..=299 => Verdict::Done,
        301 | 302 | 303 | 307 | 308 => Verdict::Redirect,
        408 | 425 | 429 | 500..=599 => Verdict::Retry,
        _ => Verdict::Dead,
    }
}
