//! Memory with many tasks in flight, and with many waiting. Each part runs in a separate process.

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use windlass::{Context, Outcome, handler::RawHandler, worker::WorkerConfig};

use crate::{
    args::Common,
    rig::{HistoryArg, Noop, Rig, round, runtime},
};

/// Slots in the parts with a backlog.
const FEW_SLOTS: u32 = 100;
/// Tasks that run in the parts with a backlog.
const RUN_TASKS: usize = 5_000;
/// The small backlog.
const FEW_WAITING: usize = 10_000;

/// A part of the bench.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum Part {
    /// Many sleeping tasks in flight.
    InFlight,
    /// A small backlog.
    FewWaiting,
    /// A large backlog.
    ManyWaiting,
}

pub(super) fn run(common: &Common, slots: u32, waiting: usize) -> anyhow::Result<Value> {
    let part = |name: &str| -> anyhow::Result<f64> {
        let mut command = std::process::Command::new(std::env::current_exe()?);
        command.args(["memory", "--json", "--part", name]);
        command.args(["--slots", &slots.to_string(), "--waiting", &waiting.to_string()]);
        if let Some(dir) = &common.dir {
            command.arg("--dir").arg(dir);
        }
        let output = command.output()?;
        anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
        let figures: Value = serde_json::from_slice(&output.stdout)?;
        figures.get("mb").and_then(Value::as_f64).context("the part printed no figure")
    };
    let (in_flight, few, many) = (part("in-flight")?, part("few-waiting")?, part("many-waiting")?);
    Ok(json!({
        "rss_mb": in_flight,
        "in_flight": slots,
        "peak_mb_10k_waiting": few,
        "peak_mb_many_waiting": many,
        "waiting": waiting,
        "waiting_ratio": round(many / few, 3),
    }))
}

pub(super) fn run_part(common: &Common, part: Part, slots: u32, waiting: usize) -> anyhow::Result<Value> {
    let mb = runtime()?.block_on(async {
        match part {
            Part::InFlight => in_flight(common, slots).await,
            Part::FewWaiting => backlog(common, FEW_WAITING).await,
            Part::ManyWaiting => backlog(common, waiting).await,
        }
    })?;
    Ok(json!({ "mb": round(mb, 1) }))
}

/// Sleeps until all tasks run and the memory was read.
struct Sleepy {
    arrived: Arc<Semaphore>,
    leave: Arc<Semaphore>,
}

#[async_trait::async_trait]
impl RawHandler for Sleepy {
    async fn call(&self, _context: Context) -> Outcome {
        self.arrived.add_permits(1);
        tokio::select! {
            _ = self.leave.acquire() => {}
            () = tokio::time::sleep(Duration::from_hours(1)) => {}
        }
        Outcome::Done(None)
    }
}

async fn in_flight(common: &Common, slots: u32) -> anyhow::Result<f64> {
    let rig = Rig::new(common, HistoryArg::Kept).await?;
    rig.load("sleepy", "default", slots as usize).await?;
    let (arrived, leave) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let handler = Arc::new(Sleepy { arrived: arrived.clone(), leave: leave.clone() });
    let running = rig.start("sleepy", handler, WorkerConfig { slots, ..WorkerConfig::default() })?;
    let _all = arrived.acquire_many(slots).await?;
    let mb = status_mb("VmRSS:")?;
    leave.close();
    running.settled(slots as usize).await;
    running.stop().await?;
    rig.store.close().await?;
    Ok(mb)
}

async fn backlog(common: &Common, waiting: usize) -> anyhow::Result<f64> {
    let rig = Rig::new(common, HistoryArg::Kept).await?;
    rig.load("noop", "default", waiting).await?;
    let config = WorkerConfig { slots: FEW_SLOTS, ..WorkerConfig::default() };
    let running = rig.start("noop", Arc::new(Noop), config)?;
    running.settled(RUN_TASKS.min(waiting)).await;
    running.stop().await?;
    rig.store.close().await?;
    status_mb("VmHWM:")
}

/// A memory figure of this process, as the kernel reports it.
pub(super) fn status_mb(field: &str) -> anyhow::Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with(field)).context("no such figure in /proc")?;
    let kb: f64 = line.split_whitespace().nth(1).context("no number in /proc")?.parse()?;
    Ok(kb / 1024.0)
}
