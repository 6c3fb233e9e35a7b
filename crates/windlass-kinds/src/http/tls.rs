//! TLS to a target: rustls with the roots of the system.

use std::{io, sync::Arc};

use tokio::sync::OnceCell;
use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::ring,
        pki_types::{CertificateDer, ServerName},
    },
};

use super::{connect::Stream, url::Host};

/// The client side of TLS. Roots are read at the first use, because most processes never need them.
pub(crate) struct Tls {
    extra_roots: Vec<CertificateDer<'static>>,
    config: OnceCell<Arc<ClientConfig>>,
}

impl Tls {
    /// Trusts these certificates (DER) in addition to the system's.
    pub(crate) fn new(extra_roots_der: Vec<Vec<u8>>) -> Result<Self, tokio_rustls::rustls::Error> {
        let extra_roots: Vec<_> = extra_roots_der.into_iter().map(CertificateDer::from).collect();
        let mut store = RootCertStore::empty();
        for root in &extra_roots {
            store.add(root.clone())?;
        }
        Ok(Self { extra_roots, config: OnceCell::new() })
    }

    /// Does the TLS handshake as a client of the host.
    pub(crate) async fn wrap(&self, host: &Host, stream: Box<dyn Stream>) -> io::Result<Box<dyn Stream>> {
        let name = match host {
            Host::Ip(address) => ServerName::from(*address),
            // Certificates name hosts without the trailing dot of an absolute name.
            Host::Name(name) => ServerName::try_from(name.trim_end_matches('.').to_owned())
                .map_err(|_| io::Error::other("the host name cannot be in a certificate"))?,
        };
        let config = self.config.get_or_try_init(|| load(self.extra_roots.clone())).await?;
        Ok(Box::new(TlsConnector::from(Arc::clone(config)).connect(name, stream).await?))
    }
}

async fn load(extra_roots: Vec<CertificateDer<'static>>) -> io::Result<Arc<ClientConfig>> {
    tokio::task::spawn_blocking(move || {
        let system = rustls_native_certs::load_native_certs().certs;
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_root_certificates(roots(system, extra_roots))
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    })
    .await
    .map_err(io::Error::other)?
}

/// The system's roots, or Mozilla's if the system has none, and the extra ones.
fn roots(system: Vec<CertificateDer<'static>>, extra: Vec<CertificateDer<'static>>) -> RootCertStore {
    let mut store = RootCertStore::empty();
    // Skip a root that cannot be read: one broken file must not disable TLS.
    store.add_parsable_certificates(system);
    if store.is_empty() {
        tracing::debug!("the system has no root certificates; using the built-in ones");
        store.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    store.add_parsable_certificates(extra);
    store
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_without_roots_gets_the_built_in_ones() {
        let own = rcgen::generate_simple_self_signed(vec!["example.com".into()]).unwrap();
        let own = own.cert.der().clone();
        assert!(roots(Vec::new(), Vec::new()).len() > 50);
        assert!(roots(vec![CertificateDer::from(vec![1, 2, 3])], Vec::new()).len() > 50);
        assert_eq!(roots(vec![own.clone()], Vec::new()).len(), 1);
        assert_eq!(roots(vec![own.clone()], vec![own]).len(), 2);
    }
}
