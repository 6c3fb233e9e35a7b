//! What people come for, done in the browser without knowing an id.

use std::time::Duration;

use e2e::{browser::Browser, target::Target};
use serde_json::{Value, json};

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
    rig.noted("/v1/runs/1/stop").await;
    rig.open("/access").await;
    rig.browser.shows("/v1/runs/1/stop").await.unwrap();
    assert_eq!(rig.browser.console().await.unwrap(), Vec::<String>::new());
    rig.browser.close().await.unwrap();
}

/// How many of its tasks the run has changed, as its page says.
async fn changed(browser: &Browser) -> u64 {
    let script = "return document.querySelector('main').innerText.match(/([0-9,]+) of [0-9,]+ changed/)?.[1]";
    let told = browser.run(script, &[]).await.unwrap();
    told.as_str().map_or(0, |told| told.replace(',', "").parse().unwrap())
}

#[tokio::test]
async fn a_kind_that_a_deploy_broke_is_redriven_over_minutes() {
    // The issue speaks of 10,000 tasks over ten minutes: about 17 a second.
    let tasks = if std::env::var_os("WINDLASS_LONG").is_some() { 10_000 } else { 500 };
    let rig = Rig::with(&["--allow-target", "127.0.0.0/8"]).await;
    let target = Target::start(Duration::ZERO).await.unwrap();
    target.answer_with(400);
    let broken = json!({"kind": "http", "payload": {"url": target.url()}, "max_attempts": 1});
    for _ in 0..tasks / 500 {
        rig.call("POST", "/v1/tasks", json!({"tasks": vec![broken.clone(); 500]})).await;
    }
    // The overview shows that tasks die, and the page of causes which, since when, and an example.
    rig.open("/").await;
    let dead = if tasks == 500 { "500" } else { "10,000" };
    rig.browser
        .until(&format!(
            "document.querySelector('a.card[href=\"/tasks?state=dead\"] b').innerText === '{dead}'"
        ))
        .await
        .unwrap();
    rig.browser.press("Dead").await.unwrap();
    rig.browser.shows("Bad Request").await.unwrap();
    rig.browser
        .until("Date.parse(document.querySelector('tbody time').dateTime) <= Date.now()")
        .await
        .unwrap();
    target.answer_with(200);
    rig.browser.press("Retry…").await.unwrap();
    rig.browser.shows("tasks match").await.unwrap();
    rig.browser.fill("input[name=over]", "10").await.unwrap();
    rig.browser.press("Do it").await.unwrap();
    rig.browser.press("See its progress").await.unwrap();
    rig.browser.until("location.pathname === '/runs'").await.unwrap();
    // The page follows the run without a reload.
    rig.browser
        .until("/[1-9][0-9,]* of [0-9,]+ changed/.test(document.querySelector('main').innerText)")
        .await
        .unwrap();
    let first = changed(&rig.browser).await;
    rig.browser
        .until(&format!("!document.querySelector('main').innerText.includes(' {first} of ') && document.querySelector('svg.bar')"))
        .await
        .unwrap();
    let later = loop {
        match changed(&rig.browser).await {
            later if later > first => break later,
            _ => rig.browser.until("document.querySelector('svg.bar')").await.unwrap(),
        }
    };
    assert!(later < tasks, "all at once: {later}");
    rig.browser.close().await.unwrap();
}

#[tokio::test]
async fn a_worker_that_is_short_of_memory_is_seen_with_its_reason() {
    let mut rig = Rig::empty().await;
    rig.fill().await;
    rig.open("/").await;
    rig.browser.shows("on worker-eu-2 may use 12 % of its slots").await.unwrap();
    rig.browser.press_at("[data-code=worker_held_back] a").await.unwrap();
    rig.browser.until("location.pathname === '/workers'").await.unwrap();
    let row = "[...document.querySelectorAll('tbody tr')].find((row) => row.innerText.includes('worker-eu-2'))?.innerText ?? ''";
    for part in ["94 %", "takes 12 % of its slots", "Memory is short"] {
        rig.browser.until(&format!("({row}).includes('{part}')")).await.unwrap();
    }
    rig.browser.close().await.unwrap();
}

#[tokio::test]
async fn a_schedule_that_missed_its_ticks_is_seen_and_run_now() {
    let mut rig = Rig::empty().await;
    let schedule = json!({"cron": "0 3 * * *", "task": {"kind": "echo", "queue": "reports"}});
    rig.call("PUT", "/v1/schedules/nightly", schedule).await;
    // The server was down for four nights.
    rig.stop();
    let store = rusqlite::Connection::open(rig.store()).unwrap();
    store.execute("UPDATE schedule SET next_at = next_at - 5 * 86400000", []).unwrap();
    drop(store);
    rig.restart();
    rig.open("/").await;
    rig.browser.press("Schedules").await.unwrap();
    rig.browser.shows("4 ticks missed").await.unwrap();
    rig.browser.press("nightly").await.unwrap();
    rig.browser.shows("4 ticks have passed without a task").await.unwrap();
    rig.browser.press("Run now").await.unwrap();
    rig.browser.press("Do it").await.unwrap();
    rig.browser.until("document.querySelector('.toast')").await.unwrap();
    // One task for the first tick of that night, and one now.
    let tasks = rig.call("GET", "/v1/tasks?queue=reports", Value::Null).await;
    assert_eq!(tasks["tasks"].as_array().map(Vec::len), Some(2), "{tasks}");
    rig.browser.close().await.unwrap();
}
