//! Writes the ends of attempts: while one batch is being written, the next gathers; it is sent as soon as the
//! answer comes.
//!
//! A settler holds no slot. A batch whose answer was lost is sent again unchanged before any other; the
//! store's receipt makes that harmless. Meanwhile the heartbeat renews the lease, so a finished task whose
//! settlement waits out an outage does not run again.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::sync::Notify;
use windlass_core::{Error, SettleBatch, SettleItem, Settled, TaskId, WorkerId};

use crate::{
    engine::log_line,
    handler::context::Attempt,
    inside::backoff::Backoff,
    worker::{
        shared::{Phase, Shared},
        status::Counters,
    },
};

/// Most settlements in one commit: bounds how long other writes wait for it.
const BATCH_MAX: usize = 1_000;

/// What a settler writes. A worker has one settler per sort: the lock of a workflow must not delay other
/// tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sort {
    Plain,
    /// Steps of workflows.
    Steps,
}

impl Sort {
    fn of(item: &SettleItem) -> Self {
        if item.gate.workflow.is_some() { Self::Steps } else { Self::Plain }
    }

    /// The number is part of the receipt's key.
    fn settler_no(self) -> u32 {
        match self {
            Self::Plain => 0,
            Self::Steps => 1,
        }
    }
}

/// Ends that one settler must write.
#[derive(Default)]
struct Pending {
    items: Mutex<Vec<(WorkerId, SettleItem)>>,
    changed: Notify,
}

/// Ends of attempts that the store has not acknowledged. While there are more than slots, nothing is claimed.
#[derive(Default)]
pub(crate) struct SettleQueue {
    plain: Pending,
    steps: Pending,
    unsettled: AtomicUsize,
    settled: Notify,
    room: Notify,
}

impl SettleQueue {
    /// Queues an end.
    pub(crate) fn push(&self, worker: WorkerId, item: SettleItem) {
        self.unsettled.fetch_add(1, Ordering::AcqRel);
        let pending = self.of(Sort::of(&item));
        let mut items = pending.items.lock().unwrap_or_else(PoisonError::into_inner);
        items.push((worker, item));
        let first = items.len() == 1;
        drop(items);
        if first {
            pending.changed.notify_one();
        }
    }

    fn of(&self, sort: Sort) -> &Pending {
        match sort {
            Sort::Plain => &self.plain,
            Sort::Steps => &self.steps,
        }
    }

    /// Ends that are not yet acknowledged.
    pub(crate) fn unsettled(&self) -> usize {
        self.unsettled.load(Ordering::Acquire)
    }

    /// Waits until all ends queued so far are acknowledged. Cancel safe.
    pub(crate) async fn flushed(&self) {
        loop {
            let mut settled = std::pin::pin!(self.settled.notified());
            settled.as_mut().enable();
            if self.unsettled() == 0 {
                return;
            }
            settled.await;
        }
    }

    /// The next batch of one registration, oldest first.
    fn take(&self, sort: Sort) -> Option<(WorkerId, Vec<SettleItem>)> {
        let mut items = self.of(sort).items.lock().unwrap_or_else(PoisonError::into_inner);
        let worker = items.first()?.0;
        let n = items.iter().take(BATCH_MAX).take_while(|(owner, _)| *owner == worker).count();
        let rest = items.split_off(n);
        let batch = std::mem::replace(&mut *items, rest);
        Some((worker, batch.into_iter().map(|(_, item)| item).collect()))
    }

    fn acknowledge(&self, n: usize) {
        self.unsettled.fetch_sub(n, Ordering::AcqRel);
        self.settled.notify_waiters();
        self.room.notify_one();
    }

    /// Waits until some ends were acknowledged, even before this call. For one caller.
    pub(crate) async fn shrunk(&self) {
        self.room.notified().await;
    }
}

