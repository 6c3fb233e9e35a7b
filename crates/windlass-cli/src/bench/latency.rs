//! From the enqueue call to the start of the handler, on an idle worker, one task at a time.
//!
//! `commit_ms` is the median of one-row commits in the same rhythm: a disk and a processor that have idled for 5 ms take
//! longer than busy ones, with or without a queue. Commits back to back stand beside it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::sync::mpsc;
use windlass::{Context, Outcome, RawHandler, worker::WorkerConfig};

use super::{
    Common, ceiling,
    rig::{HistoryArg, Rig, percentile, round, runtime, task},
};

/// Pause between two enqueues.
const SPACING: Duration = Duration::from_millis(5);
/// Commits whose median stands beside the figures.
const COMMITS: usize = 500;
/// Enqueues before the measured ones.
const WARM_UP: usize = 50;

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

pub(super) fn run(common: &Common, tasks: usize) -> anyhow::Result<Value> {
    let runtime = runtime()?;
    let commits = |spacing: Duration| -> anyhow::Result<f64> {
        runtime.block_on(async {
            let room = Rig::new(common, HistoryArg::Kept).await?.into_room().await?;
            ceiling::commit_ms(&room, COMMITS, spacing).await
        })
    };
    // Before and after, because the disk's mood changes within a minute.
    let before = commits(SPACING)?;
    let mut times = runtime.block_on(measure(common, tasks))?;
    let commit_ms = f64::midpoint(before, commits(SPACING)?);
    let back_to_back_ms = commits(Duration::ZERO)?;
    times.sort_by(f64::total_cmp);
    let p50 = percentile(&times, 0.5);
    Ok(json!({
        "tasks": tasks,
        "p50_ms": round(p50, 3),
        "p99_ms": round(percentile(&times, 0.99), 3),
        "commit_ms": round(commit_ms, 3),
        "commit_back_to_back_ms": round(back_to_back_ms, 3),
        "p50_in_commits": round(p50 / commit_ms, 2),
    }))
}

async fn measure(common: &Common, tasks: usize) -> anyhow::Result<Vec<f64>> {
    let rig = Rig::new(common, HistoryArg::Kept).await?;
    let (started, mut starts) = mpsc::unbounded_channel();
    let running = rig.start("report", Arc::new(Report { started }), WorkerConfig::default())?;
    let template = task("report", "default")?;
    let mut times = Vec::with_capacity(tasks);
    for i in 0..tasks + WARM_UP {
        tokio::time::sleep(SPACING).await;
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
