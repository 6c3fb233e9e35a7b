//! TLS to the server, by rustls: what `sslmode` and `sslrootcert` of an address ask for.

use std::{
    future::Future,
    io,
    path::PathBuf,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use rustls::{
    ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, ring::default_provider, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::{TlsConnector, client};
use windlass_core::percent;

/// How the server's certificate is verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verify {
    /// Not at all: safe against an eavesdropper, not against a machine in the middle (`prefer`, `require`
    /// without `sslrootcert`).
    Nothing,
    /// A known authority must have signed it (`verify-ca`).
    Authority,
    /// A known authority must have signed it, and its name must match (`verify-full`).
    Name,
}

/// What an address asks for.
#[derive(Debug, Clone)]
pub(crate) struct Tls {
    verify: Verify,
    root: Option<PathBuf>,
}

impl Tls {
    /// Removes the parameters that the driver does not know from an address, and reads them.
    pub(crate) fn take_from(url: &str) -> Result<(String, Self), String> {
        let mut tls = Self { verify: Verify::Nothing, root: None };
        let Some((base, query)) = url.split_once('?') else { return Ok((url.to_owned(), tls)) };
        let mut rest = Vec::new();
        for pair in query.split('&') {
            match pair.split_once('=') {
                Some(("sslmode", "verify-full")) => tls.verify = Verify::Name,
                Some(("sslmode", "verify-ca")) => tls.verify = Verify::Authority,
                Some(("sslrootcert", path)) => tls.root = Some(PathBuf::from(percent::decoded(path)?)),
                _ => rest.push(pair),
            }
        }
        let is_required = rest.contains(&"sslmode=require");
        // As in libpq: an address that names an authority asks for verification.
        if is_required && tls.root.is_some() && tls.verify == Verify::Nothing {
            tls.verify = Verify::Authority;
        }
        if tls.verify != Verify::Nothing && !is_required {
            rest.push("sslmode=require");
        }
        Ok((if rest.is_empty() { base.to_owned() } else { format!("{base}?{}", rest.join("&")) }, tls))
    }

    /// What the driver connects with.
    ///
    /// # Errors
    /// One sentence: a root file cannot be read, or the machine has no roots.
    pub(crate) fn connect(&self) -> Result<Connect, String> {
        let provider = Arc::new(default_provider());
        let verifier: Arc<dyn ServerCertVerifier> = match self.verify {
            Verify::Nothing => Arc::new(Lenient { inner: None, provider: Arc::clone(&provider) }),
            Verify::Authority | Verify::Name => {
                let inner = WebPkiServerVerifier::builder_with_provider(self.roots()?, Arc::clone(&provider))
                    .build()
                    .map_err(|error| format!("no roots to verify the server with: {error}"))?;
                match self.verify {
                    Verify::Name => inner,
                    _ => Arc::new(Lenient { inner: Some(inner), provider: Arc::clone(&provider) }),
                }
            }
        };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        Ok(Connect(TlsConnector::from(Arc::new(config))))
    }

    fn roots(&self) -> Result<Arc<RootCertStore>, String> {
        let mut roots = RootCertStore::empty();
        if let Some(path) = &self.root {
            let wrong = |error: &dyn std::fmt::Display| format!("sslrootcert {}: {error}", path.display());
            let file = CertificateDer::pem_file_iter(path).map_err(|error| wrong(&error))?;
            for certificate in file {
                let certificate = certificate.map_err(|error| wrong(&error))?;
                roots.add(certificate).map_err(|error| wrong(&error))?;
            }
        } else {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        Ok(Arc::new(roots))
    }
}

/// Accepts every certificate, or every one that a known authority signed, with any name.
#[derive(Debug)]
struct Lenient {
    inner: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        use rustls::CertificateError::{NotValidForName, NotValidForNameContext};
        let Some(inner) = &self.inner else { return Ok(ServerCertVerified::assertion()) };
        match inner.verify_server_cert(end_entity, intermediates, server_name, ocsp, now) {
            Err(rustls::Error::InvalidCertificate(NotValidForName | NotValidForNameContext { .. })) => {
                Ok(ServerCertVerified::assertion())
            }
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Starts TLS on the driver's connections.
#[derive(Clone)]
pub(crate) struct Connect(TlsConnector);

impl<S> MakeTlsConnect<S> for Connect
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Stream<S>;
    type TlsConnect = ConnectTo;
    type Error = std::convert::Infallible;

    /// Also called for a socket in the file system, whose path is no host name: so an error is reported only
    /// when TLS begins.
    fn make_tls_connect(&mut self, domain: &str) -> Result<ConnectTo, Self::Error> {
        Ok(ConnectTo { name: ServerName::try_from(domain.to_owned()).ok(), connector: self.0.clone() })
    }
}

/// One connection on which TLS will begin.
pub(crate) struct ConnectTo {
    name: Option<ServerName<'static>>,
    connector: TlsConnector,
}

impl<S> TlsConnect<S> for ConnectTo
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Stream<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Stream<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let name =
                self.name.ok_or_else(|| io::Error::other("the host is not a name that TLS can verify"))?;
            Ok(Stream(Box::new(self.connector.connect(name, stream).await?)))
        })
    }
}

/// A stream with TLS. It has no channel binding: the certificate is what was verified, or nothing was.
pub(crate) struct Stream<S>(Box<client::TlsStream<S>>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Stream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Stream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_read(cx, buf)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_shutdown(cx)
    }
}
