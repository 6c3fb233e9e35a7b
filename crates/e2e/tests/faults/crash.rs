//! POISON-CONTAINED: after one `kill -9` all running tasks run again at once, with all slots.

use std::path::Path;

use e2e::{
    process::{self, Process},
    until,
    up::Up,
};
use serde_json::json;

/// Short leases, so that a remote worker's tasks come back soon.
const SETTINGS: [(&str, &str); 3] =
    [("WINDLASS_LEASE_TTL_MS", "3500"), ("WINDLASS_HEARTBEAT_MS", "400"), ("WINDLASS_SWEEP_MS", "400")];

fn number() -> usize {
    if crate::is_long() { 1_000 } else { 100 }
}

fn up(store: &Path, queues: &str) -> Up {
    let mut command = process::command(process::windlass().unwrap());
    command.args(["up", "--store", &format!("sqlite:{}", store.display()), "--listen", "127.0.0.1:0"]);
    command.args(["--slots", "1000", "--queues", queues]).envs(SETTINGS);
    command.current_dir(store.parent().unwrap());
    Up::start(command).unwrap()
}

/// Enqueues tasks that run longer than the test.
async fn enqueue(up: &Up, n: usize) {
    let task = json!({"kind": "sleep", "payload": {"ms": 600_000}});
    let tasks = json!({ "tasks": vec![task; n] });
    assert_eq!(up.api().post("/v1/tasks", &tasks).await.unwrap().ids().len(), n);
}

/// Waits until all run at the same time, each with `crashes` crashes.
async fn until_all_run(up: &Up, n: usize, crashes: u64) {
    until(async || {
        let page =
            up.api().get("/v1/tasks?state=running&limit=1000").await.map_err(|error| error.to_string())?;
        let tasks = page.body["tasks"].as_array().cloned().unwrap_or_default();
        let again = tasks.iter().filter(|task| task["crashes"] == crashes).count();
        if again == n { Ok(()) } else { Err(format!("{again} of {n} run again, {} in all", tasks.len())) }
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn after_one_kill_all_tasks_run_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("windlass.db");
    let mut first = up(&store, "default");
    enqueue(&first, number()).await;
    until_all_run(&first, number(), 0).await;
    first.process.kill().unwrap();
    until_all_run(&up(&store, "default"), number(), 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_kill_of_a_remote_worker_all_tasks_run_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let server = up(&folder.path().join("windlass.db"), "others");
    let worker = || {
        let mut command = process::command(process::windlass().unwrap());
        command.args(["worker", "--server", &server.address, "--slots", "1000"]).envs(SETTINGS);
        command.current_dir(folder.path());
        Process::start(command).unwrap()
    };
    let mut first = worker();
    enqueue(&server, number()).await;
    until_all_run(&server, number(), 0).await;
    first.kill().unwrap();
    let _second = worker();
    until_all_run(&server, number(), 1).await;
}
