//! Writes the sampled figures and the worker's counters, metric by metric.

use std::{collections::BTreeMap, sync::atomic::Ordering};

use windlass_core::{
    Name,
    admission::Reasons,
    store::{Depth, LaneRecord},
    usage::{PoolUsage, Usage},
};

use super::{
    OTHER, SERIES_MAX,
    meters::{Duty, Meters, OUTCOMES},
    names::{self, Metric},
    sample::Figures,
    series::{Series, largest},
    text::Text,
};
use crate::{
    admission::AdmissionStatus,
    worker::{WorkerStatus, status::Counters},
};

/// Kinds with their claimed and settled tasks.
pub(super) type KindSeries = Series<{ OUTCOMES.len() + 1 }>;

/// The allowed share of the slots for each reason that may lower it. Each reason always has a series, so that
/// an alert rule sees when it begins and ends.
fn pressure(text: &mut Text, factor: f64, reasons: Reasons) {
    let memory = reasons.memory || reasons.memory_stop;
    let mut family = text.family(&names::BACKPRESSURE);
    for (reason, applies) in [("start", reasons.start), ("memory", memory), ("latency", reasons.latency)] {
        family.value(&[reason], if applies { factor } else { 1.0 });
    }
}

/// The state of admission control in a process without a worker.
pub(super) fn admission(text: &mut Text, status: &AdmissionStatus) {
    pressure(text, status.factor, status.reasons);
    if let Some(usage) = status.memory_usage {
        text.one(&names::MEMORY_USAGE, usage);
    }
}

/// The status of the worker.
pub(super) fn worker(text: &mut Text, status: &WorkerStatus, counters: &Counters, rejected: u64) {
    text.one(&names::IN_FLIGHT, f64::from(status.running));
    text.one(&names::COMPLETED, status.succeeded as f64);
    text.one(&names::PANICS, status.panicked as f64);
    text.one(&names::TIMEOUTS, status.timed_out as f64);
    text.one(&names::LEASE_LOSSES, status.lease_losses as f64);
    text.one(&names::SELF_FENCES, status.self_fences as f64);
    text.one(&names::RECONCILED, status.reconciled as f64);
    text.one(&names::REJECTED, rejected as f64);
    let failed = Counters::get(&counters.renewals_failed);
    by(text, &names::RENEWALS, [("ok", Counters::get(&counters.renewals)), ("failed", failed)]);
    text.one(&names::SETTLE_FAILURES, Counters::get(&counters.settle_failures) as f64);
    text.one(&names::UNSETTLED, f64::from(status.unsettled));
    text.one(&names::SLOTS, f64::from(status.slots));
    text.one(&names::SLOTS_USED, f64::from(status.running));
    text.one(&names::SLOTS_ALLOWED, f64::from(status.allowed));
    pressure(text, status.factor, status.reasons);
    if let Some(usage) = status.memory_usage {
        text.one(&names::MEMORY_USAGE, usage);
    }
    text.one(&names::RENEWAL_AGE, status.renewed_ago.as_secs_f64());
    text.one(&names::TICK_AGE, status.ticked_ago.as_secs_f64());
    text.one(&names::COORDINATOR_DEATHS, status.coordinator_deaths as f64);
    text.one(&names::DRAINING, f64::from(u8::from(status.draining)));
    let ticks = [("fired", status.ticks_fired), ("left_out", status.ticks_left_out)];
    by(text, &names::SCHEDULE_TICKS, ticks);
}

/// The meters of the tasks' path.
pub(super) fn meters(text: &mut Text, meters: &Meters) {
    text.family(&names::TASK_DURATION).histogram(&[], &meters.task_seconds.read());
    text.family(&names::CLAIM_SIZE).histogram(&[], &meters.claim_size.read());
    text.family(&names::CLAIM_DURATION).histogram(&[], &meters.claim_seconds.read());
    text.family(&names::PICKUP).histogram(&[], &meters.pickup_seconds.read());
    text.family(&names::SETTLE_BATCH).histogram(&[], &meters.settle_batch.read());
    let [some, none, failed] = meters.claims.each_ref().map(Counters::get);
    by(text, &names::CLAIMS, [("tasks", some), ("empty", none), ("failed", failed)]);
    text.one(&names::RETRIES, meters.retries.load(Ordering::Relaxed) as f64);
    let mut family = text.family(&names::MAINTENANCE);
    for (duty, runs) in Duty::ALL.iter().zip(&meters.duties) {
        for (result, counter) in [("ok", &runs.ok), ("failed", &runs.failed)] {
            family.value(&[duty.as_str(), result], Counters::get(counter) as f64);
        }
    }
}

/// Claimed and settled tasks by kind.
pub(super) fn kinds(text: &mut Text, series: &KindSeries) {
    let other = [0; OUTCOMES.len() + 1];
    let rows: Vec<(&str, &[u64; OUTCOMES.len() + 1])> = series
        .named()
        .map(|(kind, figures)| (kind.as_str(), figures))
        .chain((*series.other() != other).then_some((OTHER, series.other())))
        .collect();
    let mut family = text.family(&names::CLAIMED);
    for (kind, [claimed, ..]) in &rows {
        family.value(&[kind], *claimed as f64);
    }
    let mut family = text.family(&names::SETTLED);
    for (kind, figures) in &rows {
        for (outcome, figure) in OUTCOMES.iter().zip(figures.iter().skip(1)) {
            family.value(&[kind, outcome], *figure as f64);
        }
    }
}

