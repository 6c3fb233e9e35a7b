//! Connections: how many are open, how slow they may be, and how they end.

use std::{pin::pin, sync::Arc, time::Duration};

use axum::{Extension, Router};
use hyper::server::conn::{http1, http2};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    task::JoinSet,
    time::Instant,
};
use tracing::{debug, warn};

use super::{Options, closed, first_bytes::FirstBytes, heads::Heads, stall::Stall, tls};

/// Bytes of a request's head (line and headers together); more is answered with 431.
const HEAD_MAX_BYTES: usize = 64 << 10;
/// Headers of a request; more is answered with 431.
const HEADERS_MAX: usize = 100;
/// Most open calls on one HTTP/2 connection; further ones wait at the client.
const STREAMS_MAX: u32 = 256;
/// Most unread bytes of one HTTP/2 stream, and of all streams of a connection: what a client may send ahead.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 4 << 20;
/// Most bytes of answers per HTTP/2 stream that wait for a slow reader.
const SEND_BUFFER_BYTES: usize = 1 << 20;
/// A peer may go away without closing its connection, which then holds its streams. So the server sends a
/// ping this often.
const PING_EVERY: Duration = Duration::from_secs(10);
/// Pause after a failed accept. The usual cause is a lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(250);
/// How often refused connections are logged, at most.
const SAY_EVERY: Duration = Duration::from_mins(1);
/// The answer to a connection over the limit. It is fixed, because nothing of the request was read.
const BUSY: &str = "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\n\
    connection: close\r\ncontent-length: 93\r\n\r\n\
    {\"error\":{\"code\":\"unavailable\",\"message\":\"too many connections\",\"hint\":\"try again shortly\"}}\n";

/// Accepts connections until `shutdown`, then closes them.
pub(super) async fn serve(
    listener: TcpListener,
    options: Arc<Options>,
    router: Router,
    close: watch::Sender<bool>,
    shutdown: impl Future<Output = ()> + Send,
) {
    let places = Arc::new(Semaphore::new(options.connections_max));
    let closing = close.subscribe();
    let mut connections = JoinSet::new();
    let mut refusals = Refusals::default();
    let mut shutdown = pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => match Arc::clone(&places).try_acquire_owned() {
                    Ok(place) => {
                        connections.spawn(connection(stream, place, Arc::clone(&options), closing.clone(), router.clone()));
                    }
                    Err(_) => refusals.refuse(&stream),
                },
                Err(error) => {
                    warn!(%error, "cannot accept connections");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(ended) = connections.join_next(), if !connections.is_empty() => report(ended),
        }
    }
    drop(listener);
    close.send_replace(true);
    let all = async {
        while let Some(ended) = connections.join_next().await {
            report(ended);
        }
    };
    if tokio::time::timeout(options.shutdown_max, all).await.is_err() {
        warn!(connections = connections.len(), "requests were cut off: the server has stopped");
        connections.shutdown().await;
    }
}

async fn connection(
    stream: TcpStream,
    place: OwnedSemaphorePermit,
    options: Arc<Options>,
    closing: watch::Receiver<bool>,
    router: Router,
) {
    let _place = place;
    // Answers are small and a client waits for each.
    let _ = stream.set_nodelay(true);
    let stream = Stall::new(stream, options.write_stall_max);
    let Some(tls) = &options.tls else { return speak(stream, &options, &closing, router).await };
    match tokio::time::timeout(options.head_read_max, tls.accept(stream)).await {
        Ok(Ok(stream)) => {
            let router = match tls::certificate(&stream) {
                Some(certificate) => router.layer(Extension(certificate)),
                None => router,
            };
            speak(stream, &options, &closing, router).await;
        }
        Ok(Err(error)) => debug!(%error, "connection without TLS"),
        Err(_) => debug!("connection whose TLS handshake took too long"),
    }
}

/// Answers requests, in the HTTP version that the client speaks, until the connection ends.
pub(super) async fn speak<S>(stream: S, options: &Options, closing: &watch::Receiver<bool>, router: Router)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let first = FirstBytes::read(stream);
    let first = tokio::select! {
        first = tokio::time::timeout(options.head_read_max, first) => first,
        // The client has sent no request, so nothing is cut off.
        () = closed(closing) => return,
    };
    let Ok(Ok(stream)) = first else { return };
    if stream.is_http2() {
        return speak_http2(stream, options, closing, router).await;
    }
    let io = TokioIo::new(Heads::new(stream));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(options.head_read_max)
        .max_buf_size(HEAD_MAX_BYTES)
        .max_headers(HEADERS_MAX);
    let mut exchange = pin!(http.serve_connection(io, TowerToHyperService::new(router)));
    let result = tokio::select! {
        result = &mut exchange => result,
        () = closed(closing) => {
            exchange.as_mut().graceful_shutdown();
            exchange.await
        }
    };
    if let Err(error) = result {
        debug!(%error, "connection ended");
    }
}

/// HTTP/2, which gRPC needs. The client starts with it: there is no upgrade from HTTP/1.
async fn speak_http2<S>(
    stream: FirstBytes<S>,
    options: &Options,
    closing: &watch::Receiver<bool>,
    router: Router,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut http = http2::Builder::new(TokioExecutor::new());
    http.timer(TokioTimer::new())
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(options.write_stall_max)
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(HEAD_MAX_BYTES as u32)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_send_buf_size(SEND_BUFFER_BYTES);
    let mut exchange = pin!(http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)));
    let result = tokio::select! {
        result = &mut exchange => result,
        () = closed(closing) => {
            exchange.as_mut().graceful_shutdown();
            exchange.await
        }
    };
    if let Err(error) = result {
        debug!(%error, "connection ended");
    }
}

/// Connections over the limit. Each gets an answer, and at most one line a minute is logged.
#[derive(Default)]
struct Refusals {
    said_at: Option<Instant>,
    unsaid: u64,
}

impl Refusals {
    /// Sends the reason, as far as that is possible without waiting; the stream closes when it is dropped.
    fn refuse(&mut self, stream: &TcpStream) {
        let _ = stream.try_write(BUSY.as_bytes());
        self.unsaid += 1;
        if self.said_at.is_none_or(|at| at.elapsed() >= SAY_EVERY) {
            warn!(refused = self.unsaid, "connections refused: too many are open");
            *self = Self { said_at: Some(Instant::now()), unsaid: 0 };
        }
    }
}

fn report(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        warn!(%error, "a connection's task failed");
    }
}

#[cfg(test)]
mod tests {
    use super::BUSY;

    #[test]
    fn the_answer_over_the_connection_limit_is_an_error_body() {
        let (head, body) = BUSY.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}", body.len())), "{}", body.len());
        serde_json::from_str::<crate::api::ErrorBody>(body).unwrap();
    }
}
