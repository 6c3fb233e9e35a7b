//! Single ends of attempts, for clients that do not number batches. The server decides the next state of the
//! task, as a Windlass worker would, and numbers the batch.
//!
//! A client may repeat a call after a lost answer; the lease is over by then. If the caller's own call ended
//! the attempt, the answer is the state of the task. Otherwise the answer is that the lease was lost.

use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher, Hasher},
    sync::{
        Arc, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::Mutex;
use windlass_core::{
    Claimed, Error, Lane, LaneId, Name, Outcome, Payload, Result, SettleBatch, SettleItem, State, Store,
    Timestamp, WorkerId, settle,
};
use windlass_proto::{
    convert::{some_name, task_id},
    v1,
};

/// A worker's batches must be written in the order of their numbers, one after another. All workers share
/// this many locks.
const LOCKS: usize = 64;
/// How long a reading of the store's clock is extrapolated with the server's own clock.
const CLOCK_MAX_AGE: Duration = Duration::from_secs(30);
/// The settler numbers of servers start here; those of workers are small.
const SETTLER_NO_MIN: u32 = 1 << 30;

/// Writes single ends.
pub(super) struct Ends {
    /// Random: a restarted server must not reuse the numbers of the process before it.
    settler_no: u32,
    batch_no: AtomicU64,
    locks: Vec<Mutex<()>>,
    clock: std::sync::Mutex<Option<(Timestamp, Instant)>>,
}

impl Ends {
    pub(super) fn new() -> Self {
        let drawn = RandomState::new().build_hasher().finish() as u32;
        Self {
            settler_no: SETTLER_NO_MIN | (drawn >> 2),
            batch_no: AtomicU64::new(0),
            locks: (0..LOCKS).map(|_| Mutex::default()).collect(),
            clock: std::sync::Mutex::default(),
        }
    }

    /// Ends the attempt of a lease.
    pub(super) async fn end(
        &self,
        store: &Arc<dyn Store>,
        worker: WorkerId,
        lease: &v1::Lease,
        outcome: Outcome,
    ) -> Result<State> {
        let mut claimed = claimed(worker, lease)?;
        if matches!(outcome, Outcome::Retry { .. }) {
            grant(&**store, &mut claimed).await?;
        }
        let now = self.now(store).await?;
        let settlement = settle(&claimed, outcome, now, store.rules());
        let state = settlement.state();
        let item = SettleItem::new(&claimed, settlement);
        let place = claimed.worker.0.unsigned_abs() as usize % LOCKS;
        let _turn = match self.locks.get(place) {
            Some(lock) => Some(lock.lock().await),
            None => None,
        };
        // Take the number under the lock, so that the numbers of one worker rise in the order of its batches.
        let batch_no = self.batch_no.fetch_add(1, Ordering::Relaxed) + 1;
        let batch =
            SettleBatch { worker: claimed.worker, settler_no: self.settler_no, batch_no, items: vec![item] };
        let settled = store.settle(Arc::new(batch)).await?;
        if settled.fenced.is_empty() {
            return Ok(state);
        }
        own_end(&**store, &claimed).await?.ok_or(Error::LeaseLost(claimed.id))
    }

    /// The store's clock, precise enough for a retry delay.
    pub(super) async fn now(&self, store: &Arc<dyn Store>) -> Result<Timestamp> {
        let known = *self.clock.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((store, ours)) = known
            && ours.elapsed() < CLOCK_MAX_AGE
        {
            return Ok(store.after(ours.elapsed()));
        }
        let now = store.schedules().due(1).await?.now;
        *self.clock.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, Instant::now()));
        Ok(now)
    }
}

/// The state of a task, if this lease has already ended its attempt.
async fn own_end(store: &dyn Store, claimed: &Claimed) -> Result<Option<State>> {
    let Some(task) = store.task(claimed.id).await? else { return Ok(None) };
    let was_last =
        task.state.is_ended() && task.lease == claimed.lease && task.worker == Some(claimed.worker);
    let is_recorded = task
        .attempts
        .iter()
        .any(|attempt| attempt.lease == claimed.lease && attempt.worker == Some(claimed.worker));
    Ok((was_last || is_recorded).then_some(task.state))
}

/// Takes the number of granted attempts from the task's row, not from the caller.
async fn grant(store: &dyn Store, claimed: &mut Claimed) -> Result<()> {
    if let Some(task) = store.task(claimed.id).await?
        && (task.lease, task.worker) == (claimed.lease, Some(claimed.worker))
    {
        (claimed.attempt, claimed.max_attempts) = (task.attempt, task.max_attempts);
    }
    Ok(())
}

/// A claimed task with only the fields that the decision about its end needs.
fn claimed(worker: WorkerId, lease: &v1::Lease) -> Result<Claimed> {
    let unknown = Name::new("lane", "-")?;
    Ok(Claimed {
        id: task_id(&lease.task_id)?,
        lease: lease.lease,
        attempt: lease.attempt,
        max_attempts: lease.max_attempts,
        crashes: 0,
        worker,
        claim_no: 0,
        lane: Arc::new(Lane { id: LaneId(0), queue: unknown.clone(), kind: unknown }),
        priority: 0,
        payload: Payload::bytes(Vec::new()),
        job: some_name("job", &lease.job)?,
        workflow: some_name("workflow", &lease.workflow)?,
        timeout: None,
        retry: lease.retry.map(Into::into),
        trace: None,
        claimed_at: Timestamp::default(),
    })
}
