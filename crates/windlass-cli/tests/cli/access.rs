//! Tokens and TLS, from the command line.

use std::{os::unix::fs::PermissionsExt as _, path::Path};

use rcgen::{CertificateParams, KeyPair};

use crate::support::{NO_SERVER, Running, Said, command, finish, windlass};

/// A new folder with a store that has a token with these scopes.
pub fn folder_with(scopes: &[&str]) -> (tempfile::TempDir, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    windlass(folder.path(), &["migrate"]).done();
    let make =
        |scope| windlass(folder.path(), &["token", "create", "--scope", scope, "--name", scope]).done();
    let tokens = scopes.iter().map(|scope| make(scope).stdout.trim().to_owned()).collect();
    (folder, tokens)
}

pub fn with_token(folder: &Path, token: &str, arguments: &[&str]) -> Said {
    let mut command = command(folder, arguments);
    command.env("WINDLASS_TOKEN", token);
    finish(command)
}

#[test]
fn tokens_are_made_listed_and_revoked_on_the_store_itself() {
    let (folder, tokens) = folder_with(&["admin", "enqueue,read"]);
    let said = windlass(folder.path(), &["token", "ls", "--json"]).done();
    let listed = said.json()["tokens"].as_array().unwrap().clone();
    assert_eq!(listed.len(), 2, "{said:?}");
    for token in &tokens {
        assert!(token.starts_with("wl_") && !said.stdout.contains(&token[20..]), "{said:?}");
        assert!(listed.iter().any(|listed| listed["id"] == token[3..19]), "{said:?}");
    }
    windlass(folder.path(), &["token", "revoke", &tokens[0][3..19]]).done();
    windlass(folder.path(), &["token", "revoke", "enqueue,read"]).done();
    windlass(folder.path(), &["token", "revoke", "gone"]).failed(3, &["token gone"]);
    let said = windlass(folder.path(), &["token", "ls"]).done();
    assert!(said.stdout.is_empty() && said.stderr.contains("no tokens"), "{said:?}");
    windlass(folder.path(), &["token", "create", "--scope", "root"])
        .failed(2, &["enqueue, work, read or admin"]);
    windlass(folder.path(), &["token", "create", "--scope", "read", "--expires", "soon"])
        .failed(2, &["--expires"]);
}

#[test]
fn a_refusal_says_which_token_or_scope_is_missing() {
    let (folder, tokens) = folder_with(&["admin", "read"]);
    let up = Running::up_in(folder, &["--auth", "tokens"]);
    let (admin, read) = (&tokens[0], &tokens[1]);
    let hint =
        ["error: this server requires a token", "WINDLASS_TOKEN", "--token-file", "windlass token create"];
    up.say(&["tasks", "ls"]).failed(4, &hint);
    up.say(&["token", "create", "--scope", "admin"]).failed(4, &hint[..3]);
    windlass(Path::new("/"), &["queues", "ls", "--server", &up.address]).failed(4, &hint);
    with_token(up.folder.path(), read, &["tasks", "ls"]).done();
    with_token(up.folder.path(), read, &["enqueue", "echo"])
        .failed(4, &["this needs the scope enqueue", "has read", "--scope enqueue"]);
    with_token(up.folder.path(), read, &["queues", "pause", "q", "--create"])
        .failed(4, &["this needs the scope admin"]);
    with_token(up.folder.path(), admin, &["enqueue", "echo", "--wait"]).done();
    with_token(up.folder.path(), "wl_x", &["tasks", "ls"]).failed(4, &["not known here, or was revoked"]);
    up.say(&["health"]).done();
    // A second token, for reading only. It is created and revoked through the server.
    let said = with_token(up.folder.path(), admin, &["token", "create", "--scope", "read"]).done();
    let third = said.stdout.trim();
    with_token(up.folder.path(), third, &["tasks", "ls"]).done();
    with_token(up.folder.path(), admin, &["token", "revoke", &third[3..19]]).done();
    with_token(up.folder.path(), third, &["tasks", "ls"]).failed(4, &["not known here, or was revoked"]);
}

#[test]
fn a_token_file_wins_and_warns_if_every_user_can_read_it() {
    let (folder, tokens) = folder_with(&["read"]);
    let up = Running::up_in(folder, &["--auth", "tokens"]);
    let file = up.folder.path().join("token");
    std::fs::write(&file, format!("{}\n", tokens[0])).unwrap();
    let mode = |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
    mode(0o600);
    let said = with_token(up.folder.path(), "wl_wrong", &["tasks", "ls", "--token-file", "token"]).done();
    assert!(!said.stderr.contains("every user"), "{said:?}");
    mode(0o644);
    let said = up.say(&["tasks", "ls", "--token-file", "token"]).done();
    assert!(said.stderr.contains("every user of this machine can read the token"), "{said:?}");
    up.say(&["tasks", "ls", "--token-file", "none"]).failed(2, &["cannot read the token file none"]);
}

