//! The way to a server: TCP, with TLS for https://.

use std::{
    io,
    path::Path,
    pin::Pin,
    sync::{Arc, LazyLock},
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
    rustls::{
        ClientConfig, RootCertStore,
        crypto::ring::default_provider,
        pki_types::{CertificateDer, ServerName, pem::PemObject},
    },
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
    /// Connects within a time; with TLS if the server's address says so.
    pub fn new(uri: &Uri, ca: Option<&Path>, timeout: Duration) -> Result<Self, Failure> {
        let mut tcp = HttpConnector::new();
        tcp.set_connect_timeout(Some(timeout));
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        let tls = (uri.scheme_str() == Some("https")).then(|| config(ca)).transpose()?;
        Ok(Self { tcp, tls: tls.map(TlsConnector::from) })
    }
}

/// Roots of the system, read once and only when https is spoken.
static SYSTEM: LazyLock<RootCertStore> = LazyLock::new(|| {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
});

fn config(ca: Option<&Path>) -> Result<Arc<ClientConfig>, Failure> {
    let roots = match ca {
        Some(path) => authorities(path)?,
        None => SYSTEM.clone(),
    };
    if roots.is_empty() {
        return Err(Failure::usage(
            "this machine knows no authorities to check the server's certificate with",
        )
        .hint("name them with --ca FILE"));
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let builder =
        builder.with_safe_default_protocol_versions().map_err(|error| Failure::usage(error.to_string()))?;
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn authorities(path: &Path) -> Result<RootCertStore, Failure> {
    let wrong = |error: &dyn std::fmt::Display| Failure::usage(format!("--ca {}: {error}", path.display()));
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| wrong(&error))? {
        let certificate = certificate.map_err(|error| wrong(&error))?;
        roots.add(certificate).map_err(|error| wrong(&error))?;
    }
    if roots.is_empty() { Err(wrong(&"there is no certificate in it")) } else { Ok(roots) }
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

/// Somebody is there, and TLS does not come about.
#[derive(Debug)]
pub struct Handshake(pub io::Error);

impl std::fmt::Display for Handshake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Handshake {}
