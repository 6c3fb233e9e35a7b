//! What operators see of the built program: logs, traces, messages to a service manager.
#![allow(clippy::panic, clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod logs;
mod systemd;
mod top;
mod traces;
mod unit;

use e2e::{http::Api, until};
use serde_json::Value;

/// Waits until a task is in this state, and returns its record.
async fn until_state(api: &Api, id: &str, state: &str) -> Value {
    until(async || {
        let task = api.get(&format!("/v1/tasks/{id}")).await.unwrap().body;
        if task["state"] == state { Ok(task) } else { Err(format!("not {state}: {task}")) }
    })
    .await
    .unwrap()
}

/// Enqueues one task and returns its id.
async fn enqueue(api: &Api, task: &Value) -> String {
    let answer = api.post("/v1/tasks", task).await.unwrap();
    assert!(answer.status < 300, "{answer:?}");
    answer.body["id"].as_str().unwrap().to_owned()
}
