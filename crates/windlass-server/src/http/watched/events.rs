//! Snapshots as server-sent events.
//!
//! The connection asks for the next event only when it has sent the last one. So a reader that is slow gets the
//! newest snapshot, and no old ones wait for it.
//!
//! A stream may last for days. So the server asks again whether the reader may read: before each event, and every
//! few seconds without one. The stream ends when the session has ended or the token was revoked.

use std::{
    convert::Infallible,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::{Body, Bytes},
    extract::{Request, State},
    response::Response,
};
use http::{HeaderValue, header};
use tokio::sync::OwnedSemaphorePermit;
use tonic::codegen::tokio_stream::Stream;

use super::super::{Server, access::Standing, routes::Shared};
use crate::{access::REMEMBERED, operations::Result};

/// After so long without an event a comment is sent, so that no proxy takes the connection for dead.
const SILENCE_MAX: Duration = Duration::from_secs(15);
/// What is sent instead of an event.
const COMMENT: Bytes = Bytes::from_static(b":\n\n");

pub(super) async fn events(State(server): Shared, request: Request) -> Result<Response> {
    let standing = Standing::of("GET /v1/events", &request)?;
    let viewer = server.operations.viewer()?;
    let place = Place { server, standing, number: 0, _viewer: viewer };
    let mut response = Response::new(Body::from_stream(Events(Some(Box::pin(place.next())))));
    let kind = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    // A proxy that gathers answers would hold the events back.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// Where a stream stands.
struct Place {
    server: Arc<Server>,
    /// What the reader has shown.
    standing: Standing,
    /// The number of the last snapshot that was sent.
    number: u64,
    _viewer: OwnedSemaphorePermit,
}

/// What a reader has waited for.
enum Waited {
    /// A snapshot, with its number.
    Event(u64, Bytes),
    /// Nothing, for a long time.
    Silence,
    /// The end of the stream.
    Over,
}

type Next = Pin<Box<dyn Future<Output = Option<(Bytes, Place)>> + Send>>;

/// The events of one viewer.
struct Events(Option<Next>);

impl Stream for Events {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(next) = &mut self.0 else { return Poll::Ready(None) };
        let Poll::Ready(event) = next.as_mut().poll(cx) else { return Poll::Pending };
        let Some((event, place)) = event else {
            self.0 = None;
            return Poll::Ready(None);
        };
        self.0 = Some(Box::pin(place.next()));
        Poll::Ready(Some(Ok(event)))
    }
}

impl Place {
    /// The next event; `None` when the server stops, or when the reader may no longer read.
    async fn next(mut self) -> Option<(Bytes, Self)> {
        let (number, event) = match self.wait().await {
            Waited::Event(number, event) => (number, event),
            Waited::Silence => return Some((COMMENT, self)),
            Waited::Over => return None,
        };
        self.number = number;
        let event = match self.standing.holds(&self.server).await {
            Ok(true) => event,
            Ok(false) => return None,
            // Nothing is shown while the server cannot tell.
            Err(_) => COMMENT,
        };
        Some((event, self))
    }

    async fn wait(&self) -> Waited {
        let mut event = pin!(self.server.operations.event_after(self.number));
        let mut silence = pin!(tokio::time::sleep(SILENCE_MAX));
        loop {
            tokio::select! {
                biased;
                () = self.server.closed() => return Waited::Over,
                (number, event) = &mut event => return Waited::Event(number, event),
                () = &mut silence => return Waited::Silence,
                () = tokio::time::sleep(REMEMBERED) => {
                    if let Ok(false) = self.standing.holds(&self.server).await {
                        return Waited::Over;
                    }
                }
            }
        }
    }
}
