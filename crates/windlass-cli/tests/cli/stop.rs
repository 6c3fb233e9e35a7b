//! Stopping with signals.

use rustix::process::Signal;

use crate::support::{Running, command, windlass};

const LONG: &str = r#"{"ms":3600000}"#;

/// Enqueues a task that runs until it is stopped, and waits until it runs.
fn start_long_task(up: &Running) -> String {
    let id = up.enqueue(&["sleep", "--payload", LONG]);
    loop {
        let task = up.say(&["tasks", "show", &id, "--json"]).done().json();
        if task["state"] == "running" {
            return id;
        }
    }
}

#[test]
fn an_idle_server_stops_at_once_with_exit_code_0() {
    for signal in [Signal::INT, Signal::TERM] {
        let up = Running::up(&[]);
        up.signal(signal);
        let said = up.end().done();
        assert!(said.stderr.contains("draining: 0 tasks running, up to 30 s"), "{said:?}");
        assert!(
            said.stderr.ends_with("stopped: 0 tasks finished since the start, 0 handed back, 0 lost\n"),
            "{said:?}"
        );
    }
}

#[test]
fn a_second_signal_hands_back_without_spending_an_attempt() {
    let up = Running::up(&["--drain-timeout", "1h"]);
    let id = start_long_task(&up);
    up.signal(Signal::INT);
    let line = up.wait_for("draining");
    assert_eq!(line, "draining: 1 task running, up to 1 h 0 min (Ctrl-C again to hand them back now)");
    let health = up.say(&["health"]);
    assert_eq!(health.code, Some(1), "{health:?}");
    assert!(health.stdout.contains("draining"), "{health:?}");
    up.signal(Signal::INT);
    let line = up.wait_for("stopped");
    assert_eq!(line, "stopped: 0 tasks finished since the start, 1 handed back, 0 lost");

    // The store is free now, so the command reads the file itself.
    let folder = up.kill();
    let task = windlass(folder.path(), &["tasks", "show", &id, "--json"]).done().json();
    assert_eq!((&task["state"], &task["attempt"]), (&"ready".into(), &0.into()), "{task}");
}

#[test]
fn the_last_line_counts_what_finished_since_the_start() {
    let up = Running::up(&[]);
    up.say(&["enqueue", "echo", "--count", "240", "--wait"]).done();
    up.signal(Signal::TERM);
    let said = up.end().done();
    assert!(
        said.stderr.ends_with("stopped: 240 tasks finished since the start, 0 handed back, 0 lost\n"),
        "{said:?}"
    );
}

#[test]
fn at_the_deadline_running_tasks_are_handed_back() {
    let up = Running::up(&["--drain-timeout", "10ms"]);
    start_long_task(&up);
    up.signal(Signal::TERM);
    let said = up.end().done();
    assert!(said.stderr.contains("1 handed back"), "{said:?}");
}

#[test]
fn a_worker_without_api_runs_tasks_and_stops() {
    let folder = tempfile::tempdir().unwrap();
    windlass(folder.path(), &["migrate"]).done();
    let said = windlass(folder.path(), &["enqueue", "echo", "--payload", "1"]).done();
    let id = said.stdout.trim().to_owned();
    let worker = Running::start(folder, &["worker", "--slots", "2"]);
    assert!(worker.first_line.contains("worker without API"), "{}", worker.first_line);
    // While the worker holds the store, a command cannot read it, and names the process that holds it.
    let pid = worker.pid().to_string();
    worker.say(&["tasks", "show", &id]).failed(4, &["in use by process", &pid]);
    worker.signal(Signal::TERM);
    worker.wait_for("stopped");
    let folder = worker.kill();
    let task = windlass(folder.path(), &["tasks", "show", &id, "--json"]).done().json();
    assert!(["done", "ready"].contains(&task["state"].as_str().unwrap()), "{task}");
}

#[test]
fn after_a_crash_the_next_start_says_what_it_recovered() {
    let up = Running::up(&[]);
    start_long_task(&up);
    let folder = up.kill();
    let up = Running::up_in(folder, &["--drain-timeout", "0ms"]);
    up.signal(Signal::TERM);
    let said = up.end().done();
    assert!(said.stdout.contains("recovered 1 task"), "{said:?}");
}

#[test]
fn ctrl_c_ends_a_waiting_command_with_130() {
    let up = Running::up(&[]);
    let mut waiting =
        command(up.folder.path(), &["enqueue", "sleep", "--payload", LONG, "--wait"]).spawn().unwrap();
    // The command enqueues after it began to listen for Ctrl-C. Its task is in the store, so it listens.
    while up.say(&["tasks", "ls", "--json"]).done().json()["tasks"].as_array().unwrap().is_empty() {}
    let pid = rustix::process::Pid::from_raw(waiting.id().cast_signed()).unwrap();
    rustix::process::kill_process(pid, Signal::INT).unwrap();
    assert_eq!(waiting.wait().unwrap().code(), Some(130));
}