/// Settled and held tasks by job.
pub(super) fn jobs(text: &mut Text, settled: &Series<1>, running: BTreeMap<Name, [u64; 1]>, max: usize) {
    let mut family = text.family(&names::JOB_SETTLED);
    for (job, [n]) in settled.named() {
        family.value(&[job.as_str()], *n as f64);
    }
    family.value(&[OTHER], settled.other().iter().sum::<u64>() as f64);
    let (running, rest) = largest(running, max);
    let mut family = text.family(&names::JOB_RUNNING);
    for (job, [n]) in &running {
        family.value(&[job.as_str()], *n as f64);
    }
    family.value(&[OTHER], rest.iter().sum::<u64>() as f64);
}

/// The counters of the store in this process.
pub(super) fn usage(text: &mut Text, usage: &Usage) {
    by(text, &names::ENQUEUED, [("new", usage.enqueued), ("existing", usage.existing)]);
    let mut pools = |metric: &'static Metric, figure: fn(&PoolUsage) -> f64| {
        let mut family = text.family(metric);
        for pool in &usage.pools {
            family.value(&[pool.name], figure(pool));
        }
    };
    pools(&names::POOL_SIZE, |pool| f64::from(pool.size));
    pools(&names::POOL_BUSY, |pool| f64::from(pool.busy));
    pools(&names::POOL_USES, |pool| pool.uses as f64);
    pools(&names::POOL_WAIT, |pool| pool.waited.as_secs_f64());
}

/// The figures of the last query to the store.
pub(super) fn store(text: &mut Text, figures: &Figures) {
    queues(text, &figures.lanes);
    let mut oldest: Vec<_> = figures.oldest.iter().collect();
    oldest.sort_by_key(|(_, age)| std::cmp::Reverse(**age));
    let mut family = text.family(&names::OLDEST_READY);
    for (queue, age) in oldest.into_iter().take(SERIES_MAX) {
        family.value(&[queue.as_str()], age.as_secs_f64());
    }
    by(text, &names::WORKERS, [("live", figures.live), ("draining", figures.draining)]);
    let mut family = text.family(&names::JOB_CONCURRENCY);
    for job in &figures.jobs {
        family.value(&[job.name.as_str()], f64::from(job.concurrency));
    }
    let mut family = text.family(&names::JOB_UTILISATION);
    for job in figures.jobs.iter().filter(|job| job.concurrency > 0) {
        family.value(&[job.name.as_str()], job.running as f64 / f64::from(job.concurrency));
    }
    let info = &figures.info;
    text.one(&names::STORE_BYTES, info.bytes as f64);
    text.one(&names::STORE_HISTORY, info.history_rows as f64);
    if info.backend == "sqlite" {
        text.one(&names::STORE_WAL_BYTES, info.wal_bytes as f64);
        text.one(&names::STORE_DISK_FREE, info.free_disk_bytes as f64);
    }
}

fn queues(text: &mut Text, lanes: &[LaneRecord]) {
    let mut depths: BTreeMap<Name, [u64; 6]> = BTreeMap::new();
    let mut paused: BTreeMap<Name, [u64; 1]> = BTreeMap::new();
    for lane in lanes {
        let depth = depths.entry(lane.queue.clone()).or_default();
        for (sum, figure) in depth.iter_mut().zip(by_state(&lane.depth)) {
            *sum += figure.1;
        }
        paused.insert(lane.queue.clone(), [u64::from(lane.paused)]);
    }
    let (depths, rest) = largest(depths, SERIES_MAX);
    let mut family = text.family(&names::QUEUE_TASKS);
    let states = by_state(&Depth::default()).map(|(state, _)| state);
    let rows = depths.iter().map(|(queue, figures)| (queue.as_str(), figures));
    for (queue, figures) in rows.chain((rest != [0; 6]).then_some((OTHER, &rest))) {
        for (state, figure) in states.iter().zip(figures) {
            family.value(&[queue, state], *figure as f64);
        }
    }
    let mut family = text.family(&names::QUEUE_PAUSED);
    for (queue, [is_paused]) in largest(paused, SERIES_MAX).0 {
        family.value(&[queue.as_str()], is_paused as f64);
    }
}

fn by_state(depth: &Depth) -> [(&'static str, u64); 6] {
    [
        ("scheduled", depth.scheduled),
        ("waiting", depth.waiting),
        ("held", depth.held),
        ("ready", depth.ready),
        ("running", depth.running),
        ("dead", depth.dead),
    ]
}

/// A metric with one label.
fn by<const N: usize>(text: &mut Text, metric: &'static Metric, rows: [(&str, u64); N]) {
    let mut family = text.family(metric);
    for (label, figure) in rows {
        family.value(&[label], figure as f64);
    }
}
