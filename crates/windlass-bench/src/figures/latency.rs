//! Time from the enqueue call to the start of the handler, on an idle worker, one task at a time. On
//! PostgreSQL another process enqueues.
//!
//! `commit_ms` is the median of one-row commits with the same pauses. A disk and a processor that were
//! idle for 5 ms are slower than busy ones, with or without a queue. The time of commits without a pause
//! is printed as well.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::sync::mpsc;
use windlass::{Context, NewTask, Outcome, Payload, handler::RawHandler, worker::WorkerConfig};

use super::member::Member;
use crate::{
    args::Common,
    ceiling,
    place::Server,
    rig::{HistoryArg, Rig, median, percentile, round, runtime, task},
};

/// Commits of one median.
const COMMITS: usize = 500;
/// Enqueues before the measured ones.
pub(super) const WARM_UP: usize = 50;

/// Reports when it was started.
struct Report {
    started: mpsc::UnboundedSender<Instant>,
}

#[async_trait::async_trait]
impl RawHandler for Report {
    async fn call(&self, _context: Context) -> Outcome {
        let _ = self.started.send(Instant::now());
        Outcome::Done(None)
    }
}

pub(super) fn run(common: &Common, tasks: usize, spacing: Duration) -> anyhow::Result<Value> {
    compared(common, tasks, spacing, async |common: &Common| match common.place.server() {
        Some(server) => measure_apart(common, server, tasks, spacing).await,
        None => measure(common, tasks, spacing).await,
    })
}

/// Measures the times, and in turns with them one-row commits with the same pauses.
pub(super) fn compared(
    common: &Common,
    tasks: usize,
    spacing: Duration,
    mut measure: impl AsyncFnMut(&Common) -> anyhow::Result<Vec<f64>>,
) -> anyhow::Result<Value> {
    let runtime = runtime()?;
    let commits = |spacing: Duration| -> anyhow::Result<f64> {
        runtime.block_on(async {
            let room = Rig::new(common, HistoryArg::Kept).await?.into_room().await?;
            ceiling::commit_ms(&room, COMMITS, spacing).await
        })
    };
    // Measure commits before, between and after, because the speed of a disk changes within a minute.
    let (mut times, mut commit_times) = (Vec::new(), vec![commits(spacing)?]);
    for _ in 0..common.rounds.max(1) {
        times.extend(runtime.block_on(measure(common))?);
        commit_times.push(commits(spacing)?);
    }
    let commit_ms = median(commit_times);
    let back_to_back_ms = commits(Duration::ZERO)?;
    times.sort_by(f64::total_cmp);
    let p50 = percentile(&times, 0.5);
    Ok(json!({
        "store": common.place.name(),
        "tasks": tasks,
        "rounds": common.rounds,
        "spacing_ms": spacing.as_millis() as u64,
        "p50_ms": round(p50, 3),
        "p99_ms": round(percentile(&times, 0.99), 3),
        "commit_ms": round(commit_ms, 3),
        "commit_back_to_back_ms": round(back_to_back_ms, 3),
        "p50_in_commits": round(p50 / commit_ms, 2),
    }))
}

async fn measure(common: &Common, tasks: usize, spacing: Duration) -> anyhow::Result<Vec<f64>> {
    let rig = Rig::new(common, HistoryArg::Kept).await?;
    let (started, mut starts) = mpsc::unbounded_channel();
    let running = rig.start("report", Arc::new(Report { started }), WorkerConfig::default())?;
    let template = task("report", "default")?;
    let mut times = Vec::with_capacity(tasks);
    for i in 0..tasks + WARM_UP {
        tokio::time::sleep(spacing).await;
        let called = Instant::now();
        rig.store.enqueue(vec![template.clone()]).await?;
        let Some(start) = starts.recv().await else { anyhow::bail!("the worker ended") };
        if i >= WARM_UP {
            times.push(start.duration_since(called).as_secs_f64() * 1e3);
        }
    }
    running.stop().await?;
    rig.store.close().await?;
    Ok(times)
}

/// A task of the usual size that carries the time of its enqueue call.
pub(super) fn stamped() -> anyhow::Result<NewTask> {
    let payload = (now_ns(), "x".repeat(90));
    Ok(NewTask::new("report", Payload::json(&payload)?)?)
}

/// A clock that all processes of a machine share.
fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Reports how long after the enqueue call it was started.
pub(super) struct ReportStamped {
    pub(super) took: mpsc::UnboundedSender<f64>,
}

#[async_trait::async_trait]
impl RawHandler for ReportStamped {
    async fn call(&self, context: Context) -> Outcome {
        let now = now_ns();
        match context.payload().decode::<(u64, String)>() {
            Ok((called, _)) => {
                let _ = self.took.send(now.saturating_sub(called) as f64 / 1e6);
                Outcome::Done(None)
            }
            Err(error) => Outcome::dead(error),
        }
    }
}

/// Another process enqueues, and an idle worker in this process picks up.
async fn measure_apart(
    common: &Common,
    server: &Server,
    tasks: usize,
    spacing: Duration,
) -> anyhow::Result<Vec<f64>> {
    let rig = Rig::new(common, HistoryArg::Kept).await?;
    let (took, mut times) = mpsc::unbounded_channel();
    let running = rig.start("report", Arc::new(ReportStamped { took }), WorkerConfig::default())?;
    let schema = rig.schema()?.1.to_owned();
    let (url, number) = (server.url.clone(), (tasks + WARM_UP).to_string());
    let spacing = spacing.as_millis().to_string();
    // Read its pipes on a thread of their own: the worker must not wait for them.
    let trickle = tokio::task::spawn_blocking(move || {
        let mut member = Member::start(
            &url,
            &["--schema", &schema, "--deaf", "--trickle", &number, "--spacing-ms", &spacing],
        )?;
        member.say("GO")?;
        member.listen()
    });
    let mut all = Vec::with_capacity(tasks);
    for i in 0..tasks + WARM_UP {
        let Some(took) = times.recv().await else { anyhow::bail!("the worker ended") };
        if i >= WARM_UP {
            all.push(took);
        }
    }
    trickle.await??;
    running.stop().await?;
    rig.store.close().await?;
    Ok(all)
}
