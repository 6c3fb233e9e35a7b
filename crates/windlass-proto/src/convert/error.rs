//! Errors of a store as a message without loss: a remote caller decides the same way as a local one.

use windlass_core::Error;

use super::task_id;
use crate::v1;

/// The message of an error.
pub fn message_of(error: &Error) -> v1::Error {
    let mut message =
        v1::Error { code: error.code().to_owned(), message: error.to_string(), ..v1::Error::default() };
    match error {
        Error::Unavailable(detail)
        | Error::Unknown(detail)
        | Error::StoreFull(detail)
        | Error::Invalid(detail)
        | Error::NotFound(detail)
        | Error::Conflict(detail)
        | Error::Unsupported(detail)
        | Error::Fatal(detail) => message.detail.clone_from(detail),
        Error::KeyConflict { key, existing } => {
            message.key.clone_from(key);
            message.task_id = existing.to_string();
        }
        Error::LeaseLost(id) => message.task_id = id.to_string(),
        Error::WorkerExpired => {}
    }
    message
}

/// The error of a message. A code that this version does not know is an unknown outcome: the caller must
/// check.
pub fn error_of(message: &v1::Error) -> Error {
    let detail = || {
        let text = if message.detail.is_empty() { &message.message } else { &message.detail };
        text.clone()
    };
    let id = || task_id(&message.task_id);
    match message.code.as_str() {
        "unavailable" | "timeout" | "rate_limited" => Error::Unavailable(detail()),
        "store_full" => Error::StoreFull(detail()),
        "invalid" | "too_large" | "forbidden" | "unauthorized" => Error::Invalid(detail()),
        "not_found" => Error::NotFound(detail()),
        "conflict" => Error::Conflict(detail()),
        "worker_expired" => Error::WorkerExpired,
        "unsupported" => Error::Unsupported(detail()),
        // The server's store has failed, not ours: another server may have a working one.
        "store_failed" => Error::Unavailable(message.message.clone()),
        "key_conflict" if let Ok(existing) = id() => {
            Error::KeyConflict { key: message.key.clone(), existing }
        }
        "lease_lost" if let Ok(id) = id() => Error::LeaseLost(id),
        _ => Error::Unknown(detail()),
    }
}

#[cfg(test)]
mod tests {
    use windlass_core::TaskId;

    use super::*;

    #[test]
    fn every_error_is_converted_back_but_a_failed_store() {
        let text = || "t".to_owned();
        for error in [
            Error::Unavailable(text()),
            Error::Unknown(text()),
            Error::StoreFull(text()),
            Error::Invalid(text()),
            Error::NotFound(text()),
            Error::Conflict(text()),
            Error::KeyConflict { key: text(), existing: TaskId::from_raw(7) },
            Error::LeaseLost(TaskId::from_raw(7)),
            Error::WorkerExpired,
            Error::Unsupported(text()),
        ] {
            assert_eq!(error_of(&message_of(&error)), error);
        }
        assert!(matches!(error_of(&message_of(&Error::Fatal(text()))), Error::Unavailable(_)));
    }
}
