//! Request bodies: JSON only, bounded before they cost memory.

use std::sync::Arc;

use axum::{
    body::{Body, Bytes, HttpBody},
    extract::Request,
};
use bytes::BytesMut;
use http::{HeaderMap, header};
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use tokio::sync::OwnedSemaphorePermit;

use super::Server;
use crate::{
    api::{ErrorCode, ErrorDetail},
    json,
};

/// Largest body of a request that is not an enqueue: a filter, a reason, a thousand ids.
pub(super) const SMALL_MAX_BYTES: usize = 64 << 10;
/// Largest body of a batch of enqueues.
pub(super) const BATCH_MAX_BYTES: usize = 16 << 20;
/// Bytes for the fields around the payload of a single enqueue.
const ENVELOPE_BYTES: usize = 64 << 10;
/// Unit in which the budget of bodies in memory is counted.
pub(crate) const PERMIT_BYTES: usize = 1 << 10;
/// Most bytes that are read and discarded. A client that still sends would otherwise see a reset connection
/// instead of the answer that its body is too large.
const DISCARD_MAX_BYTES: u64 = 128 << 20;

/// Largest body of an enqueue: a batch, or one payload of the largest size in base64.
pub(crate) fn enqueue_max_bytes(payload_max_bytes: usize) -> usize {
    (payload_max_bytes.saturating_mul(4) / 3).saturating_add(ENVELOPE_BYTES).max(BATCH_MAX_BYTES)
}

/// Reads a small body as a value; an empty body is the value's default. The body must be an object: serde
/// would read a list as fields in their order.
pub(super) async fn small<T: DeserializeOwned + Default>(
    server: &Server,
    request: Request,
) -> Result<T, ErrorDetail> {
    let bytes = read(server, request, SMALL_MAX_BYTES).await?;
    match bytes.trim_ascii_start() {
        [] if bytes.is_empty() => Ok(T::default()),
        [b'[', ..] => Err(ErrorDetail::invalid("the body must be an object")),
        _ => json::parse(&bytes),
    }
}

/// A body in memory. It counts against the budget of bodies until it is dropped, so keep it until the answer
/// is known.
#[derive(Default)]
pub(super) struct Received {
    bytes: Bytes,
    _room: Option<OwnedSemaphorePermit>,
}

impl std::ops::Deref for Received {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Reads a body of at most `max` bytes that is declared to be JSON; an absent body is empty.
pub(super) async fn read(server: &Server, request: Request, max: usize) -> Result<Received, ErrorDetail> {
    if request.body().is_end_stream() {
        return Ok(Received::default());
    }
    check_json(request.headers())?;
    let told = request.body().size_hint();
    // A client that waits for 100 Continue has sent nothing yet: it gets the answer without a discarded body.
    let waits = request.headers().contains_key(header::EXPECT);
    let mut body = request.into_body();
    let reading = async {
        if told.lower() > max as u64 {
            if !waits && told.lower() <= DISCARD_MAX_BYTES {
                discard(&mut body).await;
            }
            return Err(too_large(max));
        }
        let expected = told.upper().map_or(max, |upper| upper as usize).min(max);
        let permits = expected.div_ceil(PERMIT_BYTES) as u32;
        let room = Arc::clone(&server.bodies).try_acquire_many_owned(permits).map_err(|_| {
            ErrorDetail::new(ErrorCode::Unavailable, "too many large requests at once")
                .hint("try again shortly")
        })?;
        Ok(Received { bytes: collect(&mut body, max).await?, _room: Some(room) })
    };
    tokio::time::timeout(server.options.body_read_max, reading).await.unwrap_or_else(|_| {
        let seconds = server.options.body_read_max.as_secs();
        Err(ErrorDetail::new(ErrorCode::Timeout, format!("the body did not arrive within {seconds} s")))
    })
}

/// Refuses a body that is not declared to be JSON.
///
/// # Errors
/// `unsupported_media_type` (415).
pub(super) fn check_json(headers: &HeaderMap) -> Result<(), ErrorDetail> {
    if is_json(headers) {
        return Ok(());
    }
    Err(ErrorDetail::new(ErrorCode::UnsupportedMediaType, "the body must be JSON")
        .hint("send content-type: application/json"))
}

fn is_json(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()) else {
        return false;
    };
    let media = value.split(';').next().unwrap_or_default().trim();
    media.eq_ignore_ascii_case("application/json")
}

async fn collect(body: &mut Body, max: usize) -> Result<Bytes, ErrorDetail> {
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| ErrorDetail::invalid("the body ended before it was complete"))?;
        if let Ok(data) = frame.into_data() {
            if bytes.len() + data.len() > max {
                drop(bytes);
                discard(body).await;
                return Err(too_large(max));
            }
            bytes.extend_from_slice(&data);
        }
    }
    Ok(bytes.freeze())
}

/// Reads and discards the rest of a body, up to a bound.
async fn discard(body: &mut Body) {
    let mut discarded = 0;
    while let Some(Ok(frame)) = body.frame().await {
        discarded += frame.data_ref().map_or(0, |data| data.len() as u64);
        if discarded > DISCARD_MAX_BYTES {
            return;
        }
    }
}

fn too_large(max: usize) -> ErrorDetail {
    ErrorDetail::new(ErrorCode::TooLarge, format!("the body is larger than {max} bytes"))
        .hint("send smaller batches, or store large things elsewhere and pass a reference")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_json_is_json() {
        let with =
            |value: &str| is_json(&HeaderMap::from_iter([(header::CONTENT_TYPE, value.parse().unwrap())]));
        assert!(with("application/json") && with("Application/JSON; charset=utf-8"));
        assert!(
            !with("text/plain")
                && !with("application/json-patch+json")
                && !with("text/plain; application/json")
        );
        assert!(!is_json(&HeaderMap::new()));
    }

    #[test]
    fn the_largest_payload_fits_an_enqueue_in_base64() {
        let payload = 100 << 20;
        assert!(enqueue_max_bytes(payload) > payload.div_ceil(3) * 4 + 1_000);
        assert_eq!(enqueue_max_bytes(1 << 20), BATCH_MAX_BYTES);
    }
}
