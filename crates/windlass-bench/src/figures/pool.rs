//! Starting and running tasks that do nothing, compared with bare bounded channels.
//!
//! The bare side has the same capacity, the same number of consumers, boxed futures and one result
//! channel per task. The difference is what the pool adds (slots, panic guard, counting, refusal) and
//! what it saves.

use std::{
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use tokio::{
    runtime::{Builder, Runtime},
    sync::{Mutex, mpsc, oneshot},
    task::JoinSet,
};
use windlass::Pool;

/// Tasks of a warm-up run, as a divisor of a measured run. It warms up caches, the allocator and the
/// runtime's threads.
const WARM_UP_PART: usize = 10;
/// Longer than any run: the producer waits for room, and never for this deadline.
const FOR_EVER: Duration = Duration::from_hours(1);

type Job = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PoolBench {
    /// Tasks per run.
    pub tasks: usize,
    /// Consumers on both sides.
    pub consumers: usize,
    /// Places in the buffer on both sides.
    pub capacity: usize,
    /// How often each side ran.
    pub rounds: usize,
    /// Median tasks per second through the pool.
    pub pool_per_second: f64,
    /// The fastest bare channel.
    pub channel: &'static str,
    /// Its median tasks per second.
    pub channel_per_second: f64,
    /// The median of the pool over the median of the fastest channel.
    pub ratio: f64,
    /// All three channels.
    pub channels: Vec<Channel>,
}

/// One bare channel.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Channel {
    /// Its name.
    pub name: &'static str,
    /// Median tasks per second.
    pub per_second: f64,
}

#[derive(Clone, Copy)]
enum Contender {
    Pool,
    TokioMpsc,
    AsyncChannel,
    Flume,
}

const CONTENDERS: [Contender; 4] =
    [Contender::Pool, Contender::TokioMpsc, Contender::AsyncChannel, Contender::Flume];

impl Contender {
    fn name(self) -> &'static str {
        match self {
            Self::Pool => "pool",
            Self::TokioMpsc => "tokio_mpsc",
            Self::AsyncChannel => "async_channel",
            Self::Flume => "flume",
        }
    }

    async fn run(self, tasks: usize, consumers: usize, capacity: usize) -> Result<Duration> {
        match self {
            Self::Pool => run_pool(tasks, consumers, capacity).await,
            Self::TokioMpsc => run_tokio_mpsc(tasks, consumers, capacity).await,
            Self::AsyncChannel => run_async_channel(tasks, consumers, capacity).await,
            Self::Flume => run_flume(tasks, consumers, capacity).await,
        }
    }
}

/// Runs all sides in turn, `rounds` times, on a separate runtime. Medians count.
pub fn run(tasks: usize, consumers: usize, capacity: usize, rounds: usize) -> Result<PoolBench> {
    if tasks == 0 || rounds == 0 {
        bail!("a bench needs at least one task and one round");
    }
    let runtime = Builder::new_multi_thread().enable_all().build().context("no runtime for the bench")?;
    for contender in CONTENDERS {
        measure(&runtime, contender, tasks.div_ceil(WARM_UP_PART), consumers, capacity)?;
    }
    let mut measured = CONTENDERS.map(|_| Vec::with_capacity(rounds));
    for _ in 0..rounds {
        for (contender, rates) in CONTENDERS.into_iter().zip(&mut measured) {
            let took = measure(&runtime, contender, tasks, consumers, capacity)?;
            rates.push(tasks as f64 / took.as_secs_f64());
        }
    }
    let mut medians = CONTENDERS.into_iter().zip(measured.map(median));
    let pool_per_second = medians.next().map_or(0.0, |(_, rate)| rate);
    let mut channels: Vec<_> =
        medians.map(|(contender, per_second)| Channel { name: contender.name(), per_second }).collect();
    channels.sort_by(|a, b| b.per_second.total_cmp(&a.per_second));
    let fastest = channels.first().cloned().context("no channel was measured")?;
    Ok(PoolBench {
        tasks,
        consumers,
        capacity,
        rounds,
        pool_per_second,
        channel: fastest.name,
        channel_per_second: fastest.per_second,
        ratio: pool_per_second / fastest.per_second,
        channels,
    })
}

