//! HTTPS with a certificate that the test makes.

use std::sync::Arc;

use serde_json::json;
use tokio::net::TcpListener;
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, crypto::ring, pki_types::PrivateKeyDer},
};
use windlass_kinds::{Http, HttpOptions, OptionsError};

use crate::support::{Recorder, Script, answer, call, loopback, output, retried, serve};

/// A server for `secure.example`, its address and its certificate.
async fn tls_server() -> (std::net::SocketAddr, Vec<u8>) {
    let own = rcgen::generate_simple_self_signed(vec!["secure.example".into()]).unwrap();
    let certificate = own.cert.der().clone();
    let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    serve(stream, Arc::default(), |_| answer(200, &[], "over TLS")).await;
                }
            });
        }
    });
    (address, certificate.to_vec())
}

fn handler(server: std::net::SocketAddr, extra_root_certs_der: Vec<Vec<u8>>) -> (Http, Arc<Recorder>) {
    let options = HttpOptions { extra_root_certs_der, ..loopback() };
    let recorder = Recorder::new(Some(server));
    let resolver = Script::new(&[&["127.0.0.7"]]);
    (Http::with_network(options, resolver, Arc::clone(&recorder) as _).unwrap(), recorder)
}

#[tokio::test]
async fn a_trusted_certificate_is_accepted_on_the_checked_address() {
    let (server, certificate) = tls_server().await;
    let (http, recorder) = handler(server, vec![certificate]);
    let output = output(call(&http, &json!({"url": "https://secure.example/"})).await);
    assert_eq!(output["body"], "over TLS");
    assert_eq!(recorder.went_to(), ["127.0.0.7:443"]);
}

#[tokio::test]
async fn an_untrusted_certificate_is_retried() {
    let (server, certificate) = tls_server().await;
    let (stranger, _) = handler(server, Vec::new());
    let error = retried(call(&stranger, &json!({"url": "https://secure.example/"})).await);
    assert!(error.contains("TLS failed") && error.contains("secure.example"), "{error}");
    let (http, _) = handler(server, vec![certificate]);
    let error = retried(call(&http, &json!({"url": "https://other.example/"})).await);
    assert!(error.contains("TLS failed") && error.contains("other.example"), "{error}");
}

#[tokio::test]
async fn a_server_without_tls_is_a_tls_failure_and_retried() {
    let plain = crate::support::Server::start(|_| answer(200, &[], "")).await;
    let (http, _) = handler(plain.address, Vec::new());
    let error = retried(call(&http, &json!({"url": "https://secure.example/"})).await);
    assert!(error.contains("TLS failed"), "{error}");
}

#[test]
fn an_invalid_extra_certificate_is_refused_at_once() {
    let options = HttpOptions { extra_root_certs_der: vec![vec![1, 2, 3]], ..HttpOptions::default() };
    assert!(matches!(Http::new(options), Err(OptionsError::RootCertificate(_))));
}
