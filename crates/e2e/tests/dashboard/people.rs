//! What people come for, done in the browser without knowing an id.

use std::time::Duration;

use e2e::target::Target;
use serde_json::json;

use crate::rig::Rig;

const ENTER: &str = "\u{e007}";

#[tokio::test]
async fn an_order_that_stands_still_is_found_and_runs_again() {
    let rig = Rig::with(&["--allow-target", "127.0.0.0/8"]).await;
    let target = Target::start(Duration::ZERO).await.unwrap();
    target.answer_with(400);
    let step = || json!({"kind": "http", "payload": {"url": target.url()}, "workflow": "order-17", "max_attempts": 1});
    let first = rig.add(step()).await;
    rig.ended(&first).await;
    let last = rig.add(step()).await;
    // The viewer knows the number of the order, and looks for its tasks.
    rig.open("/tasks").await;
    rig.browser.fill("input[name=workflow]", "order-17").await.unwrap();
    rig.browser.press("Filter").await.unwrap();
    rig.browser.until("location.search.includes('workflow=order-17')").await.unwrap();
    rig.browser.press(&last).await.unwrap();
    rig.browser.until("document.querySelector('[data-why=workflow_blocked]')").await.unwrap();
    rig.browser.press("See the workflow").await.unwrap();
    rig.browser.shows("It stands still because step").await.unwrap();
    // What refused the request is repaired.
    target.answer_with(200);
    rig.browser.press("Retry the step").await.unwrap();
    rig.ended(&last).await;
    rig.browser.shows("2 done").await.unwrap();
    rig.browser.close().await.unwrap();
}

#[tokio::test]
async fn the_limit_of_a_site_is_lowered_and_holds() {
    let rig = Rig::with(&["--allow-target", "127.0.0.0/8"]).await;
    let target = Target::start(Duration::ZERO).await.unwrap();
    target.hold();
    rig.call("PUT", "/v1/jobs/api.example.com", json!({"concurrency": 4})).await;
    let task = || json!({"kind": "http", "payload": {"url": target.url()}, "job": "api.example.com"});
    let mut ids = Vec::new();
    for _ in 0..12 {
        ids.push(rig.add(task()).await);
    }
    rig.open("/jobs").await;
    rig.browser.shows("4 of 4").await.unwrap();
    rig.browser.press("Limit…").await.unwrap();
    rig.browser.fill("input[name=concurrency]", "1").await.unwrap();
    rig.browser.keys(ENTER).await.unwrap();
    rig.browser.shows("4 of 1").await.unwrap();
    // The four that run end; from then on one runs at a time.
    target.release();
    for id in &ids {
        rig.ended(id).await;
    }
    rig.browser.shows("0 of 1").await.unwrap();
    {
        let book = target.book();
        let first: Vec<_> = book.visits.iter().take(4).map(|visit| visit.task.clone()).collect();
        assert_eq!(book.visits.most_open(|visit| !first.contains(&visit.task)), 1);
    }
    rig.browser.close().await.unwrap();
}

#[tokio::test]
async fn a_paused_queue_is_seen_at_the_task_and_resumed_there() {
    let rig = Rig::empty().await;
    rig.call("POST", "/v1/queues/mail/pause", json!({})).await;
    let id = rig.add(json!({"kind": "echo", "queue": "mail"})).await;
    rig.open("/queues").await;
    rig.browser.shows("paused").await.unwrap();
    rig.browser.press("mail").await.unwrap();
    rig.browser.until("location.pathname === '/queues/mail'").await.unwrap();
    rig.browser.press("1").await.unwrap();
    rig.browser.press(&id).await.unwrap();
    rig.browser.press("Resume the queue").await.unwrap();
    rig.browser.until("document.querySelector('[data-why=done]')").await.unwrap();
    rig.browser.close().await.unwrap();
}

#[tokio::test]
async fn with_the_keyboard_alone_a_dead_group_is_redriven() {
    let rig = Rig::with(&["--allow-target", "127.0.0.0/8"]).await;
    let target = Target::start(Duration::ZERO).await.unwrap();
    target.answer_with(400);
    let task = || json!({"kind": "http", "payload": {"url": target.url()}, "max_attempts": 1});
    let ids = [rig.add(task()).await, rig.add(task()).await];
    for id in &ids {
        rig.ended(id).await;
    }
    rig.open("/").await;
    // From the navigation to the page of dead tasks.
    rig.browser.keys("g").await.unwrap();
    rig.browser.keys(&"\u{e004}".repeat(3)).await.unwrap();
    rig.browser.keys(ENTER).await.unwrap();
    rig.browser.until("location.pathname === '/dead'").await.unwrap();
    rig.browser.shows("Bad Request").await.unwrap();
    // Why: the tasks of the group, and the first of them.
    rig.browser.keys("j").await.unwrap();
    rig.browser.keys(ENTER).await.unwrap();
    rig.browser.until("location.pathname === '/tasks'").await.unwrap();
    rig.browser.until("document.querySelectorAll('tbody tr').length === 2").await.unwrap();
    rig.browser.keys("j").await.unwrap();
    rig.browser.keys(ENTER).await.unwrap();
    rig.browser.until("document.querySelector('[data-why=dead]')").await.unwrap();
    target.answer_with(200);
    // Back to the group, and its first action.
    rig.browser.run("history.go(-2)", &[]).await.unwrap();
    rig.browser.until("location.pathname === '/dead' && document.querySelector('tbody tr')").await.unwrap();
    rig.browser.keys("ja").await.unwrap();
    rig.browser.keys(ENTER).await.unwrap();
    rig.browser.shows("2 tasks match").await.unwrap();
    rig.browser.until("document.activeElement.closest('dialog')").await.unwrap();
    rig.browser.run("document.getElementById('ask-yes').focus()", &[]).await.unwrap();
    rig.browser.keys(ENTER).await.unwrap();
    for id in &ids {
        rig.ended_as(id, "done").await;
    }
    rig.browser.shows("No task is dead").await.unwrap();
    rig.browser.close().await.unwrap();
}

#[tokio::test]
async fn a_dead_group_is_retried_over_a_time_and_stopped() {
    let rig = Rig::empty().await;
    // The worker may not send requests to this machine.
    let task = || json!({"kind": "http", "payload": {"url": "http://127.0.0.1:9/"}, "max_attempts": 1});
    for _ in 0..3 {
        let id = rig.add(task()).await;
        rig.ended(&id).await;
    }
    rig.open("/dead").await;
    rig.browser.press("Retry…").await.unwrap();
    rig.browser.shows("3 tasks match").await.unwrap();
    rig.browser.shows("http (default, dead)").await.unwrap();
    rig.browser.fill("input[name=over]", "600").await.unwrap();
    rig.browser.press("Do it").await.unwrap();
    rig.browser.press("See its progress").await.unwrap();
    rig.browser.until("location.pathname === '/runs'").await.unwrap();
    rig.browser.shows("1 of 3 changed").await.unwrap();
    rig.browser.press("Stop").await.unwrap();
    rig.browser.press("Do it").await.unwrap();
    rig.browser.shows("stopped").await.unwrap();
    // Who did it is on the page of access.
    rig.open("/access").await;
    rig.browser.shows("/v1/runs/1/stop").await.unwrap();
    assert_eq!(rig.browser.console().await.unwrap(), Vec::<String>::new());
    rig.browser.close().await.unwrap();
}
