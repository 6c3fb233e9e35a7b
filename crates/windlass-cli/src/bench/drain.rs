//! No-op tasks through the whole engine, beside a bare SQL loop over the same table.

use serde_json::{Value, json};
use windlass::worker::WorkerConfig;

use super::{
    Common, ceiling,
    rig::{HistoryArg, Noop, Rig, median, round, runtime},
};

pub(super) fn run(
    common: &Common,
    tasks: usize,
    history: HistoryArg,
    slots: Option<u32>,
) -> anyhow::Result<Value> {
    let runtime = runtime()?;
    let (mut engine, mut bare) = (Vec::new(), ceiling::Rates::default());
    for _ in 0..common.rounds.max(1) {
        engine.push(runtime.block_on(drain(common, tasks, history, slots))?);
        let folder = runtime.block_on(async { Rig::new(common, history).await?.into_folder().await })?;
        bare.add(ceiling::drain(&folder.path().join("bench.db"), tasks, history)?);
    }
    let (per_second, (ceiling_n, ceiling_per_second)) = (median(engine), bare.best());
    Ok(json!({
        "tasks": tasks,
        "per_second": per_second.round(),
        "ceiling_per_second": ceiling_per_second.round(),
        "ceiling_n": ceiling_n,
        "ratio": round(per_second / ceiling_per_second, 3),
        "history": if history == HistoryArg::Kept { "kept" } else { "off" },
        "rounds": common.rounds,
    }))
}

async fn drain(
    common: &Common,
    tasks: usize,
    history: HistoryArg,
    slots: Option<u32>,
) -> anyhow::Result<f64> {
    let rig = Rig::new(common, history).await?;
    rig.load("noop", "default", tasks).await?;
    let mut config = WorkerConfig::default();
    config.slots = slots.unwrap_or(config.slots);
    let running = rig.start("noop", std::sync::Arc::new(Noop), config)?;
    let took = running.settled(tasks).await;
    running.stop().await?;
    rig.store.close().await?;
    Ok(tasks as f64 / took.as_secs_f64())
}
