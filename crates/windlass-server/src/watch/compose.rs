//! Builds a snapshot from what a look found.

use std::time::Duration;

use windlass_core::{Name, WorkerRecord, forecast::Forecast};

use super::{
    attention::attention,
    sampler::{QueueFigures, Sampler},
    tracks::{Mark, Speed, backlog},
};
use crate::api::{BlockedWorkflow, Flow, ForecastView, LastAudit, QueueFlow, Snapshot, WorkersSummary};

/// Queues in one snapshot.
const QUEUES_MAX: usize = 500;

/// The snapshot of the last look.
pub(super) fn snapshot(sampler: &Sampler, audit: Option<LastAudit>, pause: Duration) -> Snapshot {
    let found = &sampler.found;
    let mut shown: Vec<(&Name, &QueueFigures)> = found.queues.iter().collect();
    shown.sort_by_key(|(_, figures)| std::cmp::Reverse(backlog(&figures.depth)));
    let more_queues = shown.len().saturating_sub(QUEUES_MAX) as u64;
    shown.truncate(QUEUES_MAX);
    shown.sort_unstable_by_key(|(queue, _)| *queue);
    let queues: Vec<QueueFlow> =
        shown.into_iter().map(|(queue, figures)| queue_flow(sampler, queue, figures)).collect();
    let workflow = |record: &windlass_core::WorkflowRecord| {
        let blocked_by = record.blocked_by?;
        Some(BlockedWorkflow { workflow: record.name.clone(), blocked_by, steps: record.steps })
    };
    let mut snapshot = Snapshot {
        at: sampler.now(),
        figures_at: found.at,
        every_ms: pause.as_millis() as u64,
        store: sampler.health.clone(),
        audit,
        total: flow(sampler, None, sampler.total_mark()),
        workers: summary(&found.workers),
        queues,
        more_queues,
        jobs_at_limit: sampler.jobs.values().cloned().collect(),
        blocked_workflows: found.blocked.iter().filter_map(workflow).collect(),
        attention: Vec::new(),
    };
    snapshot.attention = attention(&snapshot, &found.workers, &found.late);
    snapshot
}

fn queue_flow(sampler: &Sampler, queue: &Name, figures: &QueueFigures) -> QueueFlow {
    let serves = |kind: &Name| sampler.found.workers.iter().any(|worker| worker.serves(queue, kind));
    QueueFlow {
        queue: queue.clone(),
        paused: figures.paused,
        kinds: figures.kinds,
        kinds_without_worker: figures.to_do.keys().filter(|kind| !serves(kind)).cloned().collect(),
        flow: flow(sampler, Some(queue), sampler.mark(queue, figures)),
    }
}

fn flow(sampler: &Sampler, queue: Option<&Name>, mark: Mark) -> Flow {
    let (Speed { came, left, done, failed }, forecast) = sampler.tracks.outlook(queue, mark);
    let is_ready = mark.depth.ready > 0;
    let oldest_ready_ms = mark.oldest_ready.filter(|_| is_ready).map(|age| age.as_millis() as u64);
    Flow {
        depth: mark.depth,
        oldest_ready_ms,
        in_per_s: came,
        out_per_s: left,
        done_per_s: done,
        failed_per_s: failed,
        forecast: view(forecast),
    }
}

fn view(forecast: Forecast) -> ForecastView {
    let in_ms = match forecast {
        Forecast::In(left) => Some(left.as_millis() as u64),
        _ => None,
    };
    ForecastView { kind: forecast.kind().to_owned(), sentence: forecast.to_string(), in_ms }
}

fn summary(workers: &[WorkerRecord]) -> WorkersSummary {
    let mut summary = WorkersSummary::default();
    for worker in workers {
        match (worker.live, worker.draining) {
            (true, false) => {
                summary.live += 1;
                summary.slots += u64::from(worker.slots);
            }
            (true, true) => summary.draining += 1,
            (false, _) if worker.ended => continue,
            (false, _) => summary.stale += 1,
        }
        summary.running += u64::from(worker.in_flight);
        summary.held_back += u32::from(worker.live && is_held_back(worker));
    }
    summary
}

/// Whether a worker may not use all of its slots, for another reason than that it has just started.
pub(super) fn is_held_back(worker: &WorkerRecord) -> bool {
    !worker.reason.is_empty() && worker.reason != "start"
}
