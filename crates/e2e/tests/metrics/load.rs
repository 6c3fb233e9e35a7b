//! A load that gives every metric data: successes, failures, retries, deaths, jobs at their limits,
//! workflows, keys, scheduled tasks.

use std::time::Duration;

use e2e::{http::Api, target::Target, up::Up};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// Pause between two rounds: some tasks a second are enough.
const PAUSE: Duration = Duration::from_millis(100);
/// A job whose name would break an unescaped label.
pub const HOSTILE_JOB: &str = "te\"n\\ant {x=\"y\"}";

/// `windlass up` under load, and its environment.
pub struct Loaded {
    pub up: Up,
    _target: Target,
    _folder: tempfile::TempDir,
    load: JoinHandle<()>,
}

impl Drop for Loaded {
    fn drop(&mut self) {
        self.load.abort();
    }
}

/// Starts it.
pub async fn start() -> Loaded {
    let folder = tempfile::tempdir().unwrap();
    let target = Target::start(Duration::from_millis(5)).await.unwrap();
    let up = Up::on(&folder.path().join("windlass.db"), ["--slots", "40", "--allow-target", "127.0.0.0/8"]);
    let up = up.unwrap();
    let api = up.api();
    set_job(&up, "tenant-a");
    set_job(&up, HOSTILE_JOB);
    let load = tokio::spawn(keep_busy(api, target.url()));
    Loaded { up, _target: target, _folder: folder, load }
}

fn set_job(up: &Up, job: &str) {
    let mut command = e2e::process::command(e2e::process::windlass().unwrap());
    command.args(["jobs", "set", job, "--concurrency", "2", "--server", &up.address]);
    let said = e2e::process::run(command).unwrap();
    assert_eq!(said.code, Some(0), "{said:?}");
}

async fn keep_busy(api: Api, url: String) {
    for round in 0_u32.. {
        let answer = api.post("/v1/tasks", &json!({"tasks": round_of_tasks(&url, round)})).await.unwrap();
        assert!(answer.status < 300, "{answer:?}");
        tokio::time::sleep(PAUSE).await;
    }
}

fn round_of_tasks(url: &str, round: u32) -> Vec<Value> {
    let workflow = format!("order-{round}");
    let retry = json!({"base_ms": 10, "max_ms": 10});
    vec![
        json!({"kind": "echo", "payload": round}),
        json!({"kind": "echo", "payload": 1, "key": "always-the-same"}),
        json!({"kind": "echo", "payload": 1, "queue": "later", "delay_ms": 60_000}),
        json!({"kind": "nobody-has-it", "payload": 1, "queue": "forgotten"}),
        json!({"kind": "sleep", "payload": {"ms": 150}, "job": "tenant-a"}),
        json!({"kind": "sleep", "payload": {"ms": 150}, "job": HOSTILE_JOB}),
        json!({"kind": "sleep", "payload": {"ms": 500}, "timeout_ms": 20, "max_attempts": 1}),
        json!({"kind": "http", "payload": {"url": url}, "workflow": workflow}),
        json!({"kind": "http", "payload": {"url": url}, "workflow": workflow, "job": "tenant-a"}),
        json!({"kind": "http", "payload": {"url": format!("{url}status/404")}}),
        json!({"kind": "http", "payload": {"url": format!("{url}status/503")}, "max_attempts": 3, "retry": retry}),
    ]
}
