//! The examples work as described.
#![cfg(feature = "sqlite")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "the test calls what main calls")]
#[path = "../examples/order_pipeline.rs"]
mod order_pipeline;
#[allow(dead_code, reason = "the test calls what main calls")]
#[path = "../examples/polite_crawler.rs"]
mod polite_crawler;
#[allow(dead_code, reason = "the test calls what main calls")]
#[path = "../examples/watched_worker.rs"]
mod watched_worker;

use std::time::Duration;

#[tokio::test]
async fn a_declined_card_blocks_only_its_own_order() {
    let log = order_pipeline::run().await.unwrap();
    let of = |order: u32| -> Vec<&str> {
        let prefix = format!("order {order}: ");
        log.iter().filter_map(|line| line.strip_prefix(&prefix)).collect()
    };
    assert_eq!(of(1), ["reserved", "charged", "shipped"]);
    assert_eq!(of(2), ["reserved", "card declined", "charged", "shipped"]);
    assert_eq!(of(3), ["reserved", "charged", "shipped"]);
    let place = |line: &str| log.iter().position(|logged| logged == line).unwrap();
    let blocked = place("order-2 is blocked: card declined");
    assert!(place("order 1: shipped") < blocked && place("order 3: shipped") < blocked, "{log:?}");
    assert!(place("order 2: card declined") < blocked && blocked < place("order 2: charged"), "{log:?}");
}

#[tokio::test]
async fn the_crawler_fetches_each_page_once_and_keeps_its_delay() {
    let delay_ms = 100;
    let sites = [
        polite_crawler::local::Site::start().await.unwrap(),
        polite_crawler::local::Site::start().await.unwrap(),
    ];
    let addresses: Vec<String> = sites.iter().map(|site| site.address.clone()).collect();
    let took = polite_crawler::crawl(&addresses, Duration::from_millis(delay_ms)).await.unwrap();
    for site in &sites {
        let mut visits = site.visits();
        assert_eq!(visits.first().map(String::as_str), Some("/"));
        visits.sort();
        assert_eq!(visits, ["/", "/about", "/news", "/news/1", "/news/2"]);
    }
    // Five starts have four pauses, each of whole milliseconds by the store's clock; both sites are crawled
    // at once.
    assert!(took >= Duration::from_millis(4 * (delay_ms - 1)), "{took:?}");
}

#[tokio::test]
async fn a_watched_worker_counts_attempts_and_reports_failures() {
    let watch = watched_worker::run().await.unwrap();
    let counts: Vec<_> = watch.outcomes.lock().unwrap().iter().map(|(name, (n, _))| (*name, *n)).collect();
    assert_eq!(counts, [("done", 2), ("failed", 3)]);
    let mut reports = watch.reports.lock().unwrap().clone();
    reports.sort();
    assert_eq!(
        reports,
        [
            "resize attempt 1 of 2: not an image",
            "resize attempt 1 of 2: the disk was busy",
            "resize attempt 2 of 2: not an image",
        ]
    );
}
