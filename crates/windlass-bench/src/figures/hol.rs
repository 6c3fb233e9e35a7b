//! Head-of-line blocking: 50 tasks on 5 slots, every tenth of them fifty times as long. A free slot must
//! not wait for the other slots.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use windlass::{Context, NewTask, Outcome, Payload, handler::RawHandler, worker::WorkerConfig};

use crate::{
    args::Common,
    rig::{HistoryArg, Rig, median, round, runtime},
};

const TASKS: usize = 50;
const SLOTS: usize = 5;

/// Waits for the milliseconds in its payload.
struct Wait;

#[async_trait::async_trait]
impl RawHandler for Wait {
    async fn call(&self, context: Context) -> Outcome {
        match context.payload().decode::<u64>() {
            Ok(ms) => {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                Outcome::Done(None)
            }
            Err(error) => Outcome::dead(error),
        }
    }
}

pub(super) fn run(common: &Common, scale: f64) -> anyhow::Result<Value> {
    anyhow::ensure!(
        scale.is_finite() && scale > 0.0 && scale <= 10.0,
        "--scale must be above 0 and at most 10"
    );
    let times: Vec<u64> = (0..TASKS)
        .map(|i| (if i % 10 == 0 { 10_000.0 } else { 200.0 } * scale).round().max(1.0) as u64)
        .collect();
    let (ideal_s, baseline_s) = (greedy(&times), batches(&times));
    let runtime = runtime()?;
    let mut rounds = Vec::new();
    for _ in 0..common.rounds.max(1) {
        rounds.push(runtime.block_on(measure(common, &times))?);
    }
    let makespan_s = median(rounds);
    Ok(json!({
        "makespan_s": round(makespan_s, 3),
        "ideal_s": round(ideal_s, 3),
        "batch_baseline_s": round(baseline_s, 3),
        "ratio": round(makespan_s / ideal_s, 3),
        "scale": scale,
        "rounds": common.rounds,
    }))
}

async fn measure(common: &Common, times: &[u64]) -> anyhow::Result<f64> {
    let rig = Rig::new(common, HistoryArg::Kept).await?;
    let tasks: Result<Vec<_>, _> = times.iter().map(|ms| NewTask::new("wait", Payload::json(ms)?)).collect();
    rig.store.enqueue(tasks?).await?;
    let config = WorkerConfig { slots: SLOTS as u32, ..WorkerConfig::default() };
    let running = rig.start("wait", Arc::new(Wait), config)?;
    let took = running.settled(times.len()).await;
    running.stop().await?;
    rig.store.close().await?;
    Ok(took.as_secs_f64())
}

/// Makespan if each task, in order, goes to the first free slot.
fn greedy(times: &[u64]) -> f64 {
    let mut free_at = [0_u64; SLOTS];
    for ms in times {
        if let Some(first) = free_at.iter_mut().min() {
            *first += ms;
        }
    }
    free_at.into_iter().max().unwrap_or_default() as f64 / 1e3
}

/// Makespan if each batch, of as many tasks as slots, waits until the whole batch before has ended.
fn batches(times: &[u64]) -> f64 {
    times.chunks(SLOTS).map(|batch| batch.iter().max().copied().unwrap_or_default()).sum::<u64>() as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_s_figures_come_out() {
        let times: Vec<u64> = (0..TASKS).map(|i| if i % 10 == 0 { 10_000 } else { 200 }).collect();
        assert!((13.0..15.0).contains(&greedy(&times)), "{}", greedy(&times));
        assert!((50.0..52.0).contains(&batches(&times)), "{}", batches(&times));
    }
}
