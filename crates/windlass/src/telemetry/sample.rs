//! A query of the store in the background, so that no scrape queries it.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::Instant;
use windlass_core::{
    Name, Result,
    store::{LaneRecord, SharedStore, StoreInfo},
};

use super::ages::Ages;

/// A job that has a limit.
#[derive(Debug)]
pub(super) struct JobUse {
    pub(super) name: Name,
    pub(super) concurrency: u32,
    pub(super) running: u64,
}

/// The answers of the store.
#[derive(Debug)]
pub(super) struct Figures {
    pub(super) lanes: Vec<LaneRecord>,
    /// For each queue how long its next task has been ready.
    pub(super) oldest: BTreeMap<Name, Duration>,
    pub(super) info: StoreInfo,
    pub(super) live: u64,
    pub(super) draining: u64,
    pub(super) jobs: Vec<JobUse>,
}

/// One query. It has no figures if the store did not answer.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) at: Instant,
    pub(super) figures: Option<Figures>,
}

/// Queries figures that the store keeps, or that it finds with bounded work.
pub(super) async fn figures(store: &SharedStore, jobs: &[Name], ages: &mut Ages) -> Result<Figures> {
    let lanes = store.lane_records().await?;
    let ready = store.ready_lines().await?;
    let now = Instant::now();
    ages.note(ready.last, now);
    let mut oldest: BTreeMap<Name, Duration> = BTreeMap::new();
    for lane in &lanes {
        oldest.entry(lane.queue.clone()).or_default();
    }
    for (_, queue, place) in ready.heads {
        let age = oldest.entry(queue).or_default();
        *age = (*age).max(ages.age(place, now));
    }
    let info = store.info().await?;
    let workers = store.workers().await?;
    let alive = workers.iter().filter(|worker| worker.live);
    let (draining, live): (Vec<_>, Vec<_>) = alive.partition(|worker| worker.draining);
    let mut uses = Vec::new();
    for name in jobs {
        if let Some(job) = store.gates().job(name).await?
            && let Some(concurrency) = job.concurrency
        {
            uses.push(JobUse { name: job.name, concurrency, running: job.running });
        }
    }
    let (live, draining) = (live.len() as u64, draining.len() as u64);
    Ok(Figures { lanes, oldest, info, live, draining, jobs: uses })
}
