//! Commands without a server and without a store.

use std::process::Stdio;

use crate::support::{NO_SERVER, command, windlass, windlass_with};

#[test]
fn every_command_has_a_help_text() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [
        vec!["--help"],
        vec!["up", "--help"],
        vec!["worker", "--help"],
        vec!["enqueue", "--help"],
        vec!["tasks", "--help"],
        vec!["tasks", "ls", "--help"],
        vec!["tasks", "cancel", "--help"],
        vec!["tasks", "retry", "--help"],
        vec!["tasks", "wait", "--help"],
        vec!["runs", "--help"],
        vec!["activity", "--help"],
        vec!["queues", "--help"],
        vec!["jobs", "--help"],
        vec!["jobs", "set", "--help"],
        vec!["workflows", "--help"],
        vec!["workers", "--help"],
        vec!["doctor", "--help"],
        vec!["migrate", "--help"],
        vec!["backup", "--help"],
        vec!["restore", "--help"],
        vec!["config", "--help"],
        vec!["health", "--help"],
        vec!["completions", "--help"],
    ] {
        let said = windlass(folder.path(), &arguments).done();
        assert!(said.stdout.contains("Usage: windlass"), "{said:?}");
        assert_eq!(said.stderr, "");
    }
}

#[test]
fn the_version_names_sqlite_and_everything_that_is_spoken() {
    let folder = tempfile::tempdir().unwrap();
    let said = windlass(folder.path(), &["--version"]).done();
    assert!(said.stdout.starts_with(concat!("windlass ", env!("CARGO_PKG_VERSION"))), "{said:?}");
    for part in ["SQLite 3.", "postgresql", "rabbitmq", "http API", "grpc"] {
        assert!(said.stdout.contains(part), "{part:?} is missing: {said:?}");
    }
}

#[test]
fn completions_are_scripts_for_the_shell() {
    let folder = tempfile::tempdir().unwrap();
    for (shell, word) in
        [("bash", "_windlass"), ("zsh", "#compdef windlass"), ("fish", "complete -c windlass")]
    {
        let said = windlass(folder.path(), &["completions", shell]).done();
        assert!(said.stdout.contains(word), "{shell}");
    }
    windlass(folder.path(), &["completions", "teletype"]).failed(2, &["teletype"]);
}

#[test]
fn wrong_usage_is_exit_code_2_and_names_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, parts) in [
        (vec!["--wrong"], vec!["--wrong"]),
        (vec!["tasks", "ls", "--stat", "dead"], vec!["--stat"]),
        (vec!["tasks", "ls", "--state", "asleep"], vec!["asleep", "running"]),
        (vec!["tasks", "show", "nonsense"], vec!["nonsense"]),
        (vec!["enqueue"], vec!["<KIND>"]),
        (vec!["enqueue", "echo", "--in", "5"], vec!["5s"]),
        (vec!["enqueue", "echo", "--at", "tomorrow"], vec!["tomorrow"]),
        (vec!["enqueue", "echo", "--key", "k", "--count", "2"], vec!["--key", "--count"]),
        (vec!["enqueue", "echo", "--from", "x"], vec!["--from"]),
        (vec!["enqueue", "echo", "--on-failure", "skip"], vec!["--workflow"]),
        (
            vec!["enqueue", "echo", "--workflow", "w", "--on-failure", "stop"],
            vec!["stop", "block, skip, cancel"],
        ),
        (vec!["jobs", "set", "j"], vec!["--concurrency", "--delay"]),
        (vec!["jobs", "set", "j", "--concurrency", "three"], vec!["three", "none"]),
        (vec!["jobs", "set", "j", "--delay", "200"], vec!["200ms"]),
        (vec!["jobs", "set", "j", "--concurrency", "-1"], vec!["-1", "--concurrency"]),
        (vec!["enqueue", "echo", "--max-attempts", "-1"], vec!["-1", "--max-attempts"]),
        (vec!["enqueue", "echo", "-1"], vec!["'-1'"]),
        (vec!["tasks", "cancel", "-1"], vec!["'-1'"]),
        (vec!["workflows", "retry"], vec!["<NAME>"]),
        (vec!["tasks", "cancel"], vec!["which tasks"]),
        (vec!["tasks", "ls", "--store", "mysql://u:hunter2@h/d"], vec!["mysql"]),
        (vec!["tasks", "ls", "--server", "example.com"], vec!["example.com", "http://127.0.0.1:7878"]),
    ] {
        let said = windlass(folder.path(), &arguments).failed(2, &parts);
        assert!(!said.stderr.contains("hunter2"), "{said:?}");
        assert!(!said.stderr.contains("-- -1"), "advice that does not help: {said:?}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing was created");
}

#[test]
fn without_server_and_store_it_says_what_to_type() {
    let folder = tempfile::tempdir().unwrap();
    let asks: [&[&str]; 10] = [
        &["tasks", "ls"],
        &["tasks", "show", "0000000000000"],
        &["enqueue", "echo"],
        &["queues", "ls"],
        &["queues", "pause", "a"],
        &["jobs", "ls"],
        &["workflows", "cancel", "w"],
        &["workers", "ls"],
        &["doctor"],
        &["tasks", "retry", "--state", "dead", "--yes"],
    ];
    for arguments in asks {
        let said = windlass(folder.path(), arguments);
        let store = folder.path().join("windlass.db");
        let tried = format!("no server at http://{NO_SERVER} and no store at {}", store.display());
        let said = said.failed(5, &[&tried]);
        assert!(said.stderr.contains("hint: start one with `windlass up`"), "{said:?}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "a look creates no store");
}

#[test]
fn a_named_server_or_store_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("http://{NO_SERVER}");
    windlass(folder.path(), &["tasks", "ls", "--server", &url]).failed(5, &[&url, "hint: "]);
    windlass(folder.path(), &["health", "--server", &url]).failed(5, &[&url]);
    windlass(folder.path(), &["health"]).failed(5, &[&url]);
    let store = format!("no store at {}", folder.path().join("other.db").display());
    windlass(folder.path(), &["tasks", "ls", "--store", "sqlite:other.db"]).failed(5, &[&store]);
}

#[test]
fn a_payload_that_is_not_json_is_refused_and_not_shown() {
    let folder = tempfile::tempdir().unwrap();
    let said = windlass(folder.path(), &["enqueue", "echo", "--payload", "{\"secret\": hunter2"]);
    let said = said.failed(2, &["payload is not valid JSON", "hint: "]);
    assert!(!said.stderr.contains("hunter2"), "{said:?}");
    windlass_with(folder.path(), &["enqueue", "echo", "--payload", "-"], b"\"\xff\"").failed(2, &["UTF-8"]);
    windlass(folder.path(), &["enqueue", "echo", "--payload", "@nowhere.json"]).failed(2, &["nowhere.json"]);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = command(folder.path(), &["config", "check"]).stdout(Stdio::piped()).spawn().unwrap();
    // stdout is closed before the first byte, so the program cannot have written everything.
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"));
}
