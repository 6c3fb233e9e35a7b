//! A connection without any Windlass code, as a standard client has it.

use std::task::{Context, Poll};

use http::{Request, Response, Uri};
use hyper::{body::Incoming, client::conn::http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tonic::body::Body;

/// An HTTP/2 connection.
#[derive(Clone)]
pub struct Wire(http2::SendRequest<Body>);

impl Wire {
    /// Connects to a server. The second value is the start of the URI of each request.
    pub async fn connect(url: &str) -> (Self, Uri) {
        Self::built(url, &http2::Builder::new(TokioExecutor::new())).await
    }

    /// Connects to a server that may send this many bytes on each stream before they are read.
    pub async fn narrow(url: &str, window_bytes: u32) -> (Self, Uri) {
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder.initial_stream_window_size(window_bytes);
        Self::built(url, &builder).await
    }

    async fn built(url: &str, builder: &http2::Builder<TokioExecutor>) -> (Self, Uri) {
        let stream = TcpStream::connect(url.trim_start_matches("http://")).await.unwrap();
        // Every gRPC client does this: a head and its message are two writes, and the second must not wait
        // for an acknowledgement of the first.
        stream.set_nodelay(true).unwrap();
        let (send, connection) = builder.handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        (Self(send), url.parse().unwrap())
    }
}

impl tower_service::Service<Request<Body>> for Wire {
    type Response = Response<Incoming>;
    type Error = hyper::Error;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}
