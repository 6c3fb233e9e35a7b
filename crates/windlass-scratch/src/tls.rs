//! A certificate authority that exists as long as its server, and the certificates of the server and of a
//! client.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};

use crate::{Error, keeper::owner::Owner};

/// Writes `ca.crt`, and `server` and `client` as `.crt` and `.key` each, into a folder of the server's user.
pub fn write_certificates(folder: &Path, owner: Owner) -> Result<(), Error> {
    let made = certificates().map_err(|error| Error::Certificate(error.to_string()))?;
    let Pem { authority, server, client } = made;
    let files = [
        ("ca.crt", authority),
        ("server.crt", server.0),
        ("server.key", server.1),
        ("client.crt", client.0),
        ("client.key", client.1),
    ];
    for (name, text) in files {
        let path = folder.join(name);
        fs::write(&path, text)?;
        // The server refuses a key that others can read.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        owner.give(&path)?;
    }
    Ok(())
}

struct Pem {
    authority: String,
    /// Certificate and key.
    server: (String, String),
    client: (String, String),
}

fn certificates() -> Result<Pem, rcgen::Error> {
    let mut authority = CertificateParams::new(Vec::new())?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.distinguished_name.push(DnType::CommonName, "Windlass scratch authority");
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let authority_key = KeyPair::generate()?;
    let authority_pem = authority.self_signed(&authority_key)?.pem();
    let issuer = Issuer::new(authority, authority_key);

    let signed = |name: &str, hosts: Vec<String>| {
        let mut params = CertificateParams::new(hosts)?;
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate()?;
        Ok::<_, rcgen::Error>((params.signed_by(&key, &issuer)?.pem(), key.serialize_pem()))
    };
    let server = signed("localhost", vec!["localhost".to_owned(), "127.0.0.1".to_owned()])?;
    let client = signed("windlass", vec!["windlass".to_owned()])?;
    Ok(Pem { authority: authority_pem, server, client })
}
