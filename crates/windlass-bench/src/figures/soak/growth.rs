//! A steady stream of tasks with a short history: after some time the file must stop growing.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use windlass::worker::WorkerConfig;
use windlass_core::store::Retention;

use crate::{
    args::Common,
    rig::{HistoryArg, Noop, Rig, file_bytes, round, runtime, task},
};

/// Measurements of the file's size per run: five equal parts are called "minutes".
const PARTS: u32 = 5;

pub(in super::super) fn run(
    common: &Common,
    tasks: usize,
    seconds: u64,
    history_seconds: u64,
) -> anyhow::Result<Value> {
    anyhow::ensure!(
        seconds >= 5 && history_seconds >= 1,
        "--seconds must be at least 5, --history-seconds 1"
    );
    runtime()?.block_on(async {
        let rig = Rig::new(common, HistoryArg::Kept).await?;
        let retention =
            Retention { history_age: Duration::from_secs(history_seconds), ..Retention::default() };
        let config = WorkerConfig { retention, ..WorkerConfig::default() };
        let running = rig.start("noop", Arc::new(Noop), config)?;
        let (start, part) = (Instant::now(), Duration::from_secs(seconds) / PARTS);
        let (mut sent, mut sizes, mut peak_wal) = (0, Vec::new(), 0);
        while sizes.len() < PARTS as usize {
            tokio::time::sleep(Duration::from_millis(50)).await;
            let wanted = (start.elapsed().as_secs_f64() / seconds as f64 * tasks as f64) as usize;
            let n = wanted.min(tasks).saturating_sub(sent);
            for chunk in vec![(); n].chunks(1_000) {
                rig.store.enqueue(vec![task("noop", "default")?; chunk.len()]).await?;
            }
            sent += n;
            let bytes = file_bytes(&rig.path()?);
            peak_wal = peak_wal.max(bytes - std::fs::metadata(rig.path()?)?.len());
            if start.elapsed() >= part * (sizes.len() as u32 + 1) {
                sizes.push(round(bytes as f64 / 1e6, 2));
            }
        }
        running.settled(sent).await;
        running.stop().await?;
        rig.store.close().await?;
        let (second, last) =
            (sizes.get(1).copied().unwrap_or(f64::NAN), sizes.last().copied().unwrap_or(f64::NAN));
        Ok(json!({
            "tasks": sent,
            "seconds": seconds,
            "history_seconds": history_seconds,
            "file_mb": sizes,
            "peak_wal_mb": round(peak_wal as f64 / 1e6, 2),
            "growth": round(last / second, 3),
        }))
    })
}
