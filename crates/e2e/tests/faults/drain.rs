//! DRAIN: SIGTERM and Ctrl-C of a server under load.

use std::{path::Path, time::Duration};

use e2e::{
    http::Api,
    process::{END_LIMIT, START_LIMIT, Stream},
    target::Target,
    up::Up,
};
use rustix::process::Signal;
use serde_json::{Value, json};

const TASKS: usize = 200;
const SLOTS: u32 = 40;

/// Enqueues http tasks and returns their ids.
async fn enqueue(api: &Api, url: &str) -> Vec<String> {
    let task = json!({"kind": "http", "payload": {"url": url}});
    let answer = api.post("/v1/tasks", &json!({"tasks": vec![task; TASKS]})).await.unwrap();
    assert!(answer.status < 300, "{answer:?}");
    answer.ids()
}

fn up(store: &Path, drain: &str) -> Up {
    let slots = SLOTS.to_string();
    Up::on(store, ["--slots", &slots, "--allow-target", "127.0.0.0/8", "--drain-timeout", drain]).unwrap()
}

/// Waits until every slot has a request open at the target.
async fn until_saturated(target: &Target) {
    while target.book().open < SLOTS {
        tokio::task::yield_now().await;
    }
}

/// Every task's record, from a restarted server, once all have ended.
async fn records_after_a_restart(store: &Path, ids: &[String]) -> Vec<Value> {
    let up = up(store, "30s");
    let api = up.api();
    let mut records = Vec::new();
    for id in ids {
        loop {
            let record = api.get(&format!("/v1/tasks/{id}")).await.unwrap().body;
            if record["state"] == "done" {
                records.push(record);
                break;
            }
            assert_ne!(record["state"], "dead", "{record}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    records
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_under_load_finishes_running_tasks_and_exits_0() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("windlass.db");
    let target = Target::start(Duration::from_millis(300)).await.unwrap();
    let mut up = up(&store, "30s");
    let ids = enqueue(&up.api(), &target.url()).await;
    until_saturated(&target).await;

    up.process.signal(Signal::TERM).unwrap();
    let draining =
        up.process.wait_for(START_LIMIT, |line| line.contains("draining").then(|| line.to_owned()));
    draining.unwrap();
    let status = up.process.wait(END_LIMIT).unwrap();
    up.process.join_readers();
    assert_eq!(status.code(), Some(0), "{}", up.process.transcript());
    let last = up.process.text(Stream::Err);
    assert!(
        last.contains(" finished since the start ") && last.contains(", 0 handed back, 0 lost"),
        "{last}"
    );
    drop(up);

    let arrived = target.book().arrivals.len();
    assert!(arrived < TASKS, "the server drained its queue instead of stopping: {arrived}");
    let records = records_after_a_restart(&store, &ids).await;
    for record in &records {
        assert_eq!(record["attempt"], 1, "no attempt was spent by the stop: {record}");
    }
    assert!(target.book().arrivals.values().all(|times| *times == 1), "what finished did not run again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_sigterm_hands_back_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("windlass.db");
    // No task ends on its own: only the second signal can end this drain within the test's limit.
    let target = Target::start(Duration::from_hours(1)).await.unwrap();
    let mut up = up(&store, "1h");
    let payload = json!({"url": target.url(), "timeout_ms": 3_600_000});
    let task = json!({"kind": "http", "payload": payload});
    let answer = up.api().post("/v1/tasks", &json!({"tasks": vec![task; SLOTS as usize]})).await.unwrap();
    let ids = answer.ids();
    assert_eq!(ids.len(), SLOTS as usize, "{answer:?}");
    until_saturated(&target).await;

    up.process.signal(Signal::TERM).unwrap();
    up.process.wait_for(START_LIMIT, |line| line.contains("draining").then_some(())).unwrap();
    up.process.signal(Signal::TERM).unwrap();
    let status = up.process.wait(END_LIMIT).unwrap();
    up.process.join_readers();
    assert_eq!(status.code(), Some(0), "{}", up.process.transcript());
    let text = up.process.text(Stream::Err);
    assert!(text.contains(&format!("{SLOTS} handed back")), "{text}");
    drop(up);

    let up = self::up(&store, "0s");
    let api = up.api();
    for id in &ids {
        let record = api.get(&format!("/v1/tasks/{id}")).await.unwrap().body;
        let state = record["state"].as_str().unwrap();
        assert!(["ready", "running"].contains(&state), "{record}");
        let spent = record["attempts"].as_array().unwrap();
        assert!(spent.iter().all(|attempt| attempt["result"] == "released"), "{record}");
        assert_eq!(record["crashes"], 0, "{record}");
        assert!(record["attempt"].as_u64().unwrap() <= 1, "{record}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ready_answers_503_while_the_server_drains() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("windlass.db");
    let target = Target::start(Duration::from_hours(1)).await.unwrap();
    let mut up = up(&store, "1h");
    let api = up.api();
    assert_eq!(api.get("/readyz").await.unwrap().status, 200);
    let payload = json!({"url": target.url(), "timeout_ms": 3_600_000});
    api.post("/v1/tasks", &json!({"kind": "http", "payload": payload})).await.unwrap();
    while target.book().open < 1 {
        tokio::task::yield_now().await;
    }

    up.process.signal(Signal::INT).unwrap();
    up.process.wait_for(START_LIMIT, |line| line.contains("draining").then_some(())).unwrap();
    let answer = api.get("/readyz").await.unwrap();
    assert_eq!(answer.status, 503, "{answer:?}");
    assert_eq!(api.get("/healthz").await.unwrap().status, 200);
    up.process.signal(Signal::INT).unwrap();
    up.process.wait(END_LIMIT).unwrap();
}
