//! What the log says about a job's limit.

use e2e::{process::START_LIMIT, up::Up};
use serde_json::json;

use crate::windlass;

/// One line when the job reaches its limit and one when it leaves it, however many tasks run in between.
#[tokio::test(flavor = "multi_thread")]
async fn reaching_and_leaving_a_job_limit_is_logged_once_each() {
    let folder = tempfile::tempdir().unwrap();
    let mut up =
        Up::start(windlass(folder.path(), ["up", "--listen", "127.0.0.1:0", "--log-level", "info"])).unwrap();
    let api = up.api();
    let task = json!({"kind": "sleep", "payload": {"ms": 5}, "job": "site-7"});
    api.put("/v1/jobs/site-7", &json!({"concurrency": 1})).await.unwrap();
    api.post("/v1/tasks", &json!({"tasks": vec![task; 20]})).await.unwrap();
    up.process.wait_for(START_LIMIT, |line| line.contains("left its limit").then_some(())).unwrap();
    let said = up.process.transcript();
    assert_eq!(said.matches("job reached its limit").count(), 1, "{said}");
    assert_eq!(said.matches("job left its limit").count(), 1, "{said}");
}
