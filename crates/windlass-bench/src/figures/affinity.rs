//! Workflows on three workers over gRPC: how many steps run where the one before ran, and what it costs that the others have to
//! take the steps of a worker without a free slot.

use std::{collections::HashMap, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::{sync::mpsc, time::Instant};
use windlass::{Context, NewTask, Outcome, RawHandler, TaskId, worker::WorkerConfig};
use windlass_core::Name;
use windlass_server::http::{self, Affinity};

use super::remote::Server;
use crate::{
    args::Common,
    rig::{HistoryArg, Rig, median, percentile, round, runtime, task},
};

/// How long a step takes.
const STEP: Duration = Duration::from_millis(5);
/// Slots of a worker that always has some free, and of one that never has.
const FREE_SLOTS: u32 = 200;
const FULL_SLOTS: u32 = 5;
/// Steps that run before the measured ones, so that every worker has all of its slots.
const WARM_UP: usize = 3_000;

/// One step that ran.
struct Ran {
    worker: usize,
    task: TaskId,
    started: Instant,
    ended: Instant,
}

/// Waits, and tells where and when it ran.
struct Step {
    worker: usize,
    tell: mpsc::UnboundedSender<Ran>,
}

#[async_trait::async_trait]
impl RawHandler for Step {
    async fn call(&self, context: Context) -> Outcome {
        let started = Instant::now();
        tokio::time::sleep(STEP).await;
        let (worker, task) = (self.worker, context.id());
        let _ = self.tell.send(Ran { worker, task, started, ended: Instant::now() });
        Outcome::Done(None)
    }
}

/// How many workflows, how long.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub(super) workflows: usize,
    pub(super) steps: usize,
}

/// What one run shows.
struct Seen {
    /// Steps that ran where the one before ran, of all that have one before.
    stayed: f64,
    /// From the end of a handler to the start of the next step's.
    pickup_p99_ms: f64,
}

pub(super) fn run(common: &Common, sizes: Sizes) -> anyhow::Result<Value> {
    let runtime = runtime()?;
    let free = [FREE_SLOTS; 3];
    let full = [FULL_SLOTS, FREE_SLOTS, FREE_SLOTS];
    let (mut stayed, mut stayed_off) = (Vec::new(), Vec::new());
    // One wait for the disk holds up every step that is under way, more than one in a hundred: of the p99 of the rounds the middle one
    // counts, and who comes first changes.
    let (mut p99, mut p99_off) = (Vec::new(), Vec::new());
    for round in 0..common.rounds.max(1) {
        stayed.push(runtime.block_on(measure(common, sizes, free, Affinity::On))?.stayed);
        stayed_off.push(runtime.block_on(measure(common, sizes, free, Affinity::Off))?.stayed);
        let mut turns = [(Affinity::On, &mut p99), (Affinity::Off, &mut p99_off)];
        if round % 2 == 1 {
            turns.reverse();
        }
        for (affinity, p99) in turns {
            p99.push(runtime.block_on(measure(common, sizes, full, affinity))?.pickup_p99_ms);
        }
    }
    let (p99, p99_off) = (median(p99), median(p99_off));
    Ok(json!({
        "store": common.place.name(),
        "workflows": sizes.workflows,
        "steps": sizes.steps,
        "stayed": round(median(stayed), 3),
        "stayed_without": round(median(stayed_off), 3),
        "one_full": {
            "pickup_p99_ms": round(p99, 3),
            "pickup_p99_ms_without": round(p99_off, 3),
            "ratio": round(p99 / p99_off, 3),
        },
        "rounds": common.rounds,
    }))
}

async fn measure(common: &Common, sizes: Sizes, slots: [u32; 3], affinity: Affinity) -> anyhow::Result<Seen> {
    let rig = Rig::new(common, HistoryArg::Kept).await?;
    let options = http::Options { affinity, ..http::Options::default() };
    let server = Server::start(rig.store.clone(), options).await?;
    let (tell, mut told) = mpsc::unbounded_channel();
    let mut running = Vec::new();
    for (worker, slots) in slots.into_iter().enumerate() {
        let config = WorkerConfig { slots, ..WorkerConfig::default() };
        let step = Arc::new(Step { worker, tell: tell.clone() });
        running.push(rig.start_on(server.worker().await?, "step", step, config)?);
    }
    rig.load("step", "default", WARM_UP).await?;
    next(&mut told, WARM_UP).await?;
    let mut flows = HashMap::new();
    for flow in 0..sizes.workflows {
        let workflow = Some(Name::new("workflow", format!("flow-{flow}"))?);
        let step = NewTask { workflow, ..task("step", "default")? };
        for step in rig.store.enqueue(vec![step; sizes.steps]).await? {
            flows.insert(step.id, flow);
        }
    }
    let mut ran: Vec<Vec<Ran>> = (0..sizes.workflows).map(|_| Vec::new()).collect();
    for step in next(&mut told, sizes.workflows * sizes.steps).await? {
        let flow = flows.get(&step.task).and_then(|flow| ran.get_mut(*flow));
        flow.ok_or_else(|| anyhow::anyhow!("a task that nobody enqueued"))?.push(step);
    }
    for running in running {
        running.stop().await?;
    }
    server.end().await?;
    rig.store.close().await?;
    Ok(seen(&ran))
}

async fn next(told: &mut mpsc::UnboundedReceiver<Ran>, n: usize) -> anyhow::Result<Vec<Ran>> {
    let mut ran = Vec::with_capacity(n);
    while ran.len() < n {
        ran.push(told.recv().await.ok_or_else(|| anyhow::anyhow!("the workers ended"))?);
    }
    Ok(ran)
}

fn seen(ran: &[Vec<Ran>]) -> Seen {
    let pairs = || ran.iter().flat_map(|steps| steps.iter().zip(steps.iter().skip(1)));
    let stayed = pairs().filter(|(before, after)| before.worker == after.worker).count();
    let mut pickups: Vec<f64> = pairs()
        .map(|(before, after)| after.started.duration_since(before.ended).as_secs_f64() * 1e3)
        .collect();
    pickups.sort_by(f64::total_cmp);
    Seen { stayed: stayed as f64 / pickups.len().max(1) as f64, pickup_p99_ms: percentile(&pickups, 0.99) }
}
