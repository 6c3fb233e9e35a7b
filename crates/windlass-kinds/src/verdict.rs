//! What a status means for the task.

use http::StatusCode;

/// The consequence of a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It worked.
    Done,
    /// It is somewhere else, if the answer says where.
    Redirect,
    /// It may work later.
    Retry,
    /// It will never work.
    Dead,
}

/// Judges a status.
pub(crate) fn verdict(status: StatusCode) -> Verdict {
    match status.as_u16() {
        200..=299 => Verdict::Done,
        301 | 302 | 303 | 307 | 308 => Verdict::Redirect,
        408 | 425 | 429 | 500..=599 => Verdict::Retry,
        _ => Verdict::Dead,
    }
}
