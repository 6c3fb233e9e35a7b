//! Enqueues: many callers of one task each, batches, and a bare loop of one-row commits.

use std::time::Instant;

use serde_json::{Value, json};

use crate::{
    args::Common,
    ceiling,
    rig::{HistoryArg, LOAD_BATCH, Rig, median, round, runtime, task},
};

/// Enqueues per single caller.
const PER_CALLER: usize = 400;
/// Tasks in the batch part.
const BATCHED: usize = 200_000;
/// One-row commits of the bare loop.
const BARE: usize = 2_000;

pub(super) fn run(common: &Common, callers: usize) -> anyhow::Result<Value> {
    anyhow::ensure!((1..=4_096).contains(&callers), "--callers must be 1 to 4096");
    let runtime = runtime()?;
    let (mut single, mut batch, mut bare, mut copy) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..common.rounds.max(1) {
        single.push(runtime.block_on(singles(common, callers))?);
        bare.push(runtime.block_on(async {
            let room = Rig::new(common, HistoryArg::Kept).await?.into_room().await?;
            ceiling::one_row_inserts(&room, BARE).await
        })?);
        if let Some(server) = common.place.server() {
            copy.push(runtime.block_on(async {
                let rig = Rig::new(common, HistoryArg::Kept).await?;
                let schema = rig.schema()?.1;
                ceiling::postgres::copy(server, schema, BATCHED, LOAD_BATCH).await
            })?);
        }
        batch.push(runtime.block_on(batches(common))?);
    }
    let (single, batch, bare) = (median(single), median(batch), median(bare));
    let mut figures = json!({
        "store": common.place.name(),
        "callers": callers,
        "single_per_second": single.round(),
        "batch_per_second": batch.round(),
        "ceiling_per_second": bare.round(),
        "ratio": round(single / bare, 2),
        "rounds": common.rounds,
    });
    if let (Some(figures), false) = (figures.as_object_mut(), copy.is_empty()) {
        let copy = median(copy);
        figures.insert("copy_per_second".to_owned(), json!(copy.round()));
        figures.insert("batch_ratio".to_owned(), json!(round(batch / copy, 2)));
    }
    Ok(figures)
}

async fn singles(common: &Common, callers: usize) -> anyhow::Result<f64> {
    let rig = Rig::new(common, HistoryArg::Kept).await?;
    let template = task("noop", "default")?;
    let mut running = tokio::task::JoinSet::new();
    let start = Instant::now();
    for _ in 0..callers {
        let (store, template) = (rig.store.clone(), template.clone());
        running.spawn(async move {
            for _ in 0..PER_CALLER {
                store.enqueue(vec![template.clone()]).await?;
            }
            Ok::<(), windlass_core::Error>(())
        });
    }
    while let Some(ended) = running.join_next().await {
        ended??;
    }
    let took = start.elapsed();
    rig.store.close().await?;
    Ok((callers * PER_CALLER) as f64 / took.as_secs_f64())
}

async fn batches(common: &Common) -> anyhow::Result<f64> {
    let rig = Rig::new(common, HistoryArg::Kept).await?;
    let template = task("noop", "default")?;
    let start = Instant::now();
    for _ in 0..BATCHED / LOAD_BATCH {
        rig.store.enqueue(vec![template.clone(); LOAD_BATCH]).await?;
    }
    let took = start.elapsed();
    rig.store.close().await?;
    Ok(BATCHED as f64 / took.as_secs_f64())
}
