//! Handlers that wait 100 ms: is the rate what the number of workers allows, and how late is each answer?

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::sync::Notify;
use windlass_amqp::{Consumer, Consumers, Delivery};

use super::{
    bare::{Bare, Keep},
    site::Site,
};
use crate::rig::{median, percentile, round};

/// How long a handler waits.
const HANDLER_TIME: Duration = Duration::from_millis(100);
/// The comparison: so many messages of 10 ms, first one after another, then with all workers.
const COMPARED_MESSAGES: usize = 320;
const COMPARED_TIME: Duration = Duration::from_millis(10);
const COMPARED_WORKERS: usize = 32;
/// How long the consumers may take to stop. All messages are answered by then.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// One run.
pub(super) struct Measured {
    pub(super) per_second: f64,
    /// From the start of a handler until its answer was handed to the connection.
    pub(super) p95_ms: f64,
}

/// Medians over the rounds. A round takes the given seconds if no time is lost between two messages.
pub(super) async fn medians(
    site: &Site,
    workers: usize,
    seconds: f64,
    rounds: usize,
) -> anyhow::Result<Measured> {
    let waves = (seconds / HANDLER_TIME.as_secs_f64()).ceil().max(1.0) as usize;
    let (mut rates, mut latencies) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let measured = measure(site, workers, HANDLER_TIME, workers * waves).await?;
        rates.push(measured.per_second);
        latencies.push(measured.p95_ms);
    }
    Ok(Measured { per_second: median(rates), p95_ms: median(latencies) })
}

/// The same messages, one after another and then concurrently.
pub(super) async fn sequential_and_concurrent(site: &Site, rounds: usize) -> anyhow::Result<Value> {
    let (mut one, mut many) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        one.push(measure(site, 1, COMPARED_TIME, COMPARED_MESSAGES).await?.per_second);
        many.push(measure(site, COMPARED_WORKERS, COMPARED_TIME, COMPARED_MESSAGES).await?.per_second);
    }
    let (one, many) = (median(one), median(many));
    Ok(json!({
        "messages": COMPARED_MESSAGES,
        "handler_ms": COMPARED_TIME.as_millis() as u64,
        "workers": COMPARED_WORKERS,
        "sequential_per_second": round(one, 1),
        "concurrent_per_second": round(many, 1),
        "ratio": round(many / one, 2),
    }))
}

/// When each answer was passed to the connection, and how long the handler and the answer took.
#[derive(Default)]
struct Book {
    settled: Mutex<Vec<(Instant, Duration)>>,
    is_full: Notify,
}

impl Book {
    fn note(&self, took: Duration, wanted: usize) {
        let mut settled = self.settled.lock().unwrap_or_else(PoisonError::into_inner);
        settled.push((Instant::now(), took));
        if settled.len() == wanted {
            self.is_full.notify_one();
        }
    }
}

async fn measure(site: &Site, workers: usize, time: Duration, messages: usize) -> anyhow::Result<Measured> {
    let (queue, bare) = (Site::queue(), Bare::open(site.url()).await?);
    bare.declare(&queue).await?;
    bare.fill(&queue, Keep::InMemory, (0..messages).map(|_| Vec::new())).await?;
    let book = Arc::new(Book::default());
    let note = Arc::clone(&book);
    let consumer = Consumer::raw(&queue, move |_: Delivery| tokio::time::sleep(time))
        .workers(i64::try_from(workers)?)
        .on_settled(move |took| note.note(took, messages));
    let running = Consumers::connect(site.url()).consume(consumer).start().await?;
    book.is_full.notified().await;
    running.stop(STOP_LIMIT).await;
    bare.delete(&queue).await?;
    bare.close().await?;
    let settled = std::mem::take(&mut *book.settled.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(figures(&settled))
}

/// The figures from the first start to the last answer.
fn figures(settled: &[(Instant, Duration)]) -> Measured {
    let first = settled.iter().filter_map(|(at, took)| at.checked_sub(*took)).min();
    let last = settled.iter().map(|(at, _)| *at).max();
    let length = first.zip(last).map_or(0.0, |(first, last)| (last - first).as_secs_f64());
    let mut latencies: Vec<f64> = settled.iter().map(|(_, took)| took.as_secs_f64() * 1e3).collect();
    latencies.sort_by(f64::total_cmp);
    Measured { per_second: settled.len() as f64 / length, p95_ms: percentile(&latencies, 0.95) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_starts_at_first_start_and_p95_drops_the_slowest() {
        let (began, ms) = (Instant::now(), Duration::from_millis);
        let settled: Vec<_> =
            (1..=20).map(|n| (began + ms(100 * n), ms(if n == 20 { 900 } else { 100 }))).collect();
        let Measured { per_second, p95_ms } = figures(&settled);
        assert!((per_second - 10.0).abs() < 0.01, "{per_second}");
        assert!((p95_ms - 100.0).abs() < 0.01, "{p95_ms}");
    }
}
