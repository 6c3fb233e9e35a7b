//! Persistent messages of 1 KB through a handler that does nothing, while the broker is restarted once.
//! Is every message handled, and does memory stay constant?

use std::{
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use windlass_amqp::{Consumer, Consumers, Delivery, Queue, Running};

use super::{
    super::memory::status_mb,
    bare::{Bare, Keep},
    site::Site,
};
use crate::rig::round;

const WORKERS: i64 = 32;
const BODY_BYTES: usize = 1_024;
/// Divisors of the number of messages: at the first share memory has settled and is noted, at the second
/// the broker restarts.
const SETTLED_PART: usize = 10;
const RESTART_PART: usize = 2;
/// How often to check the memory and the handled messages.
const LOOK_EVERY: Duration = Duration::from_millis(20);
const STOP_LIMIT: Duration = Duration::from_secs(30);
/// The run fails if no message is handled for this long. The broker needs a part of it to restart.
const STUCK_LIMIT: Duration = Duration::from_mins(5);

/// Counts how often each message was handled.
struct Book {
    counts: Vec<AtomicU8>,
    distinct: AtomicUsize,
    unknown: AtomicUsize,
}

impl Book {
    fn new(messages: usize) -> Self {
        let counts = (0..messages).map(|_| AtomicU8::new(0)).collect();
        Self { counts, distinct: AtomicUsize::new(0), unknown: AtomicUsize::new(0) }
    }

    /// Counts the message whose number stands at the beginning of the body.
    fn note(&self, body: &[u8]) {
        let number = body.first_chunk().map(|bytes| u64::from_be_bytes(*bytes));
        let place = number.and_then(|number| self.counts.get(usize::try_from(number).ok()?));
        match place {
            Some(count) if count.fetch_add(1, Ordering::Relaxed) == 0 => {
                self.distinct.fetch_add(1, Ordering::Relaxed);
            }
            Some(_) => {}
            None => {
                self.unknown.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// The number of messages that were not handled, and of those that were handled more than once.
    fn compared(&self) -> (usize, usize) {
        let count =
            |is: fn(u8) -> bool| self.counts.iter().filter(|count| is(count.load(Ordering::Relaxed))).count();
        (count(|times| times == 0), count(|times| times > 1))
    }
}

pub(super) async fn run(site: &Site, messages: usize) -> anyhow::Result<Value> {
    let (broker, queue) = (site.broker()?, Site::queue());
    fill(site, &queue, messages).await?;
    let book = Arc::new(Book::new(messages));
    let note = Arc::clone(&book);
    let consumer = Consumer::raw(&queue, move |delivery: Delivery| {
        note.note(delivery.body());
        std::future::ready(())
    });
    let began = Instant::now();
    let running = Consumers::connect(site.url())
        .queue(Queue::durable(&queue))
        .consume(consumer.workers(WORKERS))
        .start()
        .await?;
    let mut memory = Memory::default();
    until(&book, messages.div_ceil(SETTLED_PART), &mut memory).await?;
    memory.settled_mb = status_mb("VmRSS:")?;
    until(&book, messages / RESTART_PART, &mut memory).await?;
    let restarting = tokio::task::spawn_blocking(move || broker.stop().and_then(|()| broker.start_again()));
    let restarted = Instant::now();
    restarting.await??;
    let away = restarted.elapsed();
    until(&book, messages, &mut memory).await?;
    let left = emptied(site, &queue, &running).await?;
    let took = began.elapsed();
    let figures = running.figures();
    running.stop(STOP_LIMIT).await;
    let (missing, repeated) = book.compared();
    Ok(json!({
        "messages": messages,
        "missing": missing,
        "repeated": repeated,
        "unknown": book.unknown.load(Ordering::Relaxed),
        "left_at_the_broker": left,
        "channels": figures.iter().map(|one| one.sessions).sum::<u64>(),
        "restart_s": round(away.as_secs_f64(), 1),
        "seconds": round(took.as_secs_f64(), 1),
        "rss_mb_at_a_tenth": round(memory.settled_mb, 1),
        "rss_mb_peak": round(memory.peak_mb, 1),
        "memory_ratio": round(memory.peak_mb / memory.settled_mb, 3),
    }))
}

/// Memory of this process.
#[derive(Debug, Default)]
struct Memory {
    settled_mb: f64,
    peak_mb: f64,
}

async fn fill(site: &Site, queue: &str, messages: usize) -> anyhow::Result<()> {
    let bare = Bare::open(site.url()).await?;
    bare.declare(queue).await?;
    let body = |number: usize| {
        let mut body = vec![b'x'; BODY_BYTES];
        body.splice(..8, (number as u64).to_be_bytes());
        body
    };
    bare.fill(queue, Keep::OnDisk, (0..messages).map(body)).await?;
    bare.close().await
}

/// Waits until so many different messages were handled, and records the memory meanwhile.
async fn until(book: &Book, wanted: usize, memory: &mut Memory) -> anyhow::Result<()> {
    let (mut seen, mut since) = (0, Instant::now());
    loop {
        memory.peak_mb = memory.peak_mb.max(status_mb("VmRSS:")?);
        let distinct = book.distinct.load(Ordering::Relaxed);
        if distinct >= wanted {
            return Ok(());
        }
        if distinct > seen {
            (seen, since) = (distinct, Instant::now());
        }
        anyhow::ensure!(since.elapsed() < STUCK_LIMIT, "only {distinct} of {wanted} messages came");
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Waits until no message runs or waits to be handled again, and returns how many the broker still has.
async fn emptied(site: &Site, queue: &str, running: &Running) -> anyhow::Result<u32> {
    let bare = Bare::open(site.url()).await?;
    let began = Instant::now();
    loop {
        let left = bare.waiting(queue).await?;
        let is_idle = running.figures().iter().all(|one| one.running == 0);
        if (left == 0 && is_idle) || began.elapsed() > STOP_LIMIT {
            bare.close().await?;
            return Ok(left);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_is_compared_by_its_number() {
        let book = Book::new(3);
        for number in [0_u64, 2, 2, 9] {
            book.note(&number.to_be_bytes());
        }
        book.note(b"short");
        assert_eq!(book.compared(), (1, 1), "1 is missing, 2 came twice");
        assert_eq!((book.distinct.into_inner(), book.unknown.into_inner()), (2, 2));
    }
}
