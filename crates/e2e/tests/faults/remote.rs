//! A server on a file is killed and started again: workers on other machines continue with their running
//! tasks.

use std::{path::Path, time::Duration};

use e2e::{
    process::{self, Process},
    target::Target,
    until,
    up::Up,
};
use serde_json::{Value, json};

/// Leases that are longer than any pause of a busy machine.
const SETTINGS: [(&str, &str); 3] = [
    ("WINDLASS_LEASE_TTL_MS", "600000"),
    ("WINDLASS_HEARTBEAT_MS", "200"),
    ("WINDLASS_ALLOW_TARGET", "127.0.0.0/8"),
];

/// A server at this address, whose own worker serves another queue.
fn up(store: &Path, listen: &str) -> Up {
    let mut command = process::command(process::windlass().unwrap());
    command.args(["up", "--store", &format!("sqlite:{}", store.display())]);
    command.args(["--listen", listen, "--queues", "others"]).envs(SETTINGS);
    command.current_dir(store.parent().unwrap());
    Up::start(command).unwrap()
}

/// A worker on another machine.
fn worker(server: &Up, folder: &Path) -> Process {
    let mut command = process::command(process::windlass().unwrap());
    command.args(["worker", "--server", &server.address]).envs(SETTINGS).current_dir(folder);
    Process::start(command).unwrap()
}

/// Runs a command on the store.
fn on(store: &Path, arguments: &[&str]) {
    let mut command = process::command(process::windlass().unwrap());
    command.args(arguments).args(["--store", &format!("sqlite:{}", store.display())]);
    command.current_dir(store.parent().unwrap());
    let said = process::run(command).unwrap();
    assert_eq!(said.code, Some(0), "{arguments:?}: {}", said.stderr);
}

async fn seen(up: &Up, id: &str) -> Value {
    up.api().get(&format!("/v1/tasks/{id}")).await.unwrap().body
}

#[tokio::test(flavor = "multi_thread")]
async fn a_remote_worker_continues_over_a_kill_of_its_server() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("windlass.db");
    let target = Target::start(Duration::ZERO).await.unwrap();
    target.hold();
    let mut first = up(&store, "127.0.0.1:0");
    let listen = first.address.trim_start_matches("http://").to_owned();
    let elsewhere = tempfile::tempdir().unwrap();
    let mut worker = worker(&first, elsewhere.path());
    let task = json!({"kind": "http", "payload": {"url": target.url(), "timeout_ms": 600_000}});
    let ids = first.api().post("/v1/tasks", &task).await.unwrap().ids();
    until(async || if target.book().open == 1 { Ok(()) } else { Err("nothing runs".to_owned()) })
        .await
        .unwrap();
    let before = seen(&first, &ids[0]).await;

    first.process.kill().unwrap();
    let second = up(&store, &listen);
    assert!(!second.process.transcript().contains("recovered"), "{}", second.process.transcript());
    // The worker has reconnected: it also runs tasks that are enqueued now.
    let more = second.api().post("/v1/tasks", &task).await.unwrap().ids();
    until(async || if target.book().open == 2 { Ok(()) } else { Err("the worker is not back".to_owned()) })
        .await
        .unwrap();
    let now = seen(&second, &ids[0]).await;
    assert_eq!((&now["state"], &now["worker"]), (&"running".into(), &before["worker"]), "{now}");
    target.release();
    for id in ids.iter().chain(&more) {
        until(async || match seen(&second, id).await {
            task if task["state"] == "done" => Ok(()),
            task => Err(task.to_string()),
        })
        .await
        .unwrap();
    }
    let done = seen(&second, &ids[0]).await;
    assert_eq!(
        (&done["attempt"], &done["worker"], &done["crashes"]),
        (&1.into(), &before["worker"], &before["crashes"]),
        "{done}"
    );
    let book = target.book();
    assert!(ids.iter().chain(&more).all(|id| book.arrivals[id] == 1), "{:?}", book.arrivals);
    drop(book);
    assert!(worker.ended().unwrap().is_none(), "{}", worker.transcript());
    assert!(!worker.transcript().contains("lease lost"), "{}", worker.transcript());
}

/// The copy is older than the worker and its leases: a store that counted on from there would give the
/// same numbers again.
#[tokio::test(flavor = "multi_thread")]
async fn a_remote_worker_loses_its_leases_to_a_restored_store() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("windlass.db");
    let copy = folder.path().join("copy.db");
    let target = Target::start(Duration::ZERO).await.unwrap();
    target.hold();
    let mut first = up(&store, "127.0.0.1:0");
    let listen = first.address.trim_start_matches("http://").to_owned();
    let task = json!({"kind": "http", "payload": {"url": target.url(), "timeout_ms": 600_000}});
    let kept = first.api().post("/v1/tasks", &task).await.unwrap().ids().remove(0);
    on(&store, &["backup", copy.to_str().unwrap()]);
    let elsewhere = tempfile::tempdir().unwrap();
    let mut worker = worker(&first, elsewhere.path());
    let forgotten = first.api().post("/v1/tasks", &task).await.unwrap().ids().remove(0);
    until(async || if target.book().open == 2 { Ok(()) } else { Err("not both run".to_owned()) })
        .await
        .unwrap();
    let before = seen(&first, &kept).await;

    first.process.kill().unwrap();
    on(&store, &["restore", copy.to_str().unwrap(), "--force"]);
    let second = up(&store, &listen);
    // Both attempts end, long before the ten minutes that the worker's leases last, and the task of the
    // copy runs again.
    until(async || match target.book() {
        book if book.open == 1 && book.arrivals[&kept] == 2 => Ok(()),
        book => Err(format!("{} run, {:?} came", book.open, book.arrivals)),
    })
    .await
    .unwrap();
    let now = seen(&second, &kept).await;
    assert!(now["lease"].as_u64() > before["lease"].as_u64(), "{before} {now}");
    assert_ne!(now["worker"], before["worker"], "{before} {now}");
    target.release();
    until(async || match seen(&second, &kept).await {
        task if task["state"] == "done" => Ok(()),
        task => Err(task.to_string()),
    })
    .await
    .unwrap();
    let tasks = second.api().get("/v1/tasks").await.unwrap().body;
    assert_eq!(tasks["tasks"].as_array().unwrap().len(), 1, "{tasks}");
    assert_eq!(target.book().arrivals[&forgotten], 1);
    assert!(worker.ended().unwrap().is_none(), "{}", worker.transcript());
    assert!(worker.transcript().contains("lease lost"), "{}", worker.transcript());
}
