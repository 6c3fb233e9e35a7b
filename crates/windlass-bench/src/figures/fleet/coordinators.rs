//! Sixty-four coordinators in one process, compared with one: the time of a claim, and the server's work
//! per task.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use windlass_core::{
    Demand, LaneId, Name, NewWorker, SettleBatch, SettleItem, Settlement, WorkerId, store::SharedStore,
};

use crate::{
    args::Common,
    place::Server,
    rig::{HistoryArg, Rig, percentile, round},
};

/// Coordinators of the crowded case.
const MANY: usize = 64;
/// Tasks per claim.
const CLAIM: u32 = 50;
/// Tasks of each case.
const TASKS: usize = 100_000;

pub(super) async fn compare(common: &Common) -> anyhow::Result<Value> {
    let (alone, crowd) = (measure(common, 1).await?, measure(common, MANY).await?);
    let row = |n: usize, figures: &Figures| {
        json!({
            "coordinators": n,
            "claim_p50_ms": round(figures.p50_ms, 3),
            "claim_p99_ms": round(figures.p99_ms, 3),
            "server_cpu_us_per_task": figures.cpu_us.map(|us| round(us, 2)),
            "per_second": figures.per_second.round(),
        })
    };
    Ok(json!([row(1, &alone), row(MANY, &crowd)]))
}

struct Figures {
    p50_ms: f64,
    p99_ms: f64,
    cpu_us: Option<f64>,
    per_second: f64,
}

async fn measure(common: &Common, coordinators: usize) -> anyhow::Result<Figures> {
    let rig = Rig::new(common, HistoryArg::Kept).await?;
    rig.load("noop", "default", TASKS).await?;
    let (server, _) = rig.schema()?;
    let kind = Name::new("kind", "noop")?;
    let lanes: Arc<[LaneId]> = rig.store.lanes(&[kind], &[]).await?.iter().map(|lane| lane.id).collect();
    let (before, start) = (cpu(server), Instant::now());
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..coordinators {
        running.spawn(coordinate(rig.store.clone(), Arc::clone(&lanes)));
    }
    let mut times = Vec::new();
    while let Some(ended) = running.join_next().await {
        times.extend(ended??);
    }
    let took = start.elapsed().as_secs_f64();
    let cpu_us = before
        .zip(cpu(server))
        .map(|(before, after)| after.saturating_sub(before).as_secs_f64() * 1e6 / TASKS as f64);
    times.sort_by(f64::total_cmp);
    rig.store.close().await?;
    Ok(Figures {
        p50_ms: percentile(&times, 0.5),
        p99_ms: percentile(&times, 0.99),
        cpu_us,
        per_second: TASKS as f64 / took,
    })
}

/// Claims and settles until no task is left; returns the time of each claim.
async fn coordinate(store: SharedStore, lanes: Arc<[LaneId]>) -> anyhow::Result<Vec<f64>> {
    let worker = register(&store).await?;
    let mut times = Vec::new();
    for number in 1.. {
        let start = Instant::now();
        let demand = [Demand::new(worker, number, Arc::clone(&lanes), CLAIM)];
        let tasks = store.claim(&demand).await?.tasks;
        if tasks.is_empty() {
            break;
        }
        times.push(start.elapsed().as_secs_f64() * 1e3);
        let items = tasks
            .iter()
            .map(|task| SettleItem::new(task, Settlement::Done { output: None, note: None }))
            .collect();
        store.settle(Arc::new(SettleBatch { worker, settler_no: 0, batch_no: number, items })).await?;
    }
    Ok(times)
}

async fn register(store: &SharedStore) -> anyhow::Result<WorkerId> {
    let worker = NewWorker {
        host: "bench".into(),
        pid: std::process::id(),
        version: "bench".into(),
        kinds: vec![Name::new("kind", "noop")?],
        queues: Vec::new(),
        slots: CLAIM,
        lease_ttl: Duration::from_hours(1),
    };
    Ok(store.register(worker).await?)
}

/// The processor time that a private server and all its processes have used.
fn cpu(server: &Server) -> Option<Duration> {
    let root = server.cluster.as_ref()?.pid()?;
    let mut ticks = 0;
    for entry in std::fs::read_dir("/proc").ok()?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        // The name stands in brackets and may contain anything, so cut after the last bracket; numbers
        // follow.
        let Some((_, rest)) = stat.rsplit_once(") ") else { continue };
        let fields: Vec<&str> = rest.split(' ').collect();
        let number = |place: usize| fields.get(place).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        if pid == root || number(1) == u64::from(root) {
            // Its own time, and that of its ended children.
            ticks += number(11) + number(12);
        }
        if pid == root {
            ticks += number(13) + number(14);
        }
    }
    let per_second = rustix::param::clock_ticks_per_second();
    Some(Duration::from_secs_f64(ticks as f64 / per_second as f64))
}
