//! Real faults against the built program on PostgreSQL: workers are killed and stopped, the server goes down,
//! connections end, answers are lost, peers fall silent. After each, `e2e::postgres::judge` checks the
//! result.
#![allow(clippy::panic, clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod connections;
mod crash;
mod failover;
mod fleet;
mod forgotten;
mod gates;
mod kill;
mod limits;
mod listener;
mod locks;
mod lost_answers;
mod offers;
mod quarantine;
mod restart;
mod rolling;
mod schedules;
mod servers;
mod silent;
mod stop;
mod terminate;
mod workers;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use e2e::{
    postgres::{LIMIT, Place, client, tasks, until},
    target::Target,
};

/// How long the target takes for a request under load.
const LATENCY: Duration = Duration::from_millis(20);

/// Whether to run with the numbers of `scripts/test --long`.
fn is_long() -> bool {
    std::env::var_os("WINDLASS_LONG").is_some()
}

/// A target that answers after [`LATENCY`].
async fn target() -> Arc<Target> {
    Arc::new(Target::start(LATENCY).await.unwrap())
}

/// Enqueues tasks that reach the target, all in one call, and returns their ids.
async fn enqueue(place: &Place, target: &Target, n: usize) -> BTreeSet<String> {
    let mut batch = tasks(target, n * 3).unwrap();
    batch.retain(|task| task.kind.as_str() == "http");
    batch.truncate(n);
    let store = client(place, place.url()).await.unwrap();
    let answers = windlass_core::Store::enqueue(&*store, batch).await.unwrap();
    answers.iter().map(|answer| answer.id.to_string()).collect()
}

/// Waits until `n` requests are open at the target.
async fn until_open(target: &Target, n: u32) {
    until("the target is busy", || Ok(target.book().open >= n)).await.unwrap();
}

/// How often each of these tasks reached the target.
fn arrivals(target: &Target, ids: &[String]) -> Vec<u32> {
    let book = target.book();
    ids.iter().map(|id| book.arrivals.get(id).copied().unwrap_or_default()).collect()
}
