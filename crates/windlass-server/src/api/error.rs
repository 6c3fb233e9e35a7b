//! The one shape of every error.

use serde::{Deserialize, Serialize};
use windlass_core::Error;

/// A stable name of the cause. Clients decide by it, never by the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The input breaks a rule; the message names the field.
    Invalid,
    /// A body, a payload or a batch is over its limit.
    TooLarge,
    /// There is no such task, queue, worker or route.
    NotFound,
    /// The route exists, but not with this method.
    MethodNotAllowed,
    /// The body is not declared to be JSON.
    UnsupportedMediaType,
    /// The server does not know the caller: its token is missing, unknown, revoked or expired.
    Unauthorized,
    /// The caller may not do this, or the Host or the Origin is not one that this server answers to.
    Forbidden,
    /// The caller calls too often; try again in a second.
    RateLimited,
    /// The task is in a state in which this cannot be done.
    Conflict,
    /// The idempotency key belongs to a task with another kind or payload.
    KeyConflict,
    /// The disk has too little room.
    StoreFull,
    /// The store or the server cannot take this now; try again.
    Unavailable,
    /// The request did not arrive in time.
    Timeout,
    /// The call may have taken effect; look before you repeat it.
    UnknownOutcome,
    /// The lease is no longer held.
    LeaseLost,
    /// The worker's registration has expired.
    WorkerExpired,
    /// This store or this version cannot do that.
    Unsupported,
    /// The store is beyond use.
    StoreFailed,
    /// A code that this version does not know.
    #[serde(other)]
    Unrecognised,
}

impl ErrorCode {
    /// Whether the same call may succeed later without any change by the caller.
    pub fn is_retryable(self) -> bool {
        matches!(self, Self::Unavailable | Self::StoreFull | Self::Timeout | Self::RateLimited)
    }
}

/// What went wrong and what to do about it. Also the error of every operation, so that a caller with a
/// store of its own and a caller of the API see the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct ErrorDetail {
    /// The cause.
    pub code: ErrorCode,
    /// One line for people, never a piece of a payload.
    pub message: String,
    /// What to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// The body of every answer that is not a success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// The error.
    pub error: ErrorDetail,
}

impl ErrorDetail {
    /// An error without a hint.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None }
    }

    /// The same with a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The input breaks a rule.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Invalid, message)
    }
}

impl From<Error> for ErrorDetail {
    fn from(error: Error) -> Self {
        let (code, hint) = match &error {
            Error::Unavailable(_) => (ErrorCode::Unavailable, Some("try again in a moment".to_owned())),
            Error::Unknown(_) => (
                ErrorCode::UnknownOutcome,
                Some("check whether it took effect; an enqueue with a key can be repeated safely".to_owned()),
            ),
            Error::StoreFull(_) => (
                ErrorCode::StoreFull,
                Some("free disk space or shorten history_days; running tasks go on".to_owned()),
            ),
            Error::Invalid(_) => (ErrorCode::Invalid, None),
            Error::NotFound(_) => (ErrorCode::NotFound, None),
            Error::Conflict(_) => (ErrorCode::Conflict, None),
            Error::KeyConflict { .. } => (
                ErrorCode::KeyConflict,
                Some(
                    "use another key, or set ignore_key_conflict to get the existing task: `windlass enqueue KIND --key KEY \
                     --ignore-key-conflict`"
                        .to_owned(),
                ),
            ),
            Error::LeaseLost(_) => (ErrorCode::LeaseLost, None),
            Error::WorkerExpired => (ErrorCode::WorkerExpired, None),
            Error::Unsupported(_) => (ErrorCode::Unsupported, None),
            Error::Fatal(_) => {
                (ErrorCode::StoreFailed, Some("read the server's log, then restart it".to_owned()))
            }
        };
        Self { code, message: error.to_string(), hint }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_store_error_keeps_its_code() {
        let id = windlass_core::TaskId::from_raw(1);
        for error in [
            Error::Unavailable(String::new()),
            Error::Unknown(String::new()),
            Error::StoreFull(String::new()),
            Error::Invalid(String::new()),
            Error::NotFound(String::new()),
            Error::Conflict(String::new()),
            Error::KeyConflict { key: String::new(), existing: id },
            Error::LeaseLost(id),
            Error::WorkerExpired,
            Error::Unsupported(String::new()),
            Error::Fatal(String::new()),
        ] {
            let detail = ErrorDetail::from(error.clone());
            assert_eq!(serde_json::to_value(detail.code).unwrap(), error.code());
        }
    }

    #[test]
    fn a_code_of_a_newer_server_is_read_as_unrecognised() {
        let body: ErrorBody = serde_json::from_str(r#"{"error":{"code":"moon","message":"m"}}"#).unwrap();
        assert_eq!(body.error, ErrorDetail::new(ErrorCode::Unrecognised, "m"));
    }
}
