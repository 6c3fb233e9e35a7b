//! No-op tasks through the whole engine, compared with a bare SQL loop over the same table.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use windlass::{
    Context, Outcome,
    handler::RawHandler,
    worker::{Metrics, WorkerConfig},
};

use crate::{
    args::Common,
    ceiling,
    rig::{HistoryArg, Noop, Rig, median, round, runtime},
};

/// What is drained, and with which settings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) history: HistoryArg,
    pub(super) slots: Option<u32>,
    pub(super) metrics: Metrics,
}

/// The default settings of a worker.
const USUAL: Shape = Shape { history: HistoryArg::Kept, slots: None, metrics: Metrics::On };

pub(super) fn run(common: &Common, tasks: usize, shape: Shape) -> anyhow::Result<Value> {
    let runtime = runtime()?;
    let history = shape.history;
    let (mut engine, mut bare) = (Vec::new(), ceiling::Rates::default());
    for _ in 0..common.rounds.max(1) {
        engine.push(runtime.block_on(drain(common, tasks, shape, Arc::new(Noop)))?);
        bare.add(runtime.block_on(async {
            let room = Rig::new(common, history).await?.into_room().await?;
            ceiling::drain(&room, tasks, history).await
        })?);
    }
    let ceiling = bare.against(&engine);
    let per_second = median(engine);
    Ok(json!({
        "store": common.place.name(),
        "tasks": tasks,
        "per_second": per_second.round(),
        "ceiling_per_second": ceiling.per_second.round(),
        "ceiling_n": ceiling.n,
        "ratio": round(ceiling.ratio, 3),
        "history": if history == HistoryArg::Kept { "kept" } else { "off" },
        "metrics": if shape.metrics == Metrics::On { "on" } else { "off" },
        "rounds": common.rounds,
    }))
}

/// With metrics and without, in turns, so that other load on the machine affects both. The ratio is the
/// cost of counting.
pub(super) fn run_metrics(common: &Common, tasks: usize) -> anyhow::Result<Value> {
    let runtime = runtime()?;
    let (mut on, mut off) = (Vec::new(), Vec::new());
    for _ in 0..common.rounds.max(1) {
        for (metrics, rates) in [(Metrics::On, &mut on), (Metrics::Off, &mut off)] {
            let shape = Shape { metrics, ..USUAL };
            rates.push(runtime.block_on(drain(common, tasks, shape, Arc::new(Noop)))?);
        }
    }
    let (on, off) = (median(on), median(off));
    Ok(json!({
        "store": common.place.name(),
        "tasks": tasks,
        "on_per_second": on.round(),
        "off_per_second": off.round(),
        "ratio": round(on / off, 3),
        "rounds": common.rounds,
    }))
}

/// Runs in which every task fails, against runs in which every task succeeds: failures must not slow
/// claims down.
pub(super) fn run_failing(common: &Common, tasks: usize) -> anyhow::Result<Value> {
    let runtime = runtime()?;
    let (mut succeeding, mut failing) = (Vec::new(), Vec::new());
    for _ in 0..common.rounds.max(1) {
        succeeding.push(runtime.block_on(drain(common, tasks, USUAL, Arc::new(Noop)))?);
        failing.push(runtime.block_on(drain(common, tasks, USUAL, Arc::new(Failing)))?);
    }
    let (succeeding, failing) = (median(succeeding), median(failing));
    Ok(json!({
        "tasks": tasks,
        "succeeding_per_second": succeeding.round(),
        "failing_per_second": failing.round(),
        "ratio": round(failing / succeeding, 3),
        "rounds": common.rounds,
    }))
}

/// Fails, and asks for a retry much later.
struct Failing;

#[async_trait::async_trait]
impl RawHandler for Failing {
    async fn call(&self, _context: Context) -> Outcome {
        Outcome::retry_after(Duration::from_hours(1), "it never works")
    }
}

pub(super) async fn drain(
    common: &Common,
    tasks: usize,
    shape: Shape,
    handler: Arc<dyn RawHandler>,
) -> anyhow::Result<f64> {
    let rig = Rig::new(common, shape.history).await?;
    rig.load("noop", "default", tasks).await?;
    let usual = WorkerConfig::default();
    let slots = shape.slots.unwrap_or(usual.slots);
    let config = WorkerConfig { slots, metrics: shape.metrics, ..usual };
    let running = rig.start("noop", handler, config)?;
    let took = running.settled(tasks).await;
    running.stop().await?;
    rig.store.close().await?;
    Ok(tasks as f64 / took.as_secs_f64())
}
