//! An adaptive consumer while its handler goes from 10 ms to 500 ms and back; the queue is kept at the
//! same depth.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use windlass_amqp::{Consumer, Consumers, Delivery, Running};

use super::{
    bare::{Bare, Keep},
    series::{Point, settled},
    site::Site,
};
use crate::rig::round;

/// The least number of handlers that may run.
const MINIMUM: i64 = 4;
/// The greatest number of handlers that may run.
const CAP: i64 = 100;
const PREFETCH: i64 = 500;
/// How long a handler takes in each part of the run.
const PHASES_MS: [u64; 3] = [10, 500, 10];
/// Length of a part: ten seconds to settle, and five to see that it has settled.
const PHASE_SECONDS: f64 = 15.0;
/// Time between two points of the series.
const STEP: Duration = Duration::from_millis(250);
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// Sizes of the run.
pub(super) struct Plan {
    /// Messages that are kept waiting.
    pub(super) waiting: usize,
    /// Length of each part.
    pub(super) seconds: Option<f64>,
}

pub(super) async fn run(site: &Site, plan: Plan) -> anyhow::Result<Value> {
    let length_s = plan.seconds.unwrap_or(PHASE_SECONDS);
    let series = measure(site, plan.waiting as u64, length_s).await?;
    let limits = || series.iter().map(|point| point.limit);
    let phases: Vec<Value> = PHASES_MS
        .iter()
        .enumerate()
        .map(|(number, ms)| {
            let begin = number as f64 * length_s;
            let (after, level) = settled(&series, begin, begin + length_s).unzip();
            json!({"handler_ms": ms, "settled_s": after.map(|after| round(after, 2)), "limit": level})
        })
        .collect();
    Ok(json!({
        "minimum": MINIMUM,
        "cap": CAP,
        "messages": plan.waiting,
        "least": limits().min(),
        "most": limits().max(),
        "phases": phases,
        "series": series,
    }))
}

async fn measure(site: &Site, depth: u64, length_s: f64) -> anyhow::Result<Vec<Point>> {
    let (queue, bare) = (Site::queue(), Bare::open(site.url()).await?);
    bare.declare(&queue).await?;
    bare.fill(&queue, Keep::InMemory, (0..depth).map(|_| Vec::new())).await?;
    let [first, ..] = PHASES_MS;
    let ms = Arc::new(AtomicU64::new(first));
    let current = Arc::clone(&ms);
    let consumer = Consumer::raw(&queue, move |_: Delivery| {
        tokio::time::sleep(Duration::from_millis(current.load(Ordering::Relaxed)))
    });
    let consumer = consumer.workers(CAP).prefetch(PREFETCH).adaptive(MINIMUM);
    let running = Consumers::connect(site.url()).consume(consumer).start().await?;
    let series = watch(&running, &bare, &queue, Course { waiting: depth, length_s, ms: &ms }).await?;
    ms.store(0, Ordering::Relaxed);
    running.stop(STOP_LIMIT).await;
    bare.delete(&queue).await?;
    bare.close().await?;
    Ok(series)
}

/// What the watch keeps constant, and what it changes.
struct Course<'a> {
    waiting: u64,
    length_s: f64,
    ms: &'a AtomicU64,
}

/// Goes through the phases, keeps the queue at its depth, and records the limit.
async fn watch(
    running: &Running,
    bare: &Bare,
    queue: &str,
    course: Course<'_>,
) -> anyhow::Result<Vec<Point>> {
    let (began, mut series, mut published) = (Instant::now(), Vec::new(), course.waiting);
    loop {
        let second = began.elapsed().as_secs_f64();
        let Some(handler_ms) = PHASES_MS.get((second / course.length_s) as usize).copied() else { break };
        course.ms.store(handler_ms, Ordering::Relaxed);
        let (limit, now_running, acked) = figures(running);
        let waiting = published.saturating_sub(acked);
        let second = round(second, 2);
        series.push(Point { second, handler_ms, limit, running: now_running, waiting });
        let missing = course.waiting.saturating_sub(waiting);
        bare.fill(queue, Keep::InMemory, (0..missing).map(|_| Vec::new())).await?;
        published += missing;
        tokio::time::sleep(STEP).await;
    }
    Ok(series)
}

fn figures(running: &Running) -> (u64, u64, u64) {
    running.figures().first().map(|one| (one.limit, one.running, one.acked)).unwrap_or_default()
}
