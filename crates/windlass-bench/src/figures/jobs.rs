//! The cost of the gate of a job: tasks that many small limits hold back, compared with the same tasks
//! without jobs.

use std::sync::Arc;

use serde_json::{Value, json};
use windlass::worker::WorkerConfig;
use windlass_core::{JobChange, Name, NewTask, NewWorker, WorkerId, store::PAGE_MAX};

use crate::{
    args::Common,
    rig::{HistoryArg, LOAD_BATCH, Noop, Rig, median, round, runtime, task},
};

/// How many jobs and tasks, and which limit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub(super) jobs: usize,
    pub(super) concurrency: u32,
    pub(super) tasks_per_job: usize,
}

pub(super) fn run(common: &Common, sizes: Sizes) -> anyhow::Result<Value> {
    let runtime = runtime()?;
    let (mut gated, mut plain, mut held) = (Vec::new(), Vec::new(), 0.0);
    for _ in 0..common.rounds.max(1) {
        let round = runtime.block_on(drain(common, sizes, true))?;
        (held, ()) = (round.held_at_start, gated.push(round.per_second));
        plain.push(runtime.block_on(drain(common, sizes, false))?.per_second);
    }
    let (gated, plain) = (median(gated), median(plain));
    Ok(json!({
        "store": common.place.name(),
        "jobs": sizes.jobs,
        "concurrency": sizes.concurrency,
        "tasks": sizes.jobs * sizes.tasks_per_job,
        "held_at_start": round(held, 4),
        "per_second": gated.round(),
        "plain_per_second": plain.round(),
        "ratio": round(gated / plain, 3),
        "rounds": common.rounds,
    }))
}

struct Round {
    per_second: f64,
    held_at_start: f64,
}

async fn drain(common: &Common, sizes: Sizes, has_jobs: bool) -> anyhow::Result<Round> {
    let rig = Rig::new(common, HistoryArg::Kept).await?;
    let names: Vec<Name> = (0..sizes.jobs)
        .map(|number| Name::new("job", format!("job-{number:05}")))
        .collect::<Result<_, _>>()?;
    let total = sizes.jobs * sizes.tasks_per_job;
    if has_jobs {
        let change = JobChange { concurrency: Some(Some(sizes.concurrency)), ..JobChange::default() };
        for name in &names {
            rig.store.gates().set_job(name, &change).await?;
        }
    }
    // Register a worker before the tasks come: without one, jobs admit no task.
    let first = register(&rig).await?;
    let template = task("noop", "default")?;
    let of = |place: usize| NewTask {
        job: names.get(place % sizes.jobs).filter(|_| has_jobs).cloned(),
        ..template.clone()
    };
    for from in (0..total).step_by(LOAD_BATCH) {
        rig.store.enqueue((from..total.min(from + LOAD_BATCH)).map(of).collect()).await?;
    }
    let held_at_start = held(&rig).await? as f64 / total as f64;
    let running = rig.start("noop", Arc::new(Noop), WorkerConfig::default())?;
    let took = running.settled(total).await;
    running.stop().await?;
    rig.store.retire(first).await?;
    let findings = rig.store.audit().await?;
    anyhow::ensure!(findings.is_empty(), "the audit found {findings:?}");
    rig.store.close().await?;
    Ok(Round { per_second: total as f64 / took.as_secs_f64(), held_at_start })
}

async fn register(rig: &Rig) -> anyhow::Result<WorkerId> {
    let worker = NewWorker {
        host: "bench".into(),
        pid: std::process::id(),
        version: "bench".into(),
        kinds: vec![Name::new("kind", "noop")?],
        queues: Vec::new(),
        slots: 1,
        lease_ttl: std::time::Duration::from_hours(1),
    };
    Ok(rig.store.register(worker).await?)
}

/// Tasks that their jobs hold back.
async fn held(rig: &Rig) -> anyhow::Result<u64> {
    let (mut held, mut after) = (0, None);
    loop {
        let page = rig.store.gates().jobs(after.as_ref(), PAGE_MAX).await?;
        let Some(last) = page.last() else { return Ok(held) };
        after = Some(last.name.clone());
        held += page.iter().map(|job| job.held).sum::<u64>();
    }
}
