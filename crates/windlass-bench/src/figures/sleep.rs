//! Tasks that wait 100 ms: which share of the slots' time is spent in handlers?

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use windlass::{Context, Outcome, handler::RawHandler, worker::WorkerConfig};

use crate::{
    args::Common,
    rig::{HistoryArg, Rig, median, round, runtime},
};

/// How long a handler waits.
const HANDLER_TIME: Duration = Duration::from_millis(100);

/// Waits, and records how long the wait really took.
struct Wait {
    nanos: Arc<AtomicU64>,
}

#[async_trait::async_trait]
impl RawHandler for Wait {
    async fn call(&self, _context: Context) -> Outcome {
        let start = Instant::now();
        tokio::time::sleep(HANDLER_TIME).await;
        self.nanos.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        Outcome::Done(None)
    }
}

pub(super) fn run(common: &Common, tasks: usize, slots: u32) -> anyhow::Result<Value> {
    let runtime = runtime()?;
    let (mut efficiencies, mut seconds, mut means) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..common.rounds.max(1) {
        let (took, mean) = runtime.block_on(measure(common, tasks, slots))?;
        let waves = tasks.div_ceil(slots as usize) as f64;
        efficiencies.push(waves * mean / took);
        seconds.push(took);
        means.push(mean * 1e3);
    }
    Ok(json!({
        "tasks": tasks,
        "slots": slots,
        "efficiency": round(median(efficiencies), 3),
        "seconds": round(median(seconds), 3),
        "handler_mean_ms": round(median(means), 2),
        "rounds": common.rounds,
    }))
}

/// Seconds from the start of the worker to the last committed settlement, and the mean time in a handler.
async fn measure(common: &Common, tasks: usize, slots: u32) -> anyhow::Result<(f64, f64)> {
    let rig = Rig::new(common, HistoryArg::Kept).await?;
    rig.load("wait", "default", tasks).await?;
    let nanos = Arc::new(AtomicU64::new(0));
    let handler = Arc::new(Wait { nanos: nanos.clone() });
    let running = rig.start("wait", handler, WorkerConfig { slots, ..WorkerConfig::default() })?;
    let took = running.settled(tasks).await;
    running.stop().await?;
    rig.store.close().await?;
    Ok((took.as_secs_f64(), nanos.load(Ordering::Relaxed) as f64 / 1e9 / tasks as f64))
}
