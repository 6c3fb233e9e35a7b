//! S3: TLS from files, client certificates, new files without a restart.

use std::{net::SocketAddr, path::Path, sync::Arc};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::ring::default_provider,
        pki_types::{CertificateDer, PrivateKeyDer, ServerName},
    },
};
use windlass_conformance::MemoryStore;
use windlass_core::{Rules, Scope, Scopes, time::ManualClock};
use windlass_server::{
    Operations,
    access::{self, Auth},
    http::{Options, Reloaded, Tls, TlsFiles},
};

use crate::harness::{Api, Setup};

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate of an authority, and its key.
fn signed(by: &Authority, name: &str) -> (rcgen::Certificate, KeyPair) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    (params.signed_by(&key, by).unwrap(), key)
}

fn write(folder: &Path, by: &Authority) {
    let (cert, key) = signed(by, "localhost");
    std::fs::write(folder.join("cert.pem"), cert.pem()).unwrap();
    std::fs::write(folder.join("key.pem"), key.serialize_pem()).unwrap();
}

struct Rig {
    api: Api,
    tls: Arc<Tls>,
    folder: TempDir,
}

impl Rig {
    async fn start(server: &Authority, clients: Option<&Authority>) -> Self {
        let folder = TempDir::new().unwrap();
        write(folder.path(), server);
        let client_ca = clients.map(|clients| {
            let path = folder.path().join("clients.pem");
            std::fs::write(&path, clients.pem()).unwrap();
            path
        });
        let files =
            TlsFiles { cert: folder.path().join("cert.pem"), key: folder.path().join("key.pem"), client_ca };
        let tls = Tls::load(files).unwrap();
        let clock = Arc::new(ManualClock::new("2027-01-31T09:30:00Z".parse().unwrap()));
        let store = Arc::new(MemoryStore::new(clock.clone(), Rules::default()));
        let access = access::Options {
            auth: Auth::Tokens,
            certificate_scopes: Scopes::of([Scope::Read]),
            ..access::Options::default()
        };
        let options = Options { access, tls: Some(Arc::clone(&tls)), ..Options::default() };
        let api = Api::around(store.clone(), clock, Operations::new(store), options).await;
        Self { api, tls, folder }
    }
}

/// Asks over TLS; the first line of the answer, or why there is none.
async fn ask(
    address: SocketAddr,
    trusted: &Authority,
    own: Option<(rcgen::Certificate, KeyPair)>,
    path: &str,
) -> Result<String, String> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(trusted.der().to_vec())).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match own {
        None => builder.with_no_client_auth(),
        Some((cert, key)) => {
            let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
            builder.with_client_auth_cert(vec![cert.der().clone()], key).unwrap()
        }
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
        .map_err(|error| error.to_string())?;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.map_err(|error| error.to_string())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.map_err(|error| error.to_string())?;
    Ok(String::from_utf8(answer).unwrap().lines().next().unwrap_or_default().to_owned())
}

const OK: &str = "HTTP/1.1 200 OK";

#[tokio::test]
async fn only_a_client_that_trusts_the_authority_gets_tls() {
    let (ours, foreign) = (authority(), authority());
    let rig = Rig::start(&ours, None).await;
    assert_eq!(ask(rig.api.address, &ours, None, "/healthz").await.as_deref(), Ok(OK));
    assert!(ask(rig.api.address, &foreign, None, "/healthz").await.is_err());
    let mut plain = rig.api.connect().await;
    plain.send(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    let answer = plain.rest().await;
    assert!(!answer.starts_with(b"HTTP/"), "{answer:?}");
    assert_eq!(ask(rig.api.address, &ours, None, "/healthz").await.as_deref(), Ok(OK), "and it goes on");
}

#[tokio::test]
async fn only_a_certificate_of_the_authority_replaces_a_token() {
    let (server, clients, foreign) = (authority(), authority(), authority());
    let rig = Rig::start(&server, Some(&clients)).await;
    let good = ask(rig.api.address, &server, Some(signed(&clients, "worker-1")), "/v1/queues").await;
    assert_eq!(good.as_deref(), Ok(OK));
    let forbidden = ask(rig.api.address, &server, Some(signed(&clients, "worker-1")), "/v1/tokens").await;
    assert_eq!(forbidden.as_deref(), Ok("HTTP/1.1 403 Forbidden"));
    let none = ask(rig.api.address, &server, None, "/v1/queues").await;
    assert_eq!(none.as_deref(), Ok("HTTP/1.1 401 Unauthorized"));
    let refused = ask(rig.api.address, &server, Some(signed(&foreign, "worker-1")), "/v1/queues").await;
    assert!(refused.is_err(), "{refused:?}");
}

#[tokio::test]
async fn new_tls_files_are_used_and_broken_ones_are_not() {
    let (before, after) = (authority(), authority());
    let rig = Rig::start(&before, None).await;
    assert_eq!(rig.tls.reload(), Ok(Reloaded::Unchanged));
    std::fs::write(rig.folder.path().join("cert.pem"), "not a certificate").unwrap();
    let error = rig.tls.reload().unwrap_err();
    assert!(error.contains("cert.pem"), "{error}");
    assert_eq!(ask(rig.api.address, &before, None, "/healthz").await.as_deref(), Ok(OK), "the old one stays");
    write(rig.folder.path(), &after);
    assert_eq!(rig.tls.reload(), Ok(Reloaded::Changed));
    assert_eq!(ask(rig.api.address, &after, None, "/healthz").await.as_deref(), Ok(OK));
    assert!(ask(rig.api.address, &before, None, "/healthz").await.is_err());
}

#[tokio::test]
async fn a_client_that_never_finishes_its_handshake_is_dropped() {
    let folder = TempDir::new().unwrap();
    write(folder.path(), &authority());
    let files = TlsFiles {
        cert: folder.path().join("cert.pem"),
        key: folder.path().join("key.pem"),
        client_ca: None,
    };
    let options = Options {
        tls: Some(Tls::load(files).unwrap()),
        head_read_max: std::time::Duration::from_millis(50),
        ..Options::default()
    };
    let api = Api::with(Setup { options, ..Setup::default() }).await;
    assert_eq!(api.connect().await.rest().await, b"");
}

#[test]
fn a_key_of_another_certificate_is_refused_naming_both_files() {
    let folder = TempDir::new().unwrap();
    write(folder.path(), &authority());
    std::fs::write(folder.path().join("key.pem"), KeyPair::generate().unwrap().serialize_pem()).unwrap();
    let files = TlsFiles {
        cert: folder.path().join("cert.pem"),
        key: folder.path().join("key.pem"),
        client_ca: None,
    };
    let error = Tls::load(files).unwrap_err();
    assert!(error.contains("cert.pem") && error.contains("key.pem"), "{error}");
}
