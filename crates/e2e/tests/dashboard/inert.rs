//! Markup in names, errors, payloads and keys is shown as text.

use std::time::Duration;

use serde_json::json;
use windlass_core::{Name, NewWorker, Source as _, WorkerReport};
use windlass_remote::{Options, RemoteStore};

use crate::rig::Rig;

const MARKUP: &str = "<img src=x onerror=document.title='owned'>";

#[tokio::test]
async fn markup_in_every_name_is_shown_as_text() {
    let mut rig = Rig::empty().await;
    rig.fill().await;
    add_worker(&rig.up.address).await;
    let job = "<svg/onload=alert(1)>";
    let id = rig
        .add(json!({
            "kind": MARKUP, "queue": "\"><script>alert(2)</script>", "job": job, "workflow": "'onmouseover='x",
            "key": "</title><script>alert(3)</script>", "payload": {"text": "<script>alert(4)</script>"},
        }))
        .await;
    // The reason of a cancel is kept as the task's error.
    let second = rig.add(json!({"kind": "unknown"})).await;
    rig.call("POST", &format!("/v1/tasks/{second}/cancel"), json!({"reason": MARKUP})).await;
    let schedule = json!({"cron": "@daily", "task": {"kind": MARKUP, "payload": {"text": MARKUP}}});
    rig.call("PUT", "/v1/schedules/%3Cb%20onload%3Dx%3E", schedule).await;
    let consumer = json!({
        "queue": MARKUP, "event_type": job, "state": "consuming", "busy": 0, "allowed": 1, "workers": 1, "prefetch": 1,
        "deliveries": 0, "redeliveries": 0, "acked": 0, "rejected": 0, "requeued": 0, "unanswered": 0, "reconnects": 0
    });
    let report = json!({"process": MARKUP, "host": MARKUP, "version": job, "consumers": [consumer]});
    rig.call("POST", "/v1/consumers", report).await;
    // What a handler says about its task, and the cause by which dead tasks are grouped.
    let payload = json!({"error": MARKUP, "progress": MARKUP});
    let failed = rig
        .add(json!({"kind": "charge-card", "queue": "billing", "max_attempts": 1, "payload": payload}))
        .await;
    rig.ended(&failed).await;
    let payload = json!({"ms": 600_000, "progress": MARKUP});
    let running = rig.add(json!({"kind": "charge-card", "queue": "billing", "payload": payload})).await;
    rig.call("POST", "/v1/runs", json!({"action": "cancel", "filter": {"kind": MARKUP}})).await;
    rig.call("POST", "/v1/tokens", json!({"name": MARKUP, "scopes": ["read"]})).await;
    let task = format!("/tasks/{id}");
    let (failed, running) = (format!("/tasks/{failed}"), format!("/tasks/{running}"));
    let dead = format!("/tasks/{second}");
    let named = ["/schedules/%3Cb%20onload%3Dx%3E", "/workflows/'onmouseover='x"];
    let pages = [
        "/",
        "/queues",
        "/tasks",
        "/dead",
        "/runs",
        "/jobs",
        "/workflows",
        "/schedules",
        "/workers",
        "/consumers",
        "/access",
        &task,
        &dead,
        &failed,
        &running,
    ];
    for page in pages.into_iter().chain(named) {
        rig.open(page).await;
        rig.browser.until("document.querySelector('main h1')").await.unwrap();
        let foreign = "return document.querySelectorAll('main img, main script, main [onload], main [onmouseover], main [onerror]').length";
        assert_eq!(rig.browser.run(foreign, &[]).await.unwrap(), json!(0), "{page}");
    }
    for page in ["/dead", "/workers", "/access", "/runs", failed.as_str(), running.as_str(), task.as_str()] {
        rig.open(page).await;
        rig.browser.shows(MARKUP).await.unwrap();
    }
    rig.browser.shows(MARKUP).await.unwrap();
    rig.browser.press("Show the payload").await.unwrap();
    rig.browser.shows("<script>alert(4)</script>").await.unwrap();
    let title = rig.browser.run("return document.title", &[]).await.unwrap();
    assert!(title.as_str().unwrap().ends_with("· Windlass"), "{title}");
    // Every link leads to the thing that it names, whatever letters the name has.
    for (page, text) in [("/jobs", job), ("/tasks", "\"><script>alert(2)</script>")] {
        rig.open(page).await;
        rig.browser.press(text).await.unwrap();
        rig.browser.until("location.pathname.split('/').length === 3").await.unwrap();
        rig.browser
            .until("document.querySelector('main h1') && !document.body.innerText.includes('Not found')")
            .await
            .unwrap();
    }
    assert_eq!(rig.browser.console().await.unwrap(), Vec::<String>::new());
    rig.browser.close().await.unwrap();
}

/// A worker of another language may call itself anything.
async fn add_worker(address: &str) {
    let store = RemoteStore::connect(&address.parse().unwrap(), Options::default()).await.unwrap();
    let worker = NewWorker {
        host: MARKUP.into(),
        pid: 1,
        version: MARKUP.into(),
        kinds: vec![Name::new("kind", "<b>kind</b>").unwrap()],
        queues: vec![Name::new("queue", "<i>queue</i>").unwrap()],
        slots: 1,
        lease_ttl: Duration::from_hours(1),
    };
    let id = store.register(worker).await.unwrap();
    let report = WorkerReport { factor: 0.5, reason: MARKUP.into(), ..WorkerReport::default() };
    store.renew(id, report).await.unwrap();
}
