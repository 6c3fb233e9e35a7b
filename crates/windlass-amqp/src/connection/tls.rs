//! TLS to the broker with rustls: reads `cacertfile`, `certfile` and `keyfile` of an `amqps://` address.
//!
//! lapin's own TLS support brings PKCS#12 and a second TLS library. Windlass gives lapin the TLS streams that
//! it uses elsewhere. lapin uses the stream type of its runtime, so this is tokio's runtime with another
//! stream type.

use std::{
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use async_compat::{Compat, CompatExt as _};
use async_rs::{Runtime, Tokio, traits::Reactor, util::RuntimeParts};
use futures_core::Stream;
use futures_io::{AsyncRead, AsyncWrite};
use lapin::{AsyncTcpStream, Connection, ConnectionProperties, uri::AMQPUri};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring::default_provider,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};
use windlass::inside::percent;

/// The files that an address names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tls {
    /// Certificate authorities to trust; the default is those of the machine.
    authority: Option<PathBuf>,
    /// Certificate and key for a broker that asks for a client certificate.
    identity: Option<(PathBuf, PathBuf)>,
}

impl Tls {
    /// Reads the settings from the query of an address; the others are lapin's.
    ///
    /// # Errors
    /// A sentence.
    pub fn of(url: &str) -> Result<Self, String> {
        let (mut authority, mut certificate, mut key) = (None, None, None);
        let query = url.split_once('?').map_or("", |(_, query)| query);
        for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            let place = match name {
                "cacertfile" => &mut authority,
                "certfile" => &mut certificate,
                "keyfile" => &mut key,
                _ => continue,
            };
            *place = Some(PathBuf::from(percent::decoded(value)?));
        }
        let identity = match (certificate, key) {
            (None, None) => None,
            (Some(certificate), Some(key)) => Some((certificate, key)),
            _ => return Err("certfile and keyfile belong together".to_owned()),
        };
        Ok(Self { authority, identity })
    }

    /// Reads the files.
    ///
    /// # Errors
    /// A sentence with the file that cannot be used.
    pub fn config(&self) -> Result<Arc<ClientConfig>, String> {
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(self.roots()?);
        let config = match &self.identity {
            None => config.with_no_client_auth(),
            Some((certificate, key)) => {
                let wrong = |error: &dyn std::fmt::Display| format!("keyfile {}: {error}", key.display());
                let private = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(&error))?;
                let chain = certificates("certfile", certificate)?;
                config.with_client_auth_cert(chain, private).map_err(|error| wrong(&error))?
            }
        };
        Ok(Arc::new(config))
    }

    fn roots(&self) -> Result<RootCertStore, String> {
        let mut roots = RootCertStore::empty();
        let Some(path) = &self.authority else {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            return Ok(roots);
        };
        for certificate in certificates("cacertfile", path)? {
            roots.add(certificate).map_err(|error| format!("cacertfile {}: {error}", path.display()))?;
        }
        Ok(roots)
    }
}

fn certificates(what: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("{what} {}: {error}", path.display());
    let found = CertificateDer::pem_file_iter(path).map_err(|error| wrong(&error))?;
    let found: Vec<_> = found.collect::<Result<_, _>>().map_err(|error| wrong(&error))?;
    if found.is_empty() {
        return Err(wrong(&"no certificate in it"));
    }
    Ok(found)
}

/// Connects and does the TLS handshake. The certificate must come from a trusted authority and name the host
/// of the address.
pub async fn connect(
    uri: AMQPUri,
    properties: ConnectionProperties,
    config: Arc<ClientConfig>,
) -> lapin::Result<Connection> {
    let tokio = Tokio::current();
    let runtime = Runtime::new(RuntimeParts::new(tokio.clone(), Net { tokio }));
    let open = async move |uri: AMQPUri, _: Runtime<RuntimeParts<Tokio, Net>>| {
        let stream = secured(&uri.authority.host, uri.authority.port, Arc::clone(&config)).await;
        Ok(AsyncTcpStream::Plain(stream?.compat()))
    };
    Connection::connector(uri, runtime, open, properties).await
}

async fn secured(host: &str, port: u16, config: Arc<ClientConfig>) -> io::Result<TlsStream<TcpStream>> {
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    let stream = TcpStream::connect((host, port)).await?;
    // Acks are small: they must not wait for more data.
    stream.set_nodelay(true)?;
    TlsConnector::from(config).connect(name, stream).await
}

/// tokio with TLS streams.
#[derive(Debug, Clone)]
struct Net {
    tokio: Tokio,
}

/// The error for other streams: lapin asks neither for existing sockets nor for plain ones.
fn only_tls() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "only streams with TLS")
}

impl Reactor for Net {
    type TcpStream = Compat<TlsStream<TcpStream>>;
    type Sleep = tokio::time::Sleep;

    fn register<H>(&self, _: H) -> io::Result<impl AsyncRead + AsyncWrite + Send + Unpin + 'static> {
        Err::<Self::TcpStream, _>(only_tls())
    }

    fn sleep(&self, duration: Duration) -> Self::Sleep {
        self.tokio.sleep(duration)
    }

    fn interval(&self, duration: Duration) -> impl Stream<Item = Instant> + Send + 'static {
        self.tokio.interval(duration)
    }

    fn tcp_connect_addr(
        &self,
        _: SocketAddr,
    ) -> impl Future<Output = io::Result<Self::TcpStream>> + Send + 'static {
        std::future::ready(Err(only_tls()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_from_the_address() {
        let tls = Tls::of("amqps://u:p@host/%2f?heartbeat=5&cacertfile=/a%20b.crt&certfile=c&keyfile=k");
        let identity = Some((PathBuf::from("c"), PathBuf::from("k")));
        assert_eq!(tls, Ok(Tls { authority: Some(PathBuf::from("/a b.crt")), identity }));
        assert_eq!(Tls::of("amqps://host"), Ok(Tls::default()));
        assert!(Tls::of("amqps://host?certfile=c").is_err());
        assert!(Tls::of("amqps://host?cacertfile=%zz").is_err());
    }

    #[test]
    fn unusable_file_is_named() {
        let problem = |url: &str| Tls::of(url).and_then(|tls| tls.config()).err().unwrap_or_default();
        assert!(problem("amqps://host?cacertfile=/nowhere/ca.crt").contains("cacertfile /nowhere/ca.crt"));
        assert!(problem("amqps://host?certfile=/c.crt&keyfile=/c.key").contains("keyfile /c.key"));
        assert!(problem("amqps://host?cacertfile=/dev/null").contains("no certificate"));
    }
}