/// Runs on a thread of the runtime, as a service would. The thread that calls `block_on` is not one of
/// them.
fn measure(
    runtime: &Runtime,
    contender: Contender,
    tasks: usize,
    consumers: usize,
    capacity: usize,
) -> Result<Duration> {
    runtime
        .block_on(runtime.spawn(contender.run(tasks, consumers, capacity)))
        .with_context(|| format!("the run of {} ended early", contender.name()))?
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or_default()
}

async fn run_pool(tasks: usize, consumers: usize, capacity: usize) -> Result<Duration> {
    let pool = Pool::builder().size(consumers).buffer(capacity).build()?;
    let started = Instant::now();
    let mut handles = Vec::with_capacity(tasks);
    for task in 0..tasks {
        handles.push(pool.dispatch_wait(nothing(task), FOR_EVER).await?);
    }
    for handle in handles {
        handle.await?;
    }
    let took = started.elapsed();
    pool.stop(FOR_EVER).await;
    Ok(took)
}

async fn run_tokio_mpsc(tasks: usize, consumers: usize, capacity: usize) -> Result<Duration> {
    let (sender, receiver) = mpsc::channel::<Job>(capacity);
    let receiver = Arc::new(Mutex::new(receiver));
    let mut running = JoinSet::new();
    for _ in 0..consumers {
        let receiver = Arc::clone(&receiver);
        running.spawn(async move {
            loop {
                let job = receiver.lock().await.recv().await;
                let Some(job) = job else { break };
                job.await;
            }
        });
    }
    let started = Instant::now();
    let mut results = Vec::with_capacity(tasks);
    for task in 0..tasks {
        let (job, result) = job(task);
        sender.send(job).await.ok().context("the consumers are gone")?;
        results.push(result);
    }
    let took = collect(results, started).await?;
    drop(sender);
    running.join_all().await;
    Ok(took)
}

async fn run_async_channel(tasks: usize, consumers: usize, capacity: usize) -> Result<Duration> {
    let (sender, receiver) = async_channel::bounded::<Job>(capacity);
    let mut running = JoinSet::new();
    for _ in 0..consumers {
        let receiver = receiver.clone();
        running.spawn(async move {
            while let Ok(job) = receiver.recv().await {
                job.await;
            }
        });
    }
    let started = Instant::now();
    let mut results = Vec::with_capacity(tasks);
    for task in 0..tasks {
        let (job, result) = job(task);
        sender.send(job).await.ok().context("the consumers are gone")?;
        results.push(result);
    }
    let took = collect(results, started).await?;
    drop(sender);
    running.join_all().await;
    Ok(took)
}

async fn run_flume(tasks: usize, consumers: usize, capacity: usize) -> Result<Duration> {
    let (sender, receiver) = flume::bounded::<Job>(capacity);
    let mut running = JoinSet::new();
    for _ in 0..consumers {
        let receiver = receiver.clone();
        running.spawn(async move {
            while let Ok(job) = receiver.recv_async().await {
                job.await;
            }
        });
    }
    let started = Instant::now();
    let mut results = Vec::with_capacity(tasks);
    for task in 0..tasks {
        let (job, result) = job(task);
        sender.send_async(job).await.ok().context("the consumers are gone")?;
        results.push(result);
    }
    let took = collect(results, started).await?;
    drop(sender);
    running.join_all().await;
    Ok(took)
}

async fn collect(results: Vec<oneshot::Receiver<usize>>, started: Instant) -> Result<Duration> {
    for result in results {
        result.await.context("a task has lost its result")?;
    }
    Ok(started.elapsed())
}

fn job(task: usize) -> (Job, oneshot::Receiver<usize>) {
    let (sender, receiver) = oneshot::channel();
    let job = Box::pin(async move {
        // The producer waits for every result, so the receiver still exists.
        let _ = sender.send(nothing(task).await);
    });
    (job, receiver)
}

#[expect(clippy::unused_async, reason = "a task of the pool is a future, also one that does nothing")]
async fn nothing(task: usize) -> usize {
    task
}
