//! One worker process per store file; ports; commands with and without a running server.

use e2e::up::{Up, up_command};

use crate::{assert_refused, say, windlass};

const NONE: [&str; 0] = [];

#[tokio::test(flavor = "multi_thread")]
async fn a_second_server_learns_pid_and_address_of_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("windlass.db");
    let first = Up::on(&store, NONE).unwrap();
    let second = e2e::process::run(up_command(&store, NONE).unwrap()).unwrap();
    let pid = first.process.pid().to_string();
    assert_refused(&second, 4, &[&pid, &first.address]);
    // The first server is not affected.
    assert_eq!(first.api().get("/readyz").await.unwrap().status, 200);
}

#[test]
fn a_taken_port_is_refused_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let said = say(folder.path(), ["up", "--store", "sqlite:windlass.db", "--listen", &address]);
    assert_refused(&said, 4, &[&address, "--listen"]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "it leaves no store behind");
}

#[test]
fn a_port_taken_by_the_server_of_this_store_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("windlass.db");
    let first = Up::on(&store, NONE).unwrap();
    let address = first.address.strip_prefix("http://").unwrap();
    let said = say(folder.path(), ["up", "--listen", address]);
    let pid = first.process.pid().to_string();
    assert_refused(&said, 4, &["windlass.db is in use by process", &pid, &first.address]);
}

#[test]
fn after_kill_9_the_next_server_starts_without_help() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("windlass.db");
    let mut first = Up::on(&store, NONE).unwrap();
    first.process.kill().unwrap();
    assert!(store.with_extension("db.lock").exists(), "the lock file of the dead process is still there");
    Up::on(&store, NONE).unwrap();
}

#[test]
fn a_command_without_a_server_and_a_store_gives_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    // A port on which no process listens: bound once, and released.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let mut command = windlass(folder.path(), ["tasks", "ls"]);
    command.env("WINDLASS_LISTEN", &free);
    let said = e2e::process::run(command).unwrap();
    assert_refused(&said, 5, &[&free, "windlass.db", "windlass up"]);
    assert!(!folder.path().join("windlass.db").exists(), "a look creates no store");
}

#[test]
fn a_command_finds_the_server_that_runs_on_its_store() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("windlass.db");
    let _up = Up::on(&store, NONE).unwrap();
    let said = say(
        folder.path(),
        ["enqueue", "echo", "--payload", r#"{"hello":"world"}"#, "--wait", "--store", "sqlite:windlass.db"],
    );
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stdout.contains(r#"{"hello":"world"}"#), "{said:?}");
}
