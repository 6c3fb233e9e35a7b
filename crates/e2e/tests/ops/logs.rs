//! JSON log lines of a real server: fields that find the task, and never its payload.

use std::collections::BTreeSet;

use e2e::{
    process::{END_LIMIT, Stream},
    up::Up,
};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{enqueue, until_state};

const SECRET: &str = "correct-horse-battery";

#[tokio::test(flavor = "multi_thread")]
async fn json_lines_find_the_task_and_never_show_its_payload() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("windlass.db");
    let arguments = ["--log-format", "json", "--log-level", "info", "--allow-target", "127.0.0.0/8"];
    let mut up = Up::on(&store, arguments).unwrap();
    let api = up.api();
    let done = enqueue(&api, &json!({"kind": "echo", "payload": {"secret": SECRET}})).await;
    until_state(&api, &done, "done").await;

    // No process listens on port 1.
    let payload =
        json!({"url": format!("http://u:{SECRET}@127.0.0.1:1/{SECRET}"), "method": "POST", "body": SECRET});
    let fails = json!({
        "kind": "http", "queue": "mail", "job": "site-7", "workflow": "order-1", "payload": payload,
        "max_attempts": 2, "retry": {"base_ms": 1, "max_ms": 1},
    });
    let dead = enqueue(&api, &fails).await;
    until_state(&api, &dead, "dead").await;
    let sleeps = enqueue(&api, &json!({"kind": "sleep", "payload": {"ms": 3_600_000}})).await;
    until_state(&api, &sleeps, "running").await;
    api.post(&format!("/v1/tasks/{sleeps}/cancel"), &json!({"reason": "not today"})).await.unwrap();
    until_state(&api, &sleeps, "cancelled").await;
    up.process.signal(Signal::TERM).unwrap();
    assert_eq!(up.process.wait(END_LIMIT).unwrap().code(), Some(0));
    up.process.join_readers();

    let text = up.process.text(Stream::Err);
    assert!(!up.process.transcript().contains(SECRET), "{text}");
    let lines: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let about = |id: &str| lines.iter().filter(|line| line["task"] == id).collect::<Vec<_>>();
    assert_eq!(about(&done), Vec::<&Value>::new(), "success writes no line");
    let told: Vec<_> =
        about(&dead).iter().map(|line| (line["level"].clone(), line["attempt"].clone())).collect();
    assert_eq!(told, [(json!("INFO"), json!(1)), (json!("WARN"), json!(2))], "{text}");
    for line in about(&dead) {
        let fields = ["kind", "queue", "job", "workflow"].map(|field| line[field].as_str().unwrap());
        assert_eq!(fields, ["http", "mail", "site-7", "order-1"], "{line}");
        assert!(line["worker"].as_str().unwrap().starts_with('w'), "{line}");
        assert!(line["timestamp"].is_string() && line["message"].is_string(), "{line}");
    }
    let cancelled = about(&sleeps);
    assert_eq!(cancelled.len(), 1, "{text}");
    assert!(cancelled[0].get("job").is_none(), "what a task does not have is not said: {}", cancelled[0]);
    let events: BTreeSet<&str> = lines.iter().filter_map(|line| line["message"].as_str()).collect();
    assert!(events.contains("started") && events.contains("worker stopped"), "{events:?}");
}
