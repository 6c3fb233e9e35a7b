//! Counters on the path of a task. Each is a relaxed atomic, or changed once per batch.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use windlass_core::{Claimed, Name, Settlement};

use super::{histogram::Histogram, jobs::JobTallies, names};

/// The index in [`OUTCOMES`] of a settlement.
fn outcome(settlement: &Settlement) -> usize {
    match settlement {
        Settlement::Done { .. } => 0,
        Settlement::Retry { .. } => RETRY,
        Settlement::Snooze { .. } => 2,
        Settlement::Release => 3,
        Settlement::Dead { .. } => 4,
        Settlement::Cancelled { .. } => 5,
    }
}

/// The names of the outcomes.
pub(super) const OUTCOMES: [&str; 6] = ["done", "retry", "snooze", "release", "dead", "cancelled"];
/// The index of retries in it.
const RETRY: usize = 1;

/// The duties of a worker besides running tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Duty {
    Sweep,
    Retention,
    Schedules,
    Audit,
}

impl Duty {
    pub(super) const ALL: [Self; 4] = [Self::Sweep, Self::Retention, Self::Schedules, Self::Audit];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Sweep => "sweep",
            Self::Retention => "retention",
            Self::Schedules => "schedules",
            Self::Audit => "audit",
        }
    }
}

/// What happened to tasks of one kind since the last reading.
#[derive(Debug, Default)]
pub(crate) struct KindMeter {
    claimed: AtomicU64,
    settled: [AtomicU64; OUTCOMES.len()],
}

impl KindMeter {
    /// The claimed tasks, then the settled ones by outcome; resets them.
    pub(super) fn take(&self) -> [u64; OUTCOMES.len() + 1] {
        let mut figures = [0; OUTCOMES.len() + 1];
        for (figure, counter) in figures.iter_mut().zip([&self.claimed].into_iter().chain(&self.settled)) {
            *figure = counter.swap(0, Ordering::Relaxed);
        }
        figures
    }
}

/// Runs of one duty.
#[derive(Debug, Default)]
pub(super) struct Runs {
    pub(super) ok: AtomicU64,
    pub(super) failed: AtomicU64,
}

/// The instruments of one worker.
#[derive(Debug)]
pub(crate) struct Meters {
    pub(super) task_seconds: Histogram,
    pub(super) pickup_seconds: Histogram,
    pub(super) claim_seconds: Histogram,
    pub(super) claim_size: Histogram,
    pub(super) settle_batch: Histogram,
    /// Claims that brought tasks, brought none, failed.
    pub(super) claims: [AtomicU64; 3],
    pub(super) retries: AtomicU64,
    /// A worker's kinds do not change, so the meter of a task is looked up once per lane.
    pub(super) kinds: BTreeMap<Name, Arc<KindMeter>>,
    pub(super) duties: [Runs; Duty::ALL.len()],
    pub(super) jobs: JobTallies,
}

impl Meters {
    /// Instruments for these kinds.
    pub(crate) fn new(kinds: Vec<Name>) -> Self {
        Self {
            task_seconds: Histogram::of_seconds(&names::TASK_DURATION),
            pickup_seconds: Histogram::of_seconds(&names::PICKUP),
            claim_seconds: Histogram::of_seconds(&names::CLAIM_DURATION),
            claim_size: Histogram::of_numbers(&names::CLAIM_SIZE),
            settle_batch: Histogram::of_numbers(&names::SETTLE_BATCH),
            claims: Default::default(),
            retries: AtomicU64::new(0),
            kinds: kinds.into_iter().map(|kind| (kind, Arc::default())).collect(),
            duties: Default::default(),
            jobs: JobTallies::default(),
        }
    }

    /// The meter of a kind, for the caller to keep.
    pub(crate) fn kind(&self, kind: &Name) -> Option<Arc<KindMeter>> {
        self.kinds.get(kind).cloned()
    }

    /// Records a claim that was answered with `tasks` tasks, or failed.
    pub(crate) fn claim(&self, took: Duration, tasks: Option<usize>) {
        self.claim_seconds.observe(took);
        let [some, none, failed] = &self.claims;
        let result = match tasks {
            Some(0) => none,
            Some(_) => some,
            None => failed,
        };
        result.fetch_add(1, Ordering::Relaxed);
        if let Some(tasks) = tasks {
            self.claim_size.observe_number(tasks as u64);
        }
    }

    /// A task was claimed.
    pub(crate) fn claimed(&self, claimed: &Claimed, kind: Option<&KindMeter>) {
        if let Some(kind) = kind {
            kind.claimed.fetch_add(1, Ordering::Relaxed);
        }
        // For other attempts the time of becoming ready is unknown.
        let is_fresh = claimed.attempt == 1 && claimed.crashes == 0;
        if is_fresh && claimed.job.is_none() && claimed.workflow.is_none() {
            self.pickup_seconds.observe(claimed.claimed_at.since(claimed.id.enqueued_at()));
        }
    }

    /// A handler has ended.
    pub(crate) fn ran(&self, took: Duration) {
        self.task_seconds.observe(took);
    }

    /// The end of an attempt was acknowledged.
    pub(crate) fn settled(&self, settlement: &Settlement, kind: Option<&KindMeter>) {
        let outcome = outcome(settlement);
        if outcome == RETRY {
            self.retries.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(counter) = kind.and_then(|kind| kind.settled.get(outcome)) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Records an acknowledged batch of `size` ends, of these jobs.
    pub(crate) fn batch<'a>(&self, size: usize, jobs: impl Iterator<Item = &'a Name>) {
        self.settle_batch.observe_number(size as u64);
        self.jobs.note(jobs);
    }

    /// A duty was done, or failed.
    pub(crate) fn duty<T, E>(&self, duty: Duty, result: &Result<T, E>) {
        let place = Duty::ALL.iter().position(|known| *known == duty);
        if let Some(runs) = place.and_then(|place| self.duties.get(place)) {
            let counter = if result.is_ok() { &runs.ok } else { &runs.failed };
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }
}
