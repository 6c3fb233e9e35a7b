//! A handler that does nothing, compared in turns with a bare consumer of the same prefetch and ack
//! batching.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use windlass_amqp::{Consumer, Consumers, Delivery};

use super::{
    bare::{Bare, Keep, Shape},
    site::Site,
};
use crate::rig::{median, round};

/// Handlers at once.
const WORKERS: usize = 32;
/// The prefetch of both sides, and the most deliveries that our session holds: two per worker.
const SHAPE: Shape = Shape { prefetch: 320, acks_at_once: 2 * WORKERS };
/// Bytes of a message.
const BODY_BYTES: usize = 120;
/// Messages of a warm-up run, as a divisor of a measured run.
const WARM_UP_PART: usize = 10;
/// How often to check whether every message was answered.
const LOOK_EVERY: Duration = Duration::from_millis(1);
const STOP_LIMIT: Duration = Duration::from_secs(10);

pub(super) async fn run(site: &Site, messages: usize, rounds: usize) -> anyhow::Result<Value> {
    let warm_up = messages.div_ceil(WARM_UP_PART);
    ours(site, warm_up).await?;
    ceiling(site, warm_up).await?;
    let (mut rates, mut ceilings, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..rounds {
        // The second side finds the broker already warm, so the sides take turns at being first.
        let (rate, bare) = if number % 2 == 0 {
            let rate = messages as f64 / ours(site, messages).await?.as_secs_f64();
            (rate, messages as f64 / ceiling(site, messages).await?.as_secs_f64())
        } else {
            let bare = messages as f64 / ceiling(site, messages).await?.as_secs_f64();
            (messages as f64 / ours(site, messages).await?.as_secs_f64(), bare)
        };
        rates.push(rate);
        ceilings.push(bare);
        // Compare within a round: the load of the machine changes from one round to the next.
        ratios.push(rate / bare);
    }
    Ok(json!({
        "per_second": round(median(rates), 0),
        "ceiling_per_second": round(median(ceilings), 0),
        "ratio": round(median(ratios), 3),
        "workers": WORKERS,
        "prefetch": SHAPE.prefetch,
        "messages": messages,
    }))
}

/// Time from the first handler to the last answer.
async fn ours(site: &Site, messages: usize) -> anyhow::Result<Duration> {
    let (bare, queue) = filled(site, messages).await?;
    let (began, handled) = (Arc::new(OnceLock::new()), Arc::new(AtomicUsize::new(0)));
    let (first, count) = (Arc::clone(&began), Arc::clone(&handled));
    let consumer = Consumer::raw(&queue, move |_: Delivery| {
        first.get_or_init(Instant::now);
        count.fetch_add(1, Ordering::Relaxed);
        std::future::ready(())
    });
    let consumer = consumer.workers(WORKERS as i64).prefetch(i64::from(SHAPE.prefetch));
    let running = Consumers::connect(site.url()).consume(consumer).start().await?;
    while running.figures().iter().map(|one| one.acked).sum::<u64>() < messages as u64 {
        tokio::time::sleep(LOOK_EVERY).await;
    }
    let took = began.get().map(Instant::elapsed).unwrap_or_default();
    running.stop(STOP_LIMIT).await;
    anyhow::ensure!(handled.load(Ordering::Relaxed) == messages, "a message was handled twice or not at all");
    bare.delete(&queue).await?;
    bare.close().await?;
    Ok(took)
}

/// Time from the first delivery to the last ack.
async fn ceiling(site: &Site, messages: usize) -> anyhow::Result<Duration> {
    let (bare, queue) = filled(site, messages).await?;
    // A connection of its own, as our consumer has one.
    let consuming = Bare::open(site.url()).await?;
    let took = consuming.consume(&queue, SHAPE, messages).await?;
    consuming.close().await?;
    bare.delete(&queue).await?;
    bare.close().await?;
    Ok(took)
}

/// A queue filled with so many messages.
async fn filled(site: &Site, messages: usize) -> anyhow::Result<(Bare, String)> {
    let (queue, bare) = (Site::queue(), Bare::open(site.url()).await?);
    bare.declare(&queue).await?;
    bare.fill(&queue, Keep::InMemory, (0..messages).map(|_| vec![b'x'; BODY_BYTES])).await?;
    Ok((bare, queue))
}
