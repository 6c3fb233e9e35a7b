//! A certificate authority that lives as long as its cluster, and the certificate of the server.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};

use crate::{Error, owner::Owner};

/// Writes `ca.crt`, `server.crt` and `server.key` into a folder of the server's user.
pub fn write_certificates(folder: &Path, owner: Owner) -> Result<(), Error> {
    let made = certificates().map_err(|error| Error::Certificate(error.to_string()))?;
    for (name, text) in [("ca.crt", made.authority), ("server.crt", made.server), ("server.key", made.key)] {
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
    server: String,
    key: String,
}

fn certificates() -> Result<Pem, rcgen::Error> {
    let mut authority = CertificateParams::new(Vec::new())?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.distinguished_name.push(DnType::CommonName, "Windlass scratch authority");
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let authority_key = KeyPair::generate()?;
    let authority_pem = authority.self_signed(&authority_key)?.pem();
    let issuer = Issuer::new(authority, authority_key);

    let mut server = CertificateParams::new(vec!["localhost".to_owned(), "127.0.0.1".to_owned()])?;
    server.distinguished_name.push(DnType::CommonName, "localhost");
    let key = KeyPair::generate()?;
    let server_pem = server.signed_by(&key, &issuer)?.pem();
    Ok(Pem { authority: authority_pem, server: server_pem, key: key.serialize_pem() })
}