/// Settles one sort until the worker has stopped and no end is left.
pub(crate) async fn run(shared: Arc<Shared>, sort: Sort) {
    // One entry per registration of this process: a new one after each lost lease.
    let mut batches_sent: HashMap<WorkerId, u64> = HashMap::new();
    loop {
        let changed = shared.settle_queue.of(sort).changed.notified();
        let Some((worker, items)) = shared.settle_queue.take(sort) else {
            tokio::select! {
                () = changed => continue,
                () = shared.phase_reached(Phase::Stopped) => return,
            }
        };
        let batch_no = batches_sent.entry(worker).or_default();
        *batch_no += 1;
        let batch =
            Arc::new(SettleBatch { worker, settler_no: sort.settler_no(), batch_no: *batch_no, items });
        match send(&shared, &batch).await {
            Ok(settled) => acknowledge(&shared, &batch, &settled),
            Err(error) => {
                shared.set_fatal(error);
                return;
            }
        }
    }
}

/// Sends a batch until it is answered. Returns an error only if the store has failed permanently.
async fn send(shared: &Shared, batch: &Arc<SettleBatch>) -> Result<Settled, Error> {
    let mut backoff = Backoff::new(Duration::from_millis(10), Duration::from_secs(2), batch.batch_no);
    loop {
        match shared.source.settle(batch.clone()).await {
            Ok(settled) => {
                shared.reach.answered();
                return Ok(settled);
            }
            Err(error @ (Error::Fatal(_) | Error::Conflict(_) | Error::Invalid(_))) => return Err(error),
            Err(error) => {
                Counters::add(&shared.counters.settle_failures, 1);
                shared.reach.failed("settlements", &error).after(backoff.next()).await;
            }
        }
    }
}

/// Counts the acknowledged ends. Attempts are in the order of the batch; those that a stop has given up are
/// missing.
fn count(shared: &Shared, batch: &SettleBatch, settled: &Settled, attempts: &[Arc<Attempt>]) {
    let Some(meters) = &shared.meters else { return };
    meters.batch(batch.items.len(), batch.items.iter().filter_map(|item| item.gate.job.as_ref()));
    let mut attempts = attempts.iter().peekable();
    // A task that was claimed again may be in a batch with both of its leases: count each refusal once.
    let mut fenced = settled.fenced.clone();
    for item in &batch.items {
        let Some(attempt) = attempts.next_if(|attempt| attempt.lease() == item.lease) else { continue };
        match fenced.iter().position(|id| *id == item.lease.id) {
            Some(refused) => {
                fenced.swap_remove(refused);
            }
            None => meters.settled(&item.settlement, attempt.meter.as_deref()),
        }
    }
}

fn acknowledge(shared: &Shared, batch: &SettleBatch, settled: &Settled) {
    let counters = &shared.counters;
    Counters::add(&counters.settle_batches, 1);
    Counters::add(&counters.settled, (batch.items.len() - settled.fenced.len()) as u64);
    if !settled.fenced.is_empty() {
        Counters::add(&counters.lease_losses, settled.fenced.len() as u64);
    }
    let settled_attempts = shared.in_flight.remove(batch.items.iter().map(|item| item.lease));
    count(shared, batch, settled, &settled_attempts);
    shared.tally.settled(batch, settled, &settled_attempts);
    tell(counters, batch, settled, &settled_attempts);
    if settled_attempts.iter().any(|attempt| attempt.claimed.crashes > 0) {
        // A worker runs one group of suspects at a time: the next may be claimable now, and no hint will say
        // so.
        shared.wake.work();
    }
    shared.settle_queue.acknowledge(batch.items.len());
    if let Some(due) = settled.next_due {
        shared.wake.due(due.as_ms());
    }
    if !settled.lanes_ready.is_empty() {
        shared.wake.work();
    }
}

/// Writes log lines and spans about the store's answer. The attempts are in the order of the batch.
fn tell(counters: &Counters, batch: &SettleBatch, settled: &Settled, attempts: &[Arc<Attempt>]) {
    let fenced: HashSet<TaskId> = settled.fenced.iter().copied().collect();
    let mut items = batch.items.iter();
    for attempt in attempts {
        let Some(item) = items.by_ref().find(|item| item.lease == attempt.lease()) else { return };
        let is_fenced = fenced.contains(&item.lease.id);
        if is_fenced {
            log_line::lease_lost(counters, attempt);
        } else {
            log_line::settled(counters, attempt, &item.settlement);
        }
        if let Some(trace) = &attempt.trace {
            trace.settled(&attempt.claimed, is_fenced);
        }
    }
}
