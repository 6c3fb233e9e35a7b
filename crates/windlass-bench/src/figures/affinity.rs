//! Workflows on three workers over gRPC: how many steps run on the worker that ran the step before. And
//! the cost of it: if that worker has no free slot, another one must take the step.

use std::{collections::HashMap, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::{sync::mpsc, time::Instant};
use windlass::{Context, NewTask, Outcome, TaskId, handler::RawHandler, worker::WorkerConfig};
use windlass_core::Name;
use windlass_server::http::{self, Affinity};

use super::remote::Server;
use crate::{
    args::Common,
    rig::{HistoryArg, Rig, median, percentile, round, runtime, task},
};

/// How long a step takes.
const STEP: Duration = Duration::from_millis(5);
/// Slots of a worker that always has free ones, and of one that never has.
const FREE_SLOTS: u32 = 200;
const FULL_SLOTS: u32 = 5;
/// Steps that run before the measured ones. A new worker starts with few slots; after these it may use
/// all of them.
const WARM_UP: usize = 3_000;

/// One step that ran.
struct Ran {
    worker: usize,
    task: TaskId,
    started: Instant,
    ended: Instant,
}

/// Waits, and reports where and when it ran.
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

/// How many workflows, with how many steps.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub(super) workflows: usize,
    pub(super) steps: usize,
}

/// The figures of one run.
struct Seen {
    /// Share of steps that ran on the worker of the step before, among the steps that have one.
    stayed: f64,
    /// Time from the end of a handler to the start of the next step's handler.
    pickup_p99_ms: f64,
}

pub(super) fn run(common: &Common, sizes: Sizes) -> anyhow::Result<Value> {
    let runtime = runtime()?;
    let free = [FREE_SLOTS; 3];
    let full = [FULL_SLOTS, FREE_SLOTS, FREE_SLOTS];
    let (mut stayed, mut stayed_off) = (Vec::new(), Vec::new());
    // One slow disk write delays every step that is under way, which can be more than one in a hundred.
    // So take the median of the rounds' p99, and alternate which side runs first.
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
        flow.ok_or_else(|| anyhow::anyhow!("a task ran that the bench did not enqueue"))?.push(step);
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
