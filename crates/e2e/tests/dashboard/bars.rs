//! What a page costs, and what it may load.

use serde_json::Value;

use crate::rig::{PAGES, Rig};

/// Most bytes and requests of a page that a browser opens for the first time.
const BYTES_MAX: u64 = 150_000;
const REQUESTS_MAX: usize = 8;

#[tokio::test]
async fn a_cold_load_is_small_and_stays_on_this_server() {
    let rig = Rig::full().await;
    // The time to use is the browser's own: from the first byte of the answer to a page that can be used.
    let cost = "const [page] = performance.getEntriesByType('navigation');
         const loaded = [page, ...performance.getEntriesByType('resource')];
         return [loaded.length, loaded.reduce((sum, one) => sum + one.decodedBodySize, 0),
                 page.domContentLoadedEventEnd - page.responseStart]";
    for (name, path) in PAGES {
        rig.browser.requests().await.unwrap();
        rig.browser.forget().await.unwrap();
        rig.open(path).await;
        let figures = rig.browser.run(cost, &[]).await.unwrap();
        let (requests, bytes, ms) =
            (figures[0].as_u64().unwrap(), figures[1].as_u64().unwrap(), figures[2].as_f64().unwrap());
        println!("{name}: {requests} requests, {bytes} bytes, usable {ms:.0} ms after the first byte");
        assert!(
            requests as usize <= REQUESTS_MAX && bytes <= BYTES_MAX,
            "{name}: {requests} requests, {bytes} bytes"
        );
        for address in rig.browser.requests().await.unwrap() {
            // The browser loads its own empty first tab.
            let is_own =
                [rig.up.address.as_str(), "data:", "chrome"].iter().any(|own| address.starts_with(own));
            assert!(is_own, "{name} asked for {address}");
        }
    }
    assert_eq!(rig.browser.console().await.unwrap(), Vec::<String>::new());
    rig.browser.close().await.unwrap();
}

#[tokio::test]
async fn a_page_that_did_not_change_is_not_sent_again() {
    let rig = Rig::full().await;
    let twice = "const end = arguments[arguments.length - 1];
         const look = (tag) => fetch('/store', { headers: { 'windlass-fragment': '1', ...(tag ? { 'if-none-match': tag } : {}) }, cache: 'no-store' });
         look().then(async (first) => {
           await first.text();
           const second = await look(first.headers.get('etag'));
           end([first.status, second.status]);
         });";
    rig.open("/jobs").await;
    let statuses = rig.browser.run_to_end(&twice.replace("/store", "/jobs")).await.unwrap();
    assert_eq!(statuses, serde_json::json!([200, 304]));
    rig.browser.close().await.unwrap();
}

#[tokio::test]
async fn a_lost_server_is_shown_and_its_return_too() {
    let mut rig = Rig::full().await;
    rig.open("/jobs").await;
    rig.up.process.kill().unwrap();
    rig.browser.shows("The server does not answer").await.unwrap();
    rig.restart();
    rig.browser.until("document.getElementById('lost').hidden").await.unwrap();
    rig.browser.close().await.unwrap();
}

#[tokio::test]
async fn rows_stay_where_they_are_while_new_ones_arrive() {
    let rig = Rig::empty().await;
    for _ in 0..3 {
        rig.add(serde_json::json!({"kind": "echo"})).await;
    }
    rig.open("/tasks").await;
    let ids = "return [...document.querySelectorAll('tbody tr')].map((row) => row.dataset.key)";
    let before = rig.browser.run(ids, &[]).await.unwrap();
    rig.add(serde_json::json!({"kind": "echo"})).await;
    rig.browser.shows("1 new: show").await.unwrap();
    assert_eq!(rig.browser.run(ids, &[]).await.unwrap(), before);
    rig.browser.press("1 new: show").await.unwrap();
    rig.browser.until("document.querySelectorAll('tbody tr').length === 4").await.unwrap();
    let after = rig.browser.run(ids, &[]).await.unwrap();
    assert_eq!(after.as_array().unwrap()[1..].to_vec(), before.as_array().cloned().unwrap_or_default());
    assert!(matches!(after, Value::Array(_)));
    rig.browser.close().await.unwrap();
}
