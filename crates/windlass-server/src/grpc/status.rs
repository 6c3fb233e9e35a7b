//! Errors: the same sentences as over HTTP, a status code that standard clients understand, and a trailer
//! with the complete error.

use prost::Message;
use tonic::{
    Code, Status,
    metadata::{MetadataMap, MetadataValue},
};
use windlass_core::Error;
use windlass_proto::{ERROR_TRAILER, convert::message_of, v1};

use crate::{
    api::{ErrorCode, ErrorDetail},
    operations::Refused,
};

/// The gRPC status of an error.
pub(super) fn status(error: impl Into<Refusal>) -> Status {
    let Refusal { mut detail, mut message } = error.into();
    clip(&mut detail.message);
    clip(&mut message.message);
    clip(&mut message.hint);
    clip(&mut message.detail);
    let code = code(detail.code);
    if code == Code::Internal {
        tracing::error!(code = ?detail.code, message = %detail.message, "a call failed");
    }
    let mut trailers = MetadataMap::new();
    trailers.insert_bin(ERROR_TRAILER, MetadataValue::from_bytes(&message.encode_to_vec()));
    Status::with_metadata(code, detail.message, trailers)
}

/// Most bytes of a status text. The text travels as a header, percent-encoded, and once more in the trailer.
/// A client accepts 16 KiB of headers, and closes the connection if there are more.
const TEXT_MAX_BYTES: usize = 1_000;

/// Cuts a text that repeats the caller's input.
fn clip(text: &mut String) {
    if text.len() > TEXT_MAX_BYTES {
        let end = (0..=TEXT_MAX_BYTES).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
}

/// An error with its protobuf message.
pub(super) struct Refusal {
    detail: ErrorDetail,
    message: v1::Error,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let mut message = message_of(&error);
        let detail = ErrorDetail::from(error);
        message.hint = detail.hint.clone().unwrap_or_default();
        Self { detail, message }
    }
}

impl From<ErrorDetail> for Refusal {
    fn from(detail: ErrorDetail) -> Self {
        let code = serde_json::to_value(detail.code).ok();
        let message = v1::Error {
            code: code.as_ref().and_then(|code| code.as_str()).unwrap_or_default().to_owned(),
            message: detail.message.clone(),
            hint: detail.hint.clone().unwrap_or_default(),
            ..v1::Error::default()
        };
        Self { detail, message }
    }
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Checked(detail) => detail.into(),
            Refused::Store(error) => error.into(),
        }
    }
}

fn code(code: ErrorCode) -> Code {
    match code {
        ErrorCode::Invalid | ErrorCode::UnsupportedMediaType => Code::InvalidArgument,
        ErrorCode::TooLarge => Code::OutOfRange,
        ErrorCode::NotFound => Code::NotFound,
        ErrorCode::Unauthorized => Code::Unauthenticated,
        ErrorCode::Forbidden => Code::PermissionDenied,
        ErrorCode::KeyConflict => Code::AlreadyExists,
        ErrorCode::Conflict | ErrorCode::LeaseLost | ErrorCode::WorkerExpired => Code::FailedPrecondition,
        ErrorCode::StoreFull | ErrorCode::RateLimited => Code::ResourceExhausted,
        ErrorCode::Unavailable => Code::Unavailable,
        ErrorCode::Timeout => Code::DeadlineExceeded,
        ErrorCode::Unsupported | ErrorCode::MethodNotAllowed => Code::Unimplemented,
        // A client may repeat an Unavailable call without asking. This call may have taken effect, so its
        // code is another one.
        ErrorCode::UnknownOutcome => Code::Unknown,
        ErrorCode::StoreFailed | ErrorCode::Unrecognised => Code::Internal,
    }
}

#[cfg(test)]
mod tests {
    use windlass_proto::convert::error_of;

    use super::*;

    #[test]
    fn a_status_that_repeats_a_long_text_fits_into_headers() {
        let status = status(Error::invalid("ä\0".repeat(100_000)));
        let sent = status.into_http::<()>();
        let bytes: usize = sent.headers().iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
        assert!(bytes < 8 << 10, "{bytes}");
    }

    #[test]
    fn a_status_has_the_http_sentence_and_the_error_as_trailer() {
        let id = windlass_core::TaskId::from_raw(5);
        for (error, code) in [
            (Error::LeaseLost(id), Code::FailedPrecondition),
            (Error::KeyConflict { key: "k".into(), existing: id }, Code::AlreadyExists),
            (Error::Unavailable("x".into()), Code::Unavailable),
            (Error::Unknown("x".into()), Code::Unknown),
            (Error::invalid("x"), Code::InvalidArgument),
        ] {
            let status = status(error.clone());
            assert_eq!(
                (status.code(), status.message()),
                (code, ErrorDetail::from(error.clone()).message.as_str())
            );
            let trailer = status.metadata().get_bin(ERROR_TRAILER).unwrap().to_bytes().unwrap();
            assert_eq!(error_of(&v1::Error::decode(trailer).unwrap()), error);
        }
    }
}
