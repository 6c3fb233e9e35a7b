//! What the dashboard costs: processor and memory for its viewers, the speed of tasks beside them, and the
//! time of a page with a million tasks.
//!
//! Processor and memory are those of a separate `windlass up`, so the viewers do not count.

mod million;
mod server;
mod viewers;

use std::{sync::Arc, time::Duration};

use clap::Args;
use serde_json::{Map, Value, json};
use windlass::worker::WorkerConfig;
use windlass_server::http;

use self::{server::Up, viewers::Viewers};
use super::remote::Server;
use crate::{
    args::Common,
    rig::{HistoryArg, Noop, Rig, median, round, runtime},
};

/// Tasks in the store whose viewers are measured: some for every column of the overview.
const TASKS: usize = 5_000;
/// Before the first figure, so that every page has been drawn once.
const WARM_UP: Duration = Duration::from_secs(6);

/// A part of the bench.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
    /// Processor time of the server with viewers and without.
    Cpu,
    /// No-op tasks with viewers and without.
    Drain,
    /// The time of pages with many tasks.
    Million,
    /// Memory of the server while viewers come and go.
    Memory,
}

/// What is measured, and for how long.
#[derive(Debug, Clone, Args)]
pub(crate) struct Plan {
    /// Only these parts.
    #[arg(long, value_enum, value_delimiter = ',')]
    part: Vec<Part>,
    /// Viewers.
    #[arg(long, default_value_t = 100)]
    viewers: usize,
    /// How long the processor time is measured, with viewers and without.
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// Tasks of a round of the drain.
    #[arg(long, default_value_t = 200_000)]
    tasks: usize,
    /// Tasks in the store whose pages are timed.
    #[arg(long, default_value_t = 1_000_000)]
    waiting: usize,
    /// Looks at each page.
    #[arg(long, default_value_t = 300)]
    looks: usize,
    /// For how long viewers come and go.
    #[arg(long, default_value_t = 600)]
    coming_seconds: u64,
}

pub(super) fn run(common: &Common, plan: &Plan) -> anyhow::Result<Value> {
    let mut figures = Map::new();
    figures.insert("store".to_owned(), json!(common.place.name()));
    figures.insert("viewers".to_owned(), json!(plan.viewers));
    let parts = if plan.part.is_empty() {
        vec![Part::Cpu, Part::Drain, Part::Million, Part::Memory]
    } else {
        plan.part.clone()
    };
    for part in parts {
        let found = runtime()?.block_on(async {
            match part {
                Part::Cpu => cpu(common, plan).await,
                Part::Drain => drain(common, plan).await,
                Part::Million => million::run(common, plan.waiting, plan.looks).await,
                Part::Memory => memory(common, plan).await,
            }
        })?;
        figures.extend(found);
    }
    Ok(Value::Object(figures))
}

/// Cores that the server uses with viewers, less what it uses without.
async fn cpu(common: &Common, plan: &Plan) -> anyhow::Result<Map<String, Value>> {
    let up = Up::start(common, TASKS).await?;
    let span = Duration::from_secs(plan.seconds);
    tokio::time::sleep(WARM_UP).await;
    let alone = up.cores(span).await?;
    let viewers = Viewers::open(up.port, plan.viewers);
    tokio::time::sleep(WARM_UP).await;
    let with = up.cores(span).await?;
    let looks = viewers.close().await?;
    up.end()?;
    let cost = json!({
        "cpu_cores": round(with - alone, 4), "cpu_cores_alone": round(alone, 4), "cpu_looks": looks,
    });
    Ok(cost.as_object().cloned().unwrap_or_default())
}

/// The speed of a drain while viewers look at the same store, and without them, in turns.
async fn drain(common: &Common, plan: &Plan) -> anyhow::Result<Map<String, Value>> {
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..common.rounds.max(1) {
        with.push(drain_once(common, plan.tasks, plan.viewers).await?);
        without.push(drain_once(common, plan.tasks, 0).await?);
    }
    let (with, without) = (median(with), median(without));
    let speed = json!({
        "drain_per_second": with.round(), "drain_alone_per_second": without.round(),
        "drain_ratio": round(with / without, 3), "drain_tasks": plan.tasks, "rounds": common.rounds,
    });
    Ok(speed.as_object().cloned().unwrap_or_default())
}

/// Both turns have the server: only the viewers differ.
async fn drain_once(common: &Common, tasks: usize, viewers: usize) -> anyhow::Result<f64> {
    let rig = Rig::new(common, HistoryArg::Kept).await?;
    rig.load("noop", "default", tasks).await?;
    let server = Server::start(rig.store.clone(), http::Options::default()).await?;
    let viewers = Viewers::open(server.port(), viewers);
    tokio::time::sleep(viewers::EVERY).await;
    let running = rig.start("noop", Arc::new(Noop), WorkerConfig::default())?;
    let took = running.settled(tasks).await;
    viewers.close().await?;
    running.stop().await?;
    server.end().await?;
    rig.store.close().await?;
    Ok(tasks as f64 / took.as_secs_f64())
}

/// Memory of the server while viewers come, look at a few pages and go. What the first third of the time brought
/// is the usual; the rest must not add to it.
async fn memory(common: &Common, plan: &Plan) -> anyhow::Result<Map<String, Value>> {
    let up = Up::start(common, TASKS).await?;
    let third = Duration::from_secs(plan.coming_seconds) / 3;
    let mut came = 0;
    let mut marks = Vec::new();
    for _ in 0..3 {
        came += viewers::come_and_go(up.port, plan.viewers, third).await?;
        marks.push(up.resident_mb()?);
    }
    up.end()?;
    let (first, last) =
        (marks.first().copied().unwrap_or(f64::NAN), marks.last().copied().unwrap_or(f64::NAN));
    let kept = json!({
        "memory_mb": marks.iter().map(|mb| round(*mb, 1)).collect::<Vec<_>>(),
        "memory_growth": round(last / first, 3), "memory_viewers": came,
    });
    Ok(kept.as_object().cloned().unwrap_or_default())
}
