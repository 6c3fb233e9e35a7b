//! TLS from files. New files are used without a restart.

use std::{
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
};

use ring::digest::{SHA256, digest};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        RootCertStore, ServerConfig,
        crypto::ring::default_provider,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
        server::WebPkiClientVerifier,
    },
    server::TlsStream,
};

use crate::access::Certificate;

/// The protocols inside TLS, in the order of preference.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];
/// Bytes of a fingerprint that identify a certificate.
const FINGERPRINT_BYTES: usize = 16;

/// The PEM files that TLS needs.
#[derive(Debug, Clone)]
pub struct Files {
    /// The server's certificate, and the intermediate ones up to its authority.
    pub cert: PathBuf,
    /// The key of the certificate.
    pub key: PathBuf,
    /// The authorities of client certificates; without them the server asks for none.
    pub client_ca: Option<PathBuf>,
}

/// The result of reading the files again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reloaded {
    /// The files are the same; nothing changes.
    Unchanged,
    /// The files have changed; new connections use them.
    Changed,
}

/// The TLS configuration that connections use.
#[derive(Debug)]
pub struct Tls {
    files: Files,
    current: RwLock<(Arc<ServerConfig>, Contents)>,
}

/// What the files contained, to see whether they changed. A time stamp may stay the same, and a link may
/// point to another file.
#[derive(Debug, PartialEq, Eq)]
struct Contents(Vec<u8>);

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// One line that names the file and what is wrong with it.
    pub fn load(files: Files) -> Result<Arc<Self>, String> {
        let current = RwLock::new(read(&files)?);
        Ok(Arc::new(Self { files, current }))
    }

    /// Reads the files again and uses them for new connections. If they are broken, the old ones stay in use.
    ///
    /// # Errors
    /// As [`Tls::load`].
    pub fn reload(&self) -> Result<Reloaded, String> {
        let (config, contents) = read(&self.files)?;
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        if current.1 == contents {
            return Ok(Reloaded::Unchanged);
        }
        *current = (config, contents);
        Ok(Reloaded::Changed)
    }

    /// Does the server's part of the handshake.
    pub(super) async fn accept<S>(&self, stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let config = Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner).0);
        TlsAcceptor::from(config).accept(stream).await
    }
}

/// The certificate of the client; the handshake has verified it.
pub(super) fn certificate<S>(stream: &TlsStream<S>) -> Option<Certificate> {
    let shown = stream.get_ref().1.peer_certificates()?.first()?;
    let hash = digest(&SHA256, shown);
    let mut fingerprint = String::with_capacity(2 * FINGERPRINT_BYTES);
    for byte in hash.as_ref().iter().take(FINGERPRINT_BYTES) {
        // Writing to a string does not fail.
        let _ = write!(fingerprint, "{byte:02x}");
    }
    Some(Certificate { fingerprint })
}

fn read(files: &Files) -> Result<(Arc<ServerConfig>, Contents), String> {
    let (cert, key) = (text(&files.cert)?, text(&files.key)?);
    let ca = files.client_ca.as_deref().map(text).transpose()?;
    let key_der = PrivateKeyDer::from_pem_slice(&key).map_err(|error| wrong(&files.key, &error))?;
    let provider = Arc::new(default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let builder = match (&files.client_ca, &ca) {
        (Some(path), Some(ca)) => {
            let mut roots = RootCertStore::empty();
            for authority in certificates(path, ca)? {
                roots.add(authority).map_err(|error| wrong(path, &error))?;
            }
            // A client certificate is optional: a token is enough, and a caller with neither is refused call
            // by call.
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .allow_unauthenticated()
                .build()
                .map_err(|error| wrong(path, &error))?;
            builder.with_client_cert_verifier(verifier)
        }
        _ => builder.with_no_client_auth(),
    };
    let chain = certificates(&files.cert, &cert)?;
    let mut config = builder
        .with_single_cert(chain, key_der)
        .map_err(|error| format!("{} and {}: {error}", files.cert.display(), files.key.display()))?;
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
    let contents = Contents([cert, key, ca.unwrap_or_default()].concat());
    Ok((Arc::new(config), Contents(digest(&SHA256, &contents.0).as_ref().to_vec())))
}

fn certificates(path: &Path, text: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    match found {
        Ok(found) if found.is_empty() => Err(format!("{} holds no certificate in PEM", path.display())),
        Ok(found) => Ok(found),
        Err(error) => Err(wrong(path, &error)),
    }
}

fn text(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| wrong(path, &error))
}

fn wrong(path: &Path, error: &dyn std::fmt::Display) -> String {
    format!("{}: {error}", path.display())
}
