//! `windlass top` in a real terminal.

use e2e::{process, tmux::Terminal, up::Up};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::until_state;

fn program() -> String {
    process::windlass().unwrap().to_str().unwrap().to_owned()
}

/// The view; after its end its exit code, and whether the terminal echoes again.
fn top(up: &Up, width: u16, height: u16) -> Terminal {
    let line = format!(
        "{} top --server {} --interval 200ms; echo ended with $?; stty -a | grep -ow -e '-\\?echo'; sleep 600",
        program(),
        up.address
    );
    Terminal::start(width, height, &line).unwrap()
}

async fn busy(folder: &std::path::Path) -> Up {
    let up = Up::on(&folder.join("windlass.db"), ["--slots", "20"]).unwrap();
    let api = up.api();
    let sleep =
        |job: &str| json!({"kind": "sleep", "queue": "mail", "job": job, "payload": {"ms": 3_600_000}});
    let tasks = json!({"tasks": [sleep("site-7"), sleep("site-7"), {"kind": "echo", "queue": "news"}]});
    let limit = api.put("/v1/jobs/site-7", &json!({"concurrency": 1})).await.unwrap();
    assert_eq!(limit.status, 200, "{limit:?}");
    let ids = api.post("/v1/tasks", &tasks).await.unwrap().ids();
    until_state(&api, &ids[0], "running").await;
    until_state(&api, &ids[2], "done").await;
    up
}

async fn paused(up: &Up, queue: &str) -> bool {
    let queues = up.api().get("/v1/queues").await.unwrap().body;
    let queues = queues["queues"].as_array().unwrap();
    queues.iter().find(|one| one["queue"] == queue).unwrap()["paused"].as_bool().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn top_shows_the_fleet_at_two_sizes_and_pauses_a_queue() {
    let folder = tempfile::tempdir().unwrap();
    let up = busy(folder.path()).await;
    for (width, height) in [(80, 24), (140, 40)] {
        let terminal = top(&up, width, height);
        let shown = terminal
            .wait_for(&["QUEUES 2", "JOBS 1", "WORKERS 1", "site-7", "1/1", "1/20", "live", "/s", "q quit"])
            .unwrap();
        assert!(shown.lines().count() <= height.into(), "{shown}");
        let mail = shown.lines().find(|line| line.contains("mail")).unwrap();
        assert!(mail.starts_with('>') && !mail.contains("PAUSED"), "{shown}");

        terminal.press("p").unwrap();
        terminal.wait_for(&["queue mail paused", "mail PAUSED"]).unwrap();
        assert!(paused(&up, "mail").await, "the server knows");
        terminal.press("p").unwrap();
        terminal.wait_for(&["queue mail resumed"]).unwrap();
        assert!(!paused(&up, "mail").await);

        terminal.press("?").unwrap();
        terminal.wait_for(&["any key goes back"]).unwrap();
        terminal.press("x").unwrap();
        terminal.wait_for(&["p pause/resume queue"]).unwrap();
        terminal.press("Enter").unwrap();
        terminal.wait_for(&["newest tasks of queue mail", "held", "running"]).unwrap();
        terminal.press("Enter").unwrap();
        terminal.wait_for(&["── task ", "why", "site-7", "3600000"]).unwrap();
        terminal.press("q").unwrap();
        // The earlier screen is back, and typed text is echoed again.
        let after = terminal.wait_for(&["ended with 0", "echo"]).unwrap();
        assert!(!after.contains("QUEUES") && !after.contains("-echo"), "{after}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn top_retries_and_cancels_a_task_after_a_yes() {
    let folder = tempfile::tempdir().unwrap();
    let up = busy(folder.path()).await;
    let terminal = top(&up, 120, 24);
    terminal.wait_for(&["QUEUES 2"]).unwrap();
    terminal.press("Enter").unwrap();
    // The newest comes first: the held one.
    terminal.wait_for(&["newest tasks of queue mail", "held", "c cancel"]).unwrap();
    terminal.press("c").unwrap();
    terminal.wait_for(&["cancel task", "y does it"]).unwrap();
    terminal.press("n").unwrap();
    let shown = terminal.wait_for(&["nothing changed", "held"]).unwrap();
    assert!(!shown.contains("cancelled"), "{shown}");
    terminal.press("c").unwrap();
    terminal.wait_for(&["y does it"]).unwrap();
    terminal.press("y").unwrap();
    terminal.wait_for(&["is cancelled"]).unwrap();
    terminal.press("r").unwrap();
    terminal.wait_for(&["retry task"]).unwrap();
    terminal.press("y").unwrap();
    terminal.wait_for(&[" repeats "]).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn top_reports_a_lost_server_and_continues_later() {
    let folder = tempfile::tempdir().unwrap();
    let mut up = busy(folder.path()).await;
    let terminal = top(&up, 80, 24);
    terminal.wait_for(&["QUEUES 2"]).unwrap();
    up.process.kill().unwrap();
    terminal.wait_for(&["SERVER GONE", "QUEUES 2"]).unwrap();
    let port = up.address.rsplit(':').next().unwrap().to_owned();
    let again = at_port(folder.path(), &port);
    let shown = terminal.wait_for(&["QUEUES 2", "/30"]).unwrap();
    assert!(!shown.contains("SERVER GONE"), "{shown}");
    drop(again);
}

/// A server on the same store, at the same port.
fn at_port(folder: &std::path::Path, port: &str) -> Up {
    let mut command = process::command(process::windlass().unwrap());
    let listen = format!("127.0.0.1:{port}");
    command.args(["up", "--store", "sqlite:windlass.db", "--slots", "30", "--listen", &listen]);
    command.current_dir(folder);
    Up::start(command).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_terminal_is_restored_after_ctrl_c_and_after_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let up = busy(folder.path()).await;
    let terminal = top(&up, 80, 24);
    terminal.wait_for(&["QUEUES 2"]).unwrap();
    terminal.press("C-c").unwrap();
    let after = terminal.wait_for(&["ended with 130", "echo"]).unwrap();
    assert!(!after.contains("-echo"), "{after}");

    let terminal = top(&up, 80, 24);
    terminal.wait_for(&["QUEUES 2"]).unwrap();
    let shell = terminal.pid().unwrap();
    let children = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap();
    let view: i32 = children.split_whitespace().next().unwrap().parse().unwrap();
    kill_process(Pid::from_raw(view).unwrap(), Signal::TERM).unwrap();
    let after = terminal.wait_for(&["ended with 0", "echo"]).unwrap();
    assert!(!after.contains("-echo"), "{after}");
}

#[test]
fn top_reports_a_missing_terminal_and_a_missing_server() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = process::command(program());
    command.arg("top").current_dir(folder.path());
    let said = process::run(command).unwrap();
    assert_eq!((said.code, said.stdout.as_str()), (Some(2), ""), "{said:?}");
    assert!(said.stderr.contains("terminal") && said.stderr.contains("queues ls --json"), "{said:?}");

    let line = format!("{} top --server http://127.0.0.1:1; echo ended with $?; sleep 600", program());
    let terminal = Terminal::start(80, 24, &line).unwrap();
    terminal.wait_for(&["error: ", "127.0.0.1:1", "ended with 5"]).unwrap();
}
