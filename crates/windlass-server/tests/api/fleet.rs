//! Queues, workers, and what the server reports about itself.

use serde_json::json;
use windlass_server::api::WorkerStatusView;

use crate::harness::{Api, Setup};

#[tokio::test]
async fn a_queue_is_paused_and_resumed_and_the_list_shows_it() {
    let api = Api::start().await;
    api.enqueue(json!({"kind": "b", "queue": "mail"})).await;
    api.enqueue(json!({"kind": "a", "queue": "mail"})).await;
    let paused = api.post_nothing("/v1/queues/mail/pause").await;
    assert_eq!(
        (paused.status, paused.json()),
        (200, json!({"queue": "mail", "paused": true, "changed": true}))
    );
    assert_eq!(api.post_nothing("/v1/queues/mail/pause").await.json()["changed"], false);
    // A queue without a task, with a name that needs escaping.
    assert_eq!(api.post("/v1/queues/site%207%2Feu/pause", "{}").await.json()["queue"], "site 7/eu");
    let queues = api.get("/v1/queues").await.json();
    let mail = &queues["queues"][0];
    assert_eq!((&mail["queue"], &mail["paused"]), (&json!("mail"), &json!(true)));
    assert_eq!((&mail["kinds"][0]["kind"], &mail["kinds"][0]["depth"]["ready"]), (&json!("a"), &json!(1)));
    assert_eq!(queues["queues"][1], json!({"queue": "site 7/eu", "paused": true, "kinds": []}));
    assert_eq!(api.post_nothing("/v1/queues/mail/resume").await.json()["paused"], false);
    assert_eq!(api.get("/v1/queues").await.json()["queues"][0]["paused"], false);
}

#[tokio::test]
async fn a_wrong_queue_name_and_a_wrong_body_are_refused() {
    let api = Api::start().await;
    assert_eq!(api.post_nothing("/v1/queues/%20/pause").await.error(400).0, "invalid");
    assert_eq!(api.post("/v1/queues/mail/pause", r#"{"for":"ever"}"#).await.error(400).0, "invalid");
    assert_eq!(api.post("/v1/queues/mail/resume", "[1]").await.error(400).0, "invalid");
}

#[tokio::test]
async fn workers_are_listed_the_newest_first() {
    let api = Api::start().await;
    api.worker(&["a"]).await;
    let newest = api.worker(&["b"]).await;
    let workers = api.get("/v1/workers").await.json();
    let workers = workers["workers"].as_array().unwrap();
    assert_eq!(workers.len(), 2);
    assert_eq!(
        (&workers[0]["worker_id"], &workers[0]["kinds"]),
        (&json!(newest.id.to_string()), &json!(["b"]))
    );
    assert_eq!(
        (&workers[0]["state"], &workers[0]["max_capacity"], &workers[0]["available_capacity"]),
        (&json!("live"), &json!(10), &json!(10))
    );
    for (field, value) in [("memory_usage", 0.0), ("factor", 1.0)] {
        assert_eq!(workers[0][field], json!(value));
    }
    assert_eq!((&workers[0]["reason"], &workers[0]["in_flight"]), (&json!(""), &json!(0)));
}

#[tokio::test]
async fn the_slots_of_a_worker_are_set_and_wrong_values_refused() {
    let api = Api::start().await;
    let worker = api.worker(&["a"]).await;
    let set = async |id: &str, body: &str| api.put(&format!("/v1/workers/{id}"), body).await;
    let id = worker.id.to_string();
    let changed = set(&id, r#"{"slots":25}"#).await;
    assert_eq!((changed.status, &changed.json()["max_capacity"]), (200, &json!(25)));
    assert_eq!(api.get("/v1/workers").await.json()["workers"][0]["max_capacity"], 25);
    for (id, body, status, code) in [
        (id.as_str(), r#"{"slots":0}"#, 400, "invalid"),
        (&id, r#"{"slots":100001}"#, 400, "invalid"),
        (&id, r#"{"slots":5,"colour":"red"}"#, 400, "invalid"),
        (&id, "{}", 400, "invalid"),
        ("w987", r#"{"slots":5}"#, 404, "not_found"),
        ("nobody", r#"{"slots":5}"#, 400, "invalid"),
    ] {
        assert_eq!(set(id, body).await.error(status).0, code, "{id} {body}");
    }
}

#[tokio::test]
async fn info_shows_version_store_and_worker() {
    let setup = Setup {
        operations: |operations| {
            operations
                .version("9.9.9")
                .worker_status(|| Some(WorkerStatusView { slots: 3, ..WorkerStatusView::default() }))
        },
        ..Setup::default()
    };
    let info = Api::with(setup).await.get("/v1/info").await.json();
    assert_eq!((&info["version"], &info["worker"]["slots"]), (&json!("9.9.9"), &json!(3)));
    assert_eq!(info["store"]["backend"], "memory");
    assert_eq!(info["pid"], std::process::id());
}

#[tokio::test]
async fn a_page_is_sent_under_a_strict_policy() {
    let setup = Setup { operations: |operations| operations.version("1.0<b>"), ..Setup::default() };
    let page = Api::with(setup).await.get("/").await;
    assert_eq!(page.status, 200);
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(page.header("cache-control"), Some("no-store"));
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    assert!(page.text().contains("Windlass 1.0&lt;b&gt;") && page.text().contains("href=\"/tasks\""));
    // Nothing is inline: no script, no style, no handler.
    assert!(
        !page.text().contains("1.0<b>") && !page.text().contains("style=") && !page.text().contains("<style")
    );
    assert_eq!(
        page.text().matches("<script").count(),
        page.text().matches("<script type=\"module\" src=").count()
    );
    assert!(!page.text().contains(" onclick") && !page.text().contains(" onload"));
}

#[tokio::test]
async fn the_audit_of_a_sound_store_finds_nothing() {
    let api = Api::start().await;
    api.enqueue(json!({"kind": "a"})).await;
    let audit = api.get("/v1/audit").await;
    assert_eq!((audit.status, audit.json()), (200, json!({"findings": []})));
}

#[tokio::test]
async fn the_overview_counts_only_new_tasks() {
    let api = Api::start().await;
    assert_eq!(api.get("/v1/overview").await.json()["enqueued"], 0);
    api.post("/v1/tasks", r#"{"kind":"a","key":"k"}"#).await;
    api.post("/v1/tasks", r#"{"kind":"a","key":"k"}"#).await;
    api.post("/v1/tasks", r#"{"tasks":[{"kind":"a"},{"kind":"a","key":"k"},{"kind":"b"}]}"#).await;
    api.post("/v1/tasks", r#"{"kind":""}"#).await;
    let overview = api.get("/v1/overview").await.json();
    assert_eq!((&overview["enqueued"], &overview["pid"]), (&json!(3), &json!(std::process::id())));
    assert!(overview.get("worker").is_none(), "{overview}");
}
