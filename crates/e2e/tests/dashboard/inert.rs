//! Markup in names, errors, payloads and keys is shown as text.

use serde_json::json;

use crate::rig::Rig;

const MARKUP: &str = "<img src=x onerror=document.title='owned'>";

#[tokio::test]
async fn markup_in_every_name_is_shown_as_text() {
    let rig = Rig::empty().await;
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
    let task = format!("/tasks/{id}");
    let dead = format!("/tasks/{second}");
    let named = ["/schedules/%3Cb%20onload%3Dx%3E", "/workflows/'onmouseover='x"];
    let pages =
        ["/", "/queues", "/tasks", "/dead", "/jobs", "/workflows", "/schedules", "/consumers", &task, &dead];
    for page in pages.into_iter().chain(named) {
        rig.open(page).await;
        rig.browser.until("document.querySelector('main h1')").await.unwrap();
        let foreign = "return document.querySelectorAll('main img, main script, main [onload], main [onmouseover], main [onerror]').length";
        assert_eq!(rig.browser.run(foreign, &[]).await.unwrap(), json!(0), "{page}");
    }
    rig.open(&task).await;
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
