//! Sends a bridge's tasks to the server that runs on the store. Only one process can own a store's file,
//! and here that is the server.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::value::RawValue;
use windlass_amqp::{Enqueuing, Sink};
use windlass_core::{Encoding, Error, NewTask};
use windlass_server::api::{EnqueueRequest, ErrorCode, ErrorDetail};

use crate::backend::{Backend as _, remote::Remote};

/// A server that takes the tasks.
pub struct Server {
    remote: Remote,
}

impl Server {
    pub fn new(remote: Remote) -> Self {
        Self { remote }
    }
}

impl Sink for Server {
    fn enqueue<'a>(&'a self, task: NewTask, key: Option<&'a str>) -> Enqueuing<'a> {
        Box::pin(async move {
            let request = request(&task, key)?;
            self.remote.enqueue(request).await.map(drop).map_err(|detail| error(&detail))
        })
    }
}

/// A task of a bridge as a request to the API.
fn request(task: &NewTask, key: Option<&str>) -> windlass::Result<EnqueueRequest> {
    let (mut payload, mut payload_base64) = (None, None);
    match task.payload.encoding() {
        // Keep the payload as published: parsing numbers into 64 bits would change large ones.
        Encoding::Json => {
            let text = String::from_utf8(task.payload.as_bytes().to_vec());
            let text = text.map_err(|_| Error::invalid("the payload is not UTF-8"))?;
            payload = Some(RawValue::from_string(text).map_err(|error| Error::invalid(error.to_string()))?);
        }
        Encoding::Bytes => payload_base64 = Some(STANDARD.encode(task.payload.as_bytes())),
    }
    Ok(EnqueueRequest {
        kind: task.kind.to_string(),
        payload,
        payload_base64,
        queue: Some(task.queue.to_string()),
        job: task.job.as_ref().map(ToString::to_string),
        workflow: task.workflow.as_ref().map(ToString::to_string),
        key: key.map(str::to_owned),
        ..EnqueueRequest::default()
    })
}

/// Turns a refusal of the API into the error that the store itself would return. An error that is not
/// about the task counts as unavailable, so the bridge tries again.
fn error(detail: &ErrorDetail) -> Error {
    let text = detail.to_string();
    match detail.code {
        ErrorCode::Invalid
        | ErrorCode::TooLarge
        | ErrorCode::Conflict
        | ErrorCode::KeyConflict
        | ErrorCode::Unsupported => Error::Invalid(text),
        ErrorCode::UnknownOutcome => Error::Unknown(text),
        _ => Error::Unavailable(text),
    }
}

#[cfg(test)]
mod tests {
    use windlass_core::Payload;

    use super::*;

    #[test]
    fn payload_is_sent_as_it_was_published() {
        let of = |payload: Payload| request(&NewTask::new("k", payload).unwrap(), Some("id")).unwrap();
        let large = "{\"n\":123456789012345678901234567890}";
        let json = of(Payload::json_text(large).unwrap());
        assert_eq!(json.payload.map(|payload| payload.get().to_owned()).as_deref(), Some(large));
        assert_eq!((json.key.as_deref(), json.queue.as_deref()), (Some("id"), Some("default")));
        let bytes = of(Payload::bytes([255, 0]));
        assert_eq!((bytes.payload.is_none(), bytes.payload_base64.as_deref()), (true, Some("/wA=")));
    }

    #[test]
    fn an_error_that_is_not_about_the_task_is_retried() {
        let of = |code| error(&ErrorDetail::new(code, "x"));
        assert!(matches!(of(ErrorCode::KeyConflict), Error::Invalid(_)));
        assert!(matches!(of(ErrorCode::UnknownOutcome), Error::Unknown(_)));
        for code in
            [ErrorCode::Unavailable, ErrorCode::Forbidden, ErrorCode::StoreFailed, ErrorCode::NotFound]
        {
            assert!(of(code).is_retryable(), "{code:?}");
        }
    }
}
