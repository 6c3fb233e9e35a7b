//! What a user should look at, from a snapshot: one sentence each, the most urgent first.

use std::time::Duration;

use windlass_core::{Name, WorkerRecord, why::human};

use super::{compose::is_held_back, tracks::backlog};
use crate::api::{Attention, Flow, QueueFlow, Snapshot};

/// Most entries.
const ENTRIES_MAX: usize = 100;
/// A job that is at its limit for a moment works as it should.
const AT_LIMIT_FOR: Duration = Duration::from_mins(1);
/// The same for a queue that grows: its next task has waited for so long.
const GROWS_FOR: Duration = Duration::from_mins(1);

/// What a user should look at.
pub(super) fn attention(
    snapshot: &Snapshot,
    workers: &[WorkerRecord],
    late: &[(Name, String)],
) -> Vec<Attention> {
    let mut entries = Vec::new();
    if let Some(error) = &snapshot.store.error {
        let age = human(snapshot.at.since(snapshot.figures_at));
        let sentence = format!("the store does not answer: {error}; the figures are {age} old");
        entries.push(entry("store_unreachable", sentence, "store", None));
    }
    if let Some(audit) = snapshot.audit.filter(|audit| audit.findings > 0) {
        let n = audit.findings;
        let sentence = format!("the last audit found {n} broken promise{}", if n == 1 { "" } else { "s" });
        entries.push(entry("audit_findings", sentence, "audit", None));
    }
    entries.extend(snapshot.queues.iter().flat_map(queue));
    entries.extend(snapshot.blocked_workflows.iter().map(|blocked| {
        let sentence = format!("workflow {} is blocked by task {}", blocked.workflow, blocked.blocked_by);
        entry("workflow_blocked", sentence, "workflow", Some(blocked.workflow.to_string()))
    }));
    entries.extend(late.iter().map(|(name, sentence)| {
        entry("schedule_late", format!("schedule {name}: {sentence}"), "schedule", Some(name.to_string()))
    }));
    entries.extend(workers.iter().filter_map(worker));
    let since = |job: &&crate::api::JobAtLimit| snapshot.at.since(job.since) >= AT_LIMIT_FOR;
    entries.extend(snapshot.jobs_at_limit.iter().filter(since).map(|job| {
        let (for_, name) = (human(snapshot.at.since(job.since)), &job.job);
        let sentence =
            format!("job {name} has been at its limit of {} for {for_}: {} held", job.concurrency, job.held);
        entry("job_at_limit", sentence, "job", Some(name.to_string()))
    }));
    entries.truncate(ENTRIES_MAX);
    entries
}

fn queue(of: &QueueFlow) -> Vec<Attention> {
    let (name, flow) = (&of.queue, &of.flow);
    let about = |code, sentence| entry(code, sentence, "queue", Some(name.to_string()));
    let tasks = to_do(flow);
    if tasks == 0 {
        return Vec::new();
    }
    if of.paused {
        return vec![about("queue_paused", format!("queue {name} is paused with {} to do", count(tasks)))];
    }
    let mut entries: Vec<_> = of
        .kinds_without_worker
        .iter()
        .map(|kind| {
            about("no_worker", format!("no live worker handles kind {:?} on queue {name}", kind.as_str()))
        })
        .collect();
    let waits = Duration::from_millis(flow.oldest_ready_ms.unwrap_or_default());
    if entries.is_empty() && flow.forecast.kind == "not_at_this_rate" && waits >= GROWS_FOR {
        let (sentence, waits) = (&flow.forecast.sentence, human(waits));
        entries.push(about(
            "backlog_stays",
            format!("a task of queue {name} has waited for {waits}, and its backlog {sentence}"),
        ));
    }
    entries
}

fn to_do(flow: &Flow) -> u64 {
    backlog(&flow.depth).saturating_sub(flow.depth.running)
}

fn count(tasks: u64) -> String {
    if tasks == 1 { "1 task".to_owned() } else { format!("{tasks} tasks") }
}

fn worker(of: &WorkerRecord) -> Option<Attention> {
    let (id, host) = (of.id, &of.host);
    if !of.live && !of.ended {
        let sentence =
            format!("worker {id} on {host} has missed its renewals; its tasks will be taken from it");
        return Some(entry("worker_stale", sentence, "worker", Some(id.to_string())));
    }
    (of.live && is_held_back(of)).then(|| {
        let percent = (of.factor * 100.0).round();
        let sentence = format!("worker {id} on {host} may use {percent} % of its slots: {}", of.reason);
        entry("worker_held_back", sentence, "worker", Some(id.to_string()))
    })
}

fn entry(code: &str, sentence: String, about: &str, name: Option<String>) -> Attention {
    Attention { code: code.to_owned(), sentence, about: about.to_owned(), name }
}
