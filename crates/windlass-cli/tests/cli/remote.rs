//! A worker that takes its tasks from a server, with no store on its machine.

use std::io::{BufRead as _, BufReader};

use rustix::process::Signal;

use crate::{
    access::{folder_with, with_token, write_certificate},
    support::{NO_SERVER, Running, command, windlass},
};

#[test]
fn a_worker_on_a_server_runs_tasks_without_a_store_and_stops() {
    // The server's own worker serves another queue, so the remote worker must have run these tasks.
    let up = Running::up(&["--queues", "elsewhere"]);
    let worker =
        Running::start(tempfile::tempdir().unwrap(), &["worker", "--server", &up.address, "--slots", "7"]);
    for n in 0..3 {
        let payload = format!("{{\"n\":{n}}}");
        let said = up.say(&["enqueue", "echo", "--payload", &payload, "--wait", "--json"]).done();
        assert!(said.stdout.contains("\"done\""), "{said:?}");
    }
    let workers = up.say(&["workers", "ls", "--json"]).done().json();
    let slots: Vec<_> =
        workers["workers"].as_array().unwrap().iter().map(|w| w["max_capacity"].clone()).collect();
    assert!(slots.contains(&7.into()), "{workers}");
    assert_eq!(
        std::fs::read_dir(worker.folder.path()).unwrap().count(),
        0,
        "it keeps nothing on its machine"
    );
    worker.signal(Signal::TERM);
    let said = worker.end().done();
    assert!(
        said.stderr.ends_with("stopped: 3 tasks finished since the start, 0 handed back, 0 lost\n"),
        "{said:?}"
    );
}

#[test]
fn a_worker_goes_on_after_its_server_was_killed() {
    let up = Running::up(&["--queues", "elsewhere"]);
    let address = up.address.clone();
    let worker = Running::start(tempfile::tempdir().unwrap(), &["worker", "--server", &address]);
    // A finished task shows that the worker is connected.
    up.say(&["enqueue", "echo", "--wait"]).done();
    let folder = up.kill();
    let listen = address.trim_start_matches("http://").to_owned();
    let up = Running::start(folder, &["up", "--queues", "elsewhere", "--listen", &listen]);
    up.say(&["enqueue", "echo", "--wait"]).done();
    drop(worker);
}

#[test]
fn a_worker_refuses_server_with_store_and_a_bad_url() {
    let folder = tempfile::tempdir().unwrap();
    let worker = |arguments: &[&str]| {
        let mut all = vec!["worker"];
        all.extend(arguments);
        windlass(folder.path(), &all)
    };
    worker(&["--server", "http://127.0.0.1:1", "--store", "sqlite:x.db"])
        .failed(2, &["--server and --store"]);
    worker(&["--server", "127.0.0.1:1"]).failed(2, &["http://host:7878"]);
}

#[test]
fn a_worker_started_before_its_servers_waits_for_one() {
    let folder = tempfile::tempdir().unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let servers = format!("http://{NO_SERVER},http://{free}");
    let mut worker = Early(command(folder.path(), &["worker", "--server", &servers]).spawn().unwrap());
    let mut said = BufReader::new(worker.0.stderr.take().unwrap()).lines();
    let line = said.next().unwrap().unwrap();
    for part in ["WARN", "no server can be used yet; trying again", NO_SERVER, &free] {
        assert!(line.contains(part), "{part:?} is missing: {line}");
    }
    let up =
        Running::start(tempfile::tempdir().unwrap(), &["up", "--queues", "elsewhere", "--listen", &free]);
    up.say(&["enqueue", "echo", "--wait"]).done();
}

/// A child that is killed at the end of the test.
struct Early(std::process::Child);

impl Drop for Early {
    fn drop(&mut self) {
        let _ = (self.0.kill(), self.0.wait());
    }
}

#[test]
fn a_remote_worker_needs_tls_and_a_work_token() {
    let (folder, tokens) = folder_with(&["work", "enqueue,read", "read"]);
    write_certificate(folder.path());
    let tls = ["--tls-cert", "cert.pem", "--tls-key", "key.pem", "--auth", "tokens", "--queues", "elsewhere"];
    let up = Running::up_in(folder, &tls);
    let address = up.address.replace("127.0.0.1", "localhost");
    let ca = up.folder.path().join("cert.pem").to_str().unwrap().to_owned();
    let file = |name: &str, token: &str| {
        let path = up.folder.path().join(name);
        std::fs::write(&path, token).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (work, read) = (file("work", &tokens[0]), file("read", &tokens[2]));
    let elsewhere = tempfile::tempdir().unwrap();
    let refused = |arguments: &[&str], parts: &[&str]| {
        let mut all = vec!["worker", "--server", &address];
        all.extend(arguments);
        let said = windlass(elsewhere.path(), &all);
        assert!(!matches!(said.code, Some(0)), "{said:?}");
        for part in parts {
            assert!(said.stderr.contains(part), "{said:?}");
        }
    };
    refused(&["--ca", &ca], &["this server requires a token"]);
    refused(&["--ca", &ca, "--token-file", &read], &["this needs the scope work"]);
    refused(&["--token-file", &work], &["certificate"]);
    let started = ["worker", "--server", &address, "--ca", &ca, "--token-file", &work];
    let worker = Running::start(tempfile::tempdir().unwrap(), &started);
    let enqueue = ["enqueue", "echo", "--wait", "--server", &address, "--ca", &ca];
    with_token(up.folder.path(), &tokens[1], &enqueue).done();
    worker.signal(Signal::TERM);
    worker.end().done();
}
