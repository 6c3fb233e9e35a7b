//! The export of tasks: an answer that is written while it is read.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    response::Response,
    routing::get,
};
use http::{HeaderValue, Method, Uri, header};
use tokio::sync::OwnedSemaphorePermit;
use tonic::codegen::tokio_stream::Stream;

use super::{
    super::{Server, query},
    Shared,
};
use crate::{
    api::{ErrorCode, ErrorDetail, ExportFormat},
    operations::{Export, Result},
};

/// Exports at once. Each reads the store as fast as its reader takes what it finds.
pub(in super::super) const EXPORTS_MAX: usize = 8;

pub(super) fn router() -> Router<Arc<Server>> {
    Router::new().route("/v1/tasks/export", get(export))
}

async fn export(State(server): Shared, method: Method, uri: Uri) -> Result<Response> {
    let request = query::export(&uri)?;
    let format = request.format;
    let mut export = server.operations.export(request)?;
    let place = Arc::clone(&server.exports).try_acquire_owned().map_err(|_| {
        ErrorDetail::new(ErrorCode::Unavailable, "too many exports at once")
            .hint("try again when one has ended")
    })?;
    let mut response = Response::new(Body::empty());
    if method == Method::GET {
        // The first piece tells whether the store answers: after it the status cannot change any more.
        let first = export.next().await?;
        *response.body_mut() = Body::from_stream(Pieces::new(server, export, place, first));
    }
    let (kind, name) = match format {
        ExportFormat::Csv => ("text/csv; charset=utf-8", "attachment; filename=\"windlass-tasks.csv\""),
        ExportFormat::Ndjson => ("application/x-ndjson", "attachment; filename=\"windlass-tasks.ndjson\""),
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static(name));
    // A proxy that gathers answers would keep the whole export.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// An export on its way. It is dropped when its client goes away.
struct Sending {
    server: Arc<Server>,
    export: Export,
    failed: bool,
    _place: OwnedSemaphorePermit,
}

/// How long the last line of an export that cannot go on has to leave.
const LAST_LINE_MAX: Duration = Duration::from_secs(2);

type Piece = Result<Bytes, io::Error>;
type Next = Pin<Box<dyn Future<Output = Option<(Piece, Sending)>> + Send>>;

/// The pieces of an export. The connection asks for the next one only when it has sent the last one.
struct Pieces(Option<Next>);

impl Pieces {
    fn new(server: Arc<Server>, export: Export, place: OwnedSemaphorePermit, first: Option<String>) -> Self {
        let sending = Sending { server, export, failed: false, _place: place };
        Self(first.map(|text| {
            let first: Next = Box::pin(async move { Some((Ok(Bytes::from(text)), sending)) });
            first
        }))
    }
}

impl Stream for Pieces {
    type Item = Piece;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(next) = &mut self.0 else { return Poll::Ready(None) };
        let Poll::Ready(ready) = next.as_mut().poll(cx) else { return Poll::Pending };
        let Some((piece, sending)) = ready else {
            self.0 = None;
            return Poll::Ready(None);
        };
        self.0 = Some(Box::pin(sending.next()));
        Poll::Ready(Some(piece))
    }
}

impl Sending {
    /// The next piece. An export that cannot go on says how far it got, and then breaks the connection: its
    /// client must not take it for a whole one.
    async fn next(mut self) -> Option<(Piece, Self)> {
        if self.failed {
            // An error drops what the connection has not sent yet, and that contains the last line.
            tokio::time::sleep(LAST_LINE_MAX).await;
            return Some((Err(io::Error::other("the export was cut off")), self));
        }
        let read = tokio::select! {
            biased;
            () = self.server.closed() => Err(ErrorDetail::new(ErrorCode::Unavailable, "the server stops")),
            read = self.export.next() => read,
        };
        let text = match read {
            Ok(text) => text?,
            Err(error) => {
                self.failed = true;
                self.export.cut_off(&error.message)
            }
        };
        Some((Ok(Bytes::from(text)), self))
    }
}
