//! LIMIT, WF-ORDER, SLOT-BALANCED and NO-STRANDED of one server on a file, even when it is killed.

use std::{path::Path, time::Duration};

use e2e::{
    postgres::until,
    process::{self, Said},
    target::Target,
    up::Up,
};
use serde_json::{Value, json};

/// How long the target takes for a request.
const LATENCY: Duration = Duration::from_millis(20);
const LIMIT: usize = 3;
const STEPS: usize = 5;

fn up(store: &Path) -> Up {
    Up::on(store, ["--slots", "8", "--allow-target", "127.0.0.0/8"]).unwrap()
}

fn say(up: &Up, arguments: &[&str]) -> Said {
    let mut command = process::command(process::windlass().unwrap());
    command.args(arguments).args(["--json", "--server", &up.address]);
    process::run(command).unwrap()
}

/// The output of a command that must succeed.
#[track_caller]
fn done(up: &Up, arguments: &[&str]) -> String {
    let said = say(up, arguments);
    assert_eq!(said.code, Some(0), "{arguments:?}: {said:?}");
    said.stdout
}

/// The same for a command that prints one JSON value.
#[track_caller]
fn json_of(up: &Up, arguments: &[&str]) -> Value {
    serde_json::from_str(&done(up, arguments)).unwrap()
}

/// Waits until tasks have ended in success.
#[track_caller]
fn wait_for<'a>(up: &Up, ids: impl IntoIterator<Item = &'a str>) {
    done(up, &["tasks", "wait"].into_iter().chain(ids).collect::<Vec<_>>());
}

/// The job has no tasks and no used room, and the audit finds nothing.
#[track_caller]
fn assert_at_rest(up: &Up, job: &str) {
    let shown = json_of(up, &["jobs", "show", job]);
    for count in ["ready", "running", "held"] {
        assert_eq!(shown[count], 0, "{shown}");
    }
    assert_audit_is_clean(up);
}

#[track_caller]
fn assert_audit_is_clean(up: &Up) {
    // The doctor may report other problems, such as a kind without a handler.
    let report: Value = serde_json::from_str(&say(up, &["doctor", "--audit"]).stdout).unwrap();
    let checks = report["checks"].as_array().unwrap();
    let of_audit: Vec<_> = checks.iter().filter(|check| check["name"] == "audit").collect();
    assert!(!of_audit.is_empty(), "{report}");
    assert!(of_audit.iter().all(|check| check["level"] == "ok"), "{report}");
}

/// Enqueues tasks that reach the target, with these extra fields, and returns their ids in order.
async fn enqueue(up: &Up, target: &Target, n: usize, gate: (&str, &str)) -> Vec<String> {
    let payload = json!({"url": target.url(), "timeout_ms": 600_000});
    let task = json!({"kind": "http", "payload": payload, gate.0: gate.1});
    let answer = up.api().post("/v1/tasks", &json!({"tasks": vec![task; n]})).await.unwrap();
    assert!(answer.status < 300, "{answer:?}");
    answer.ids()
}

#[tokio::test(flavor = "multi_thread")]
async fn order_and_limit_hold_over_a_kill_of_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("windlass.db");
    let target = Target::start(LATENCY).await.unwrap();
    target.hold();
    let mut first = up(&store);
    json_of(&first, &["jobs", "set", "j", "--concurrency", &LIMIT.to_string()]);
    let steps = enqueue(&first, &target, STEPS, ("workflow", "w")).await;
    let of_job = enqueue(&first, &target, 10, ("job", "j")).await;
    until("all of them are open", || Ok(target.book().open > LIMIT as u32)).await.unwrap();
    first.process.kill().unwrap();
    until("its connections are gone", || Ok(target.book().open == 0)).await.unwrap();

    // Kill it again while it recovers from the first kill.
    let mut second = up(&store);
    until("it goes on", || Ok(target.book().open > 0)).await.unwrap();
    second.process.kill().unwrap();
    until("its connections are gone", || Ok(target.book().open == 0)).await.unwrap();

    let third = up(&store);
    target.release();
    let ids = [steps.clone(), of_job].concat();
    wait_for(&third, ids.iter().map(String::as_str));
    {
        let book = target.book();
        book.visits.check_workflow("w", &steps).unwrap();
        assert_eq!(book.visits.most_open_of_job("j"), LIMIT, "at most, and all of it was used");
        assert!(ids.iter().all(|id| book.arrivals.contains_key(id)));
    }
    assert_at_rest(&third, "j");
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_that_no_worker_can_take_use_no_room() {
    let folder = tempfile::tempdir().unwrap();
    let up = up(&folder.path().join("windlass.db"));
    let runs = || done(&up, &["enqueue", "echo", "--payload", "1", "--job", "j", "--wait"]);
    json_of(&up, &["jobs", "set", "j", "--concurrency", "3"]);
    json_of(&up, &["enqueue", "nobody", "--job", "j", "--count", "3"]);
    runs();
    json_of(&up, &["queues", "pause", "slow", "--create"]);
    let said = json_of(&up, &["enqueue", "echo", "--queue", "slow", "--job", "j", "--count", "3"]);
    runs();
    assert_eq!(json_of(&up, &["jobs", "show", "j"])["held"], 6, "they wait outside");
    json_of(&up, &["queues", "resume", "slow"]);
    wait_for(&up, said["ids"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()));
    assert_eq!(json_of(&up, &["jobs", "show", "j"])["held"], 3, "no worker handles them");
    assert_audit_is_clean(&up);
}
