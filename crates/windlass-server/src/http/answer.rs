//! Answers: JSON with a status; an error's status follows from its code.

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use tracing::error;

use crate::api::{ErrorBody, ErrorCode, ErrorDetail};

/// An answer as JSON.
pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => {
            let mut response = Response::new(Body::from(bytes));
            *response.status_mut() = status;
            let json = HeaderValue::from_static("application/json");
            response.headers_mut().insert(header::CONTENT_TYPE, json);
            response
        }
        // Our own types always have a JSON form; without one the answer is a bare status.
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// A success as JSON.
pub(super) fn ok(value: &impl Serialize) -> Response {
    json(StatusCode::OK, value)
}

/// A success as text of a content type.
pub(super) fn plain(content_type: &'static str, text: String) -> Response {
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// Seconds after which a client may try again.
const RETRY_AFTER_S: &str = "1";

impl IntoResponse for ErrorDetail {
    fn into_response(self) -> Response {
        let status = status(self.code);
        if status == StatusCode::INTERNAL_SERVER_ERROR {
            error!(code = ?self.code, message = %self.message, "a request failed");
        }
        let retryable = self.code.is_retryable();
        let mut response = json(status, &ErrorBody { error: self });
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if retryable {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_S));
        }
        response
    }
}

fn status(code: ErrorCode) -> StatusCode {
    match code {
        ErrorCode::Invalid => StatusCode::BAD_REQUEST,
        ErrorCode::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorCode::NotFound => StatusCode::NOT_FOUND,
        ErrorCode::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        ErrorCode::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ErrorCode::Unauthorized => StatusCode::UNAUTHORIZED,
        ErrorCode::Forbidden => StatusCode::FORBIDDEN,
        ErrorCode::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        ErrorCode::Conflict | ErrorCode::KeyConflict | ErrorCode::LeaseLost | ErrorCode::WorkerExpired => {
            StatusCode::CONFLICT
        }
        ErrorCode::StoreFull => StatusCode::INSUFFICIENT_STORAGE,
        ErrorCode::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        ErrorCode::Timeout => StatusCode::REQUEST_TIMEOUT,
        ErrorCode::Unsupported => StatusCode::NOT_IMPLEMENTED,
        // A proxy may repeat a call that is answered with 502 to 504. This call may have taken effect, so its
        // status is another one.
        ErrorCode::UnknownOutcome | ErrorCode::StoreFailed | ErrorCode::Unrecognised => {
            StatusCode::INTERNAL_SERVER_ERROR
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_status_and_retryable_ones_retry_after() {
        for (code, expected, retry) in [
            (ErrorCode::Invalid, 400, false),
            (ErrorCode::TooLarge, 413, false),
            (ErrorCode::NotFound, 404, false),
            (ErrorCode::MethodNotAllowed, 405, false),
            (ErrorCode::UnsupportedMediaType, 415, false),
            (ErrorCode::Unauthorized, 401, false),
            (ErrorCode::Forbidden, 403, false),
            (ErrorCode::RateLimited, 429, true),
            (ErrorCode::Conflict, 409, false),
            (ErrorCode::KeyConflict, 409, false),
            (ErrorCode::StoreFull, 507, true),
            (ErrorCode::Unavailable, 503, true),
            (ErrorCode::Timeout, 408, true),
            (ErrorCode::UnknownOutcome, 500, false),
            (ErrorCode::Unsupported, 501, false),
            (ErrorCode::StoreFailed, 500, false),
        ] {
            let response = ErrorDetail::new(code, "m").into_response();
            assert_eq!(response.status().as_u16(), expected, "{code:?}");
            assert_eq!(response.headers().contains_key(header::RETRY_AFTER), retry, "{code:?}");
        }
    }
}
