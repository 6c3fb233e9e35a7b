//! LIVENESS-TRUTH and DRAIN: `/readyz` is 200 only when the process can do its work.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use serde_json::json;
use windlass_core::{Error, Store};
use windlass_server::{Operations, http::Options};

use crate::{dead_store::DeadStore, harness::Api};

#[tokio::test]
async fn readyz_is_503_with_the_reason_while_the_process_drains() {
    let plain = Api::start().await;
    let draining = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&draining);
    let operations = Operations::new(plain.store.clone()).ready_if("worker", move || {
        if seen.load(Ordering::Relaxed) { Err("draining".into()) } else { Ok(()) }
    });
    let api = Api::around(plain.store.clone(), plain.clock.clone(), operations, Options::default()).await;
    let ready = api.get("/readyz").await;
    assert_eq!((ready.status, &ready.json()["ok"]), (200, &json!(true)));
    draining.store(true, Ordering::Relaxed);
    let ready = api.get("/readyz").await;
    assert_eq!((ready.status, &ready.json()["reason"]), (503, &json!("worker: draining")));
    let store_check = json!({"name": "store", "ok": true});
    assert_eq!(
        ready.json()["checks"],
        json!([{"name": "worker", "ok": false, "detail": "draining"}, store_check])
    );
    assert_eq!(api.get("/healthz").await.status, 200);
    assert_eq!(api.get("/v1/tasks").await.status, 200, "a draining server still answers");
}

#[tokio::test]
async fn a_failing_store_makes_readyz_503_and_calls_retryable() {
    let api = Api::start().await;
    api.store.close().await.unwrap();
    let ready = api.get("/readyz").await;
    assert_eq!(ready.status, 503);
    assert!(ready.json()["reason"].as_str().unwrap().starts_with("store: the store is unavailable"));
    let refused = api.post("/v1/tasks", r#"{"kind":"a"}"#).await;
    assert_eq!(refused.error(503).0, "unavailable");
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(api.get("/healthz").await.status, 200);
    let overview = api.get("/").await;
    assert_eq!(overview.status, 200, "the page itself says what is wrong");
    assert!(overview.text().contains("The store does not answer"), "{}", overview.text());
    let page = api.get("/tasks").await;
    assert_eq!(page.status, 503);
    assert!(page.text().contains("This did not work"), "{}", page.text());
}

#[tokio::test(start_paused = true)]
async fn readyz_does_not_wait_for_a_silent_store() {
    let ready = Operations::new(DeadStore::silent()).ready().await;
    assert_eq!(ready.reason.as_deref(), Some("store: no answer within 2 s"));
}

#[tokio::test]
async fn every_failure_of_a_store_has_its_status() {
    let spare = Api::start().await;
    for (error, status, code) in [
        (Error::StoreFull("2 % free".into()), 507, "store_full"),
        (Error::Unavailable("busy".into()), 503, "unavailable"),
        (Error::Unknown("gone".into()), 500, "unknown_outcome"),
        (Error::Unsupported("that".into()), 501, "unsupported"),
        (Error::Fatal("fsync".into()), 500, "store_failed"),
    ] {
        let operations = Operations::new(DeadStore::failing(error));
        let api = Api::around(spare.store.clone(), spare.clock.clone(), operations, Options::default()).await;
        assert_eq!(api.post("/v1/tasks", r#"{"kind":"a"}"#).await.error(status).0, code);
        for path in ["/v1/tasks", "/v1/dead", "/v1/queues", "/v1/workers", "/v1/info"] {
            assert_eq!(api.get(path).await.error(status).0, code, "{path}");
        }
        let answer = api.post("/v1/tasks/retry", "{}").await;
        assert_eq!(answer.error(status).0, code);
    }
}
