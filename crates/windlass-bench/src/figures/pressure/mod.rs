//! Handlers that become ten times as slow in the middle of a run: fewer tasks may run, and then as many
//! as before.

mod memory;
mod plot;

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use serde::Serialize;
use serde_json::{Value, json};
use windlass::{
    Context, Outcome,
    admission::AdmissionConfig,
    handler::RawHandler,
    worker::{WorkerConfig, WorkerHandle, WorkerStatus},
};

use crate::{
    args::Common,
    rig::{HistoryArg, Rig, round, runtime, task},
};

/// Mean time of a handler in the first and the last part of the run; it varies from half to one and a
/// half of this. Handlers of equal length would end together and then be claimed together, even if only
/// few may run.
const QUICK: Duration = Duration::from_millis(50);
/// The factor of the slow part.
const SLOWDOWN: u32 = 10;
/// The p99 above which fewer tasks may run.
const THRESHOLD: Duration = Duration::from_millis(200);
/// Time between two points of the series.
const STEP: Duration = Duration::from_millis(250);
/// Tasks that are kept ready, per slot.
const BACKLOG_PER_SLOT: u64 = 20;
/// Has no factor in common with a thousand. Consecutive calls take different times, and every time comes
/// once in a thousand calls.
const SPREAD_STEP: u64 = 381;
/// The slow part starts and ends at these shares of the run. Recovery needs the longest part: the p99
/// covers ten seconds, so slow tasks count until these have passed.
const SLOW: (f64, f64) = (0.2, 0.45);

/// Sizes of the bench.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct PressureArgs {
    /// Slots; without it 100, and 1000 with --memory.
    #[arg(long)]
    slots: Option<u32>,
    /// Length of the run.
    #[arg(long, default_value_t = 40)]
    seconds: u64,
    /// Where to write a plot.
    #[arg(long, value_name = "FILE", conflicts_with = "memory")]
    svg: Option<PathBuf>,
    /// Instead: tasks that hold 1 MiB each for 200 ms in a control group of 256 MiB, with and without
    /// admission control.
    #[arg(long)]
    memory: bool,
    /// Tasks with --memory.
    #[arg(long, default_value_t = 10_000)]
    tasks: usize,
    /// Run one part in this process; the bench itself uses it.
    #[arg(long, hide = true)]
    part: bool,
}

pub(super) fn run(common: &Common, args: &PressureArgs) -> anyhow::Result<Value> {
    if args.part || args.memory {
        let slots = args.slots.unwrap_or(memory::SLOTS);
        return if args.part {
            memory::run_part(common, args.tasks, slots)
        } else {
            memory::run(common, args.tasks, slots)
        };
    }
    let (slots, length) = (args.slots.unwrap_or(100), Duration::from_secs(args.seconds.max(4)));
    let series = runtime()?.block_on(measure(common, slots, length))?;
    let slow = (length.mul_f64(SLOW.0).as_secs_f64(), length.mul_f64(SLOW.1).as_secs_f64());
    if let Some(file) = &args.svg {
        std::fs::write(file, plot::svg(&series, slow))?;
    }
    let least = series.iter().map(|point| point.allowed).min().unwrap_or_default();
    let before = series.iter().take_while(|point| point.second < slow.0).last().map(|point| point.allowed);
    let after = series.last().map(|point| point.allowed);
    Ok(json!({
        "slots": slots,
        "slow_from_s": round(slow.0, 2),
        "slow_to_s": round(slow.1, 2),
        "threshold_ms": THRESHOLD.as_millis() as u64,
        "allowed_before": before,
        "allowed_least": series.iter().filter(|point| point.second >= slow.0).map(|point| point.allowed).min(),
        "allowed_least_of_all": least,
        "allowed_after": after,
        "claim_size_before": mean_claim(&series, 0.0, slow.0),
        "claim_size_slow": mean_claim(&series, slow.0, slow.1),
        "claim_size_after": mean_claim(&series, slow.1, f64::MAX),
        "series": series,
    }))
}

/// One moment of the run.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Point {
    pub(super) second: f64,
    pub(super) allowed: u32,
    pub(super) running: u32,
    /// Tasks per claim since the last point; `None` if there was no claim.
    pub(super) claim_size: Option<f64>,
    pub(super) reason: String,
}

/// Waits for the time that the bench sets at the moment.
struct Wait {
    ms: Arc<AtomicU64>,
    calls: AtomicU64,
}

#[async_trait::async_trait]
impl RawHandler for Wait {
    async fn call(&self, _context: Context) -> Outcome {
        let mean = Duration::from_millis(self.ms.load(Ordering::Relaxed));
        let spread = self.calls.fetch_add(SPREAD_STEP, Ordering::Relaxed) % 1_000;
        tokio::time::sleep(mean.mul_f64(0.5 + spread as f64 / 1e3)).await;
        Outcome::Done(None)
    }
}

async fn measure(common: &Common, slots: u32, length: Duration) -> anyhow::Result<Vec<Point>> {
    let rig = Rig::new(common, HistoryArg::Off).await?;
    let quick = QUICK.as_millis() as u64;
    let ms = Arc::new(AtomicU64::new(quick));
    let admission = AdmissionConfig { latency_threshold: Some(THRESHOLD), ..AdmissionConfig::default() };
    let config = WorkerConfig { slots, admission, ..WorkerConfig::default() };
    let running = rig.start("wait", Arc::new(Wait { ms: ms.clone(), calls: AtomicU64::new(0) }), config)?;
    let (began, mut enqueued, mut series) = (Instant::now(), 0, Vec::new());
    let template = task("wait", "default")?;
    let mut last = running.handle.status();
    while began.elapsed() < length {
        let share = began.elapsed().as_secs_f64() / length.as_secs_f64();
        let is_slow = (SLOW.0..SLOW.1).contains(&share);
        ms.store(if is_slow { quick * u64::from(SLOWDOWN) } else { quick }, Ordering::Relaxed);
        let missing = (u64::from(slots) * BACKLOG_PER_SLOT).saturating_sub(enqueued - last.settled);
        if missing > 0 {
            rig.store.enqueue(vec![template.clone(); missing as usize]).await?;
            enqueued += missing;
        }
        tokio::time::sleep(STEP).await;
        series.push(point(&running.handle, &mut last, began.elapsed()));
    }
    ms.store(1, Ordering::Relaxed);
    running.settled(usize::try_from(enqueued)?).await;
    running.stop().await?;
    rig.store.close().await?;
    Ok(series)
}

fn point(handle: &WorkerHandle, last: &mut WorkerStatus, at: Duration) -> Point {
    let now = handle.status();
    let (claims, claimed) = (now.claims - last.claims, now.claimed - last.claimed);
    let claim_size = (claims > 0).then(|| round(claimed as f64 / claims as f64, 1));
    let reason = now.reasons.to_string();
    let point = Point {
        second: round(at.as_secs_f64(), 2),
        allowed: now.allowed,
        running: now.running,
        claim_size,
        reason,
    };
    *last = now;
    point
}

fn mean_claim(series: &[Point], from: f64, to: f64) -> Option<f64> {
    let within = series.iter().filter(|point| (from..to).contains(&point.second));
    let sizes: Vec<f64> = within.filter_map(|point| point.claim_size).collect();
    (!sizes.is_empty()).then(|| round(sizes.iter().sum::<f64>() / sizes.len() as f64, 1))
}