#[test]
fn the_log_has_every_change_and_no_secret() {
    let (folder, tokens) = folder_with(&["admin"]);
    let up = Running::up_in(folder, &["--auth", "tokens", "--log-level", "error", "--log-format", "json"]);
    with_token(up.folder.path(), &tokens[0], &["queues", "pause", "mail", "--create"]).done();
    let line = up.wait_for("windlass::audit");
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(line["who"], format!("token {} (admin)", &tokens[0][3..19]));
    assert_eq!((&line["path"], &line["outcome"]), (&"/v1/queues/mail/pause".into(), &"done".into()));
    up.signal(rustix::process::Signal::TERM);
    let said = up.end().done();
    assert!(!said.stderr.contains(&tokens[0][20..]), "{said:?}");
}

#[test]
fn a_public_address_is_refused_without_tls_and_tokens() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in
        [&["up", "--listen", "0.0.0.0:0"][..], &["up", "--listen", "0.0.0.0:0", "--auth", "tokens"]]
    {
        windlass(folder.path(), arguments)
            .failed(4, &["can be reached by others", "--tls-cert", "--insecure"]);
    }
    let worker = ["worker", "--metrics-listen", "0.0.0.0:0"];
    windlass(folder.path(), &worker).failed(4, &["can be reached by others"]);
    assert!(!folder.path().join("windlass.db").exists(), "and nothing was made");
}

#[test]
fn a_read_only_server_answers_reads_and_refuses_changes() {
    let up = Running::up(&["--read-only"]);
    up.say(&["queues", "ls"]).done();
    up.say(&["enqueue", "echo"]).failed(4, &["this server is read-only"]);
    up.say(&["queues", "pause", "q", "--create"]).failed(4, &["this server is read-only"]);
}

/// Writes a certificate for localhost and its key.
pub fn write_certificate(folder: &Path) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(folder.join("cert.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
    std::fs::write(folder.join("key.pem"), key.serialize_pem()).unwrap();
}

#[test]
fn tls_is_spoken_checked_and_renewed_without_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    write_certificate(folder.path());
    std::fs::copy(folder.path().join("cert.pem"), folder.path().join("old.pem")).unwrap();
    let up = Running::up_in(folder, &["--tls-cert", "cert.pem", "--tls-key", "key.pem"]);
    let address = up.address.replace("127.0.0.1", "localhost");
    assert!(address.starts_with("https://localhost:"), "{}", up.first_line);
    let ask = |ca: &str| up.say(&["queues", "ls", "--server", &address, "--ca", ca]);
    ask("cert.pem").done();
    up.say(&["queues", "ls", "--server", &address])
        .failed(5, &["no TLS with https://localhost", "--ca FILE"]);
    let plain = address.replace("https:", "http:");
    assert_ne!(up.say(&["queues", "ls", "--server", &plain]).code, Some(0));
    write_certificate(up.folder.path());
    up.signal(rustix::process::Signal::HUP);
    up.wait_for("new certificates are in use");
    ask("cert.pem").done();
    ask("old.pem").failed(5, &["no TLS with https://localhost"]);
    std::fs::write(up.folder.path().join("key.pem"), "nonsense").unwrap();
    up.signal(rustix::process::Signal::HUP);
    up.wait_for("new certificates cannot be used; the old ones stay");
    ask("cert.pem").done();
    up.signal(rustix::process::Signal::TERM);
    up.end().done();
}

#[test]
fn a_server_without_tls_is_not_blamed_for_its_certificate() {
    let up = Running::up(&[]);
    let address = up.address.replace("http:", "https:");
    let said = up.say(&["queues", "ls", "--server", &address]);
    let said = said.failed(5, &[&format!("no TLS with {address}"), &format!("hint: write {}", up.address)]);
    assert!(!said.stderr.contains("--ca"), "{said:?}");
}

#[test]
fn half_of_tls_is_refused_and_a_wrong_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let up =
        |arguments: &[&str]| windlass(folder.path(), &[&["up", "--listen", NO_SERVER], arguments].concat());
    up(&["--tls-cert", "cert.pem"]).failed(2, &["tls_cert and tls_key go together"]);
    up(&["--tls-client-ca", "ca.pem"]).failed(2, &["tls_client_ca needs tls_cert and tls_key"]);
    up(&["--tls-cert", "no.pem", "--tls-key", "no.key"]).failed(2, &["TLS cannot be used: no.pem"]);
}

#[test]
fn the_doctor_says_which_callers_may_do_what() {
    let (folder, tokens) = folder_with(&["admin", "read"]);
    let said = windlass(folder.path(), &["doctor"]).done();
    assert!(said.stdout.contains("2 tokens: 1 admin, 1 read"), "{said:?}");
    let up = Running::up_in(folder, &["--auth", "tokens"]);
    let said = with_token(up.folder.path(), &tokens[0], &["doctor"]).done();
    assert!(said.stdout.contains("every call needs a token"), "{said:?}");
    let said = with_token(up.folder.path(), &tokens[1], &["doctor"]).done();
    assert!(said.stdout.contains("only an admin token may see them"), "{said:?}");
    drop(up);
    let open = Running::up(&[]);
    let said = open.say(&["doctor"]).done();
    assert!(said.stdout.contains("every program on this machine may do everything"), "{said:?}");
}
