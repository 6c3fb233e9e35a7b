//! The time of a page with many tasks. Each look asks for a new drawing, so that no earlier one is answered.

use serde_json::{Map, Value, json};
use windlass_core::{
    State,
    store::{Filter, SharedStore},
};
use windlass_server::http;

use super::{super::remote::Server, viewers::Browser};
use crate::{
    args::Common,
    rig::{HistoryArg, Rig, percentile, round},
};

/// Looks at each page that are not counted.
const WARM_UP: usize = 5;
/// Filters that no task matches, from those with an index to those that look at the newest tasks one by one.
const NO_MATCH: [&str; 6] = [
    "/tasks?kind=unknown",
    "/tasks?job=unknown",
    "/tasks?workflow=unknown",
    "/tasks?key=unknown",
    "/tasks?state=dead",
    "/tasks?state=ready&worker=w999999",
];

pub(super) async fn run(common: &Common, tasks: usize, looks: usize) -> anyhow::Result<Map<String, Value>> {
    let rig = Rig::new(common, HistoryArg::Kept).await?;
    for (queue, share) in [("default", 2), ("mail", 4), ("reports", 4)] {
        rig.load("noop", queue, tasks / share).await?;
    }
    let server = Server::start(rig.store.clone(), http::Options::default()).await?;
    let browser = Browser::new(server.port());
    let one = format!("/tasks/{}", any_task(&rig.store).await?);
    let first = worst(&browser, &["/", "/queues", "/tasks"], looks).await?;
    let none = worst(&browser, &NO_MATCH, looks).await?;
    let one = worst(&browser, &[&one], looks).await?;
    server.end().await?;
    rig.store.close().await?;
    let times = json!({
        "tasks": tasks, "looks": looks,
        "first_page_p99_ms": first.p99_ms, "first_page_worst": first.page,
        "no_match_p99_ms": none.p99_ms, "no_match_worst": none.page,
        "one_task_p99_ms": one.p99_ms,
    });
    Ok(times.as_object().cloned().unwrap_or_default())
}

async fn any_task(store: &SharedStore) -> anyhow::Result<windlass_core::TaskId> {
    let filter = Filter { state: Some(State::Ready), ..Filter::default() };
    let page = store.tasks(&filter, None, 1).await?;
    page.tasks.first().map(|task| task.id).ok_or_else(|| anyhow::anyhow!("the store has no task"))
}

/// The slowest of some pages.
struct Slowest {
    page: String,
    p99_ms: f64,
}

async fn worst(browser: &Browser, pages: &[&str], looks: usize) -> anyhow::Result<Slowest> {
    let mut slowest = Slowest { page: String::new(), p99_ms: 0.0 };
    for page in pages {
        let mut times = Vec::with_capacity(looks);
        for number in 0..looks + WARM_UP {
            let took = browser.fresh(page).await?;
            if number >= WARM_UP {
                times.push(took.as_secs_f64() * 1e3);
            }
        }
        times.sort_by(f64::total_cmp);
        let p99_ms = round(percentile(&times, 0.99), 2);
        if p99_ms >= slowest.p99_ms {
            slowest = Slowest { page: (*page).to_owned(), p99_ms };
        }
    }
    Ok(slowest)
}
