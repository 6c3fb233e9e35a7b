//! TLS to a server.

use std::{
    io,
    path::Path,
    sync::{Arc, LazyLock},
};

use tokio_rustls::{
    TlsConnector,
    rustls::{
        self, ClientConfig, RootCertStore,
        crypto::ring::default_provider,
        pki_types::{CertificateDer, ServerName, pem::PemObject},
    },
};
use windlass_core::{Error, Result};

use crate::network::Duplex;

/// Roots of the system, read once and only if https is used.
static SYSTEM: LazyLock<RootCertStore> = LazyLock::new(|| {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
});

/// The TLS settings: the trusted authorities are those of a file, or those of the system.
///
/// # Errors
/// [`Error::Invalid`] if there are none.
#[doc(hidden)]
pub fn client_config(ca: Option<&Path>, protocol: &[u8]) -> Result<Arc<ClientConfig>> {
    let roots = match ca {
        Some(path) => authorities(path)
            .map_err(|error| Error::invalid(format!("the authorities in {}: {error}", path.display())))?,
        None => SYSTEM.clone(),
    };
    if roots.is_empty() {
        return Err(Error::invalid("there are no authorities to check the server's certificate with"));
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let builder =
        builder.with_safe_default_protocol_versions().map_err(|error| Error::invalid(error.to_string()))?;
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    Ok(Arc::new(config))
}

/// TLS for connections to `https://`.
#[derive(Clone)]
pub(crate) struct Tls(TlsConnector);

impl Tls {
    /// Trusts the authorities of a file, or those of the system.
    ///
    /// # Errors
    /// As [`client_config`].
    pub(crate) fn new(ca: Option<&Path>) -> Result<Self> {
        Ok(Self(TlsConnector::from(client_config(ca, b"h2")?)))
    }

    /// Performs the handshake with a server of this name.
    pub(crate) async fn around(&self, stream: Box<dyn Duplex>, name: &str) -> io::Result<Box<dyn Duplex>> {
        let name = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
        Ok(Box::new(self.0.connect(name, stream).await?))
    }
}

/// Whether a connection failed because the server's certificate is not trusted.
pub(crate) fn is_unbelieved(error: &io::Error) -> bool {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
    matches!(cause, Some(rustls::Error::InvalidCertificate(_)))
}

fn authorities(path: &Path) -> std::result::Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| error.to_string())? {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    Ok(roots)
}
