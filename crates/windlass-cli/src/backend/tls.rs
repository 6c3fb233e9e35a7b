//! The connection to a server: TCP, with TLS for https://.

use std::{
    io,
    path::Path,
    pin::Pin,
    sync::Arc,
    task::{self, Poll},
    time::Duration,
};

use http::Uri;
use hyper_util::{
    client::legacy::connect::{Connected, Connection, HttpConnector},
    rt::TokioIo,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::{
    TlsConnector,
    rustls::{self, ClientConfig, pki_types::ServerName},
};
use tower_service::Service;

use crate::failure::Failure;

/// A connection, with TLS or without.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

impl Connection for Box<dyn Stream> {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

/// Connects to one server.
#[derive(Clone)]
pub struct Connector {
    tcp: HttpConnector,
    tls: Option<TlsConnector>,
}

impl Connector {
    /// Prepares connections that must be made within `timeout`; with TLS if the server's address says so.
    pub fn new(uri: &Uri, ca: Option<&Path>, timeout: Duration) -> Result<Self, Failure> {
        let mut tcp = HttpConnector::new();
        tcp.set_connect_timeout(Some(timeout));
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        let tls = (uri.scheme_str() == Some("https")).then(|| config(ca)).transpose()?;
        Ok(Self { tcp, tls: tls.map(TlsConnector::from) })
    }
}

fn config(ca: Option<&Path>) -> Result<Arc<ClientConfig>, Failure> {
    windlass_remote::client_config(ca, b"http/1.1").map_err(|error| {
        Failure::usage(error.to_string()).hint("name the authorities with --ca FILE, in PEM")
    })
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Box<dyn Stream>>;
    type Error = Box<dyn std::error::Error + Send + Sync>;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut task::Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.tcp.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = self.tcp.call(uri.clone());
        let tls = self.tls.clone();
        Box::pin(async move {
            let stream = connecting.await?.into_inner();
            let Some(tls) = tls else { return Ok(TokioIo::new(Box::new(stream) as Box<dyn Stream>)) };
            let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
            let name = ServerName::try_from(host.to_owned())?;
            let stream = tls.connect(name, stream).await.map_err(Handshake)?;
            Ok(TokioIo::new(Box::new(stream) as Box<dyn Stream>))
        })
    }
}

/// The server was reached, but the TLS handshake failed.
#[derive(Debug)]
pub struct Handshake(pub io::Error);

impl Handshake {
    /// Whether the other side answered something that is not TLS, as a server without TLS does.
    pub fn is_plain(&self) -> bool {
        let cause = self.0.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
        matches!(cause, Some(rustls::Error::InvalidMessage(_)))
    }
}

impl std::fmt::Display for Handshake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Handshake {}
