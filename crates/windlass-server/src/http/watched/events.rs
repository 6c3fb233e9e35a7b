//! Snapshots as server-sent events.
//!
//! The connection asks for the next event only when it has sent the last one. So a reader that is slow gets the
//! newest snapshot, and no old ones wait for it.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::{Body, Bytes},
    extract::State,
    response::Response,
};
use http::{HeaderValue, header};
use tokio::sync::OwnedSemaphorePermit;
use tonic::codegen::tokio_stream::Stream;

use super::super::{Server, routes::Shared};
use crate::operations::Result;

/// After so long without an event a comment is sent, so that no proxy takes the connection for dead.
const SILENCE_MAX: Duration = Duration::from_secs(15);

pub(super) async fn events(State(server): Shared) -> Result<Response> {
    let viewer = server.operations.viewer()?;
    let mut response = Response::new(Body::from_stream(Events::new(server, viewer)));
    let kind = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    // A proxy that gathers answers would hold the events back.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// Where a stream stands.
struct Place {
    server: Arc<Server>,
    /// The number of the last snapshot that was sent.
    number: u64,
    _viewer: OwnedSemaphorePermit,
}

type Next = Pin<Box<dyn Future<Output = Option<(Bytes, Place)>> + Send>>;

/// The events of one viewer.
struct Events(Option<Next>);

impl Events {
    fn new(server: Arc<Server>, viewer: OwnedSemaphorePermit) -> Self {
        Self(Some(Box::pin(Place { server, number: 0, _viewer: viewer }.next())))
    }
}

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
    /// The next event; `None` when the server stops.
    async fn next(mut self) -> Option<(Bytes, Self)> {
        let event = tokio::select! {
            biased;
            () = self.server.closed() => return None,
            (number, event) = self.server.operations.event_after(self.number) => {
                self.number = number;
                event
            }
            () = tokio::time::sleep(SILENCE_MAX) => Bytes::from_static(b":\n\n"),
        };
        Some((event, self))
    }
}
