//! Looks at the store for everyone who watches it: one look serves all callers.
//!
//! ```text
//! GET /v1/snapshot ─┐
//! GET /v1/events ───┼─► Watch ─► is the last snapshot fresh? ─► sampler ─► store
//! recorder, 5 s ────┘                                               └─► tracks ─► GET /v1/series
//! ```
//!
//! No task runs in the background: the first caller after the last snapshot has aged looks at the store, and
//! callers that come meanwhile wait for what it finds. Without callers and without a recorder the store is not
//! asked.

mod attention;
mod compose;
mod fleet;
mod sampler;
mod tracks;

use std::{
    collections::BTreeMap,
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use axum::body::Bytes;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};
use windlass_core::{Name, Timestamp, store::SharedStore};

use self::sampler::{Reach, Sampler};
use crate::api::{Audit, ErrorCode, ErrorDetail, LastAudit, Series, Snapshot};

/// How often a snapshot is taken while callers ask for it.
pub const SNAPSHOT_EVERY: Duration = Duration::from_secs(2);
/// How often the history gets a point.
pub const RECORD_EVERY: Duration = Duration::from_secs(5);
/// Looks at the store take at most one part in so many of the time.
const SHARE: u32 = 50;
/// Longest pause after a look that took long: a store that answers again is shown after that.
const PAUSE_MAX: Duration = Duration::from_secs(15);
/// Streams of snapshots at once. Each holds a connection, so there are fewer than connections.
const VIEWERS_MAX: usize = 300;

/// The backlog of each queue at some times.
pub(crate) type Backlogs = BTreeMap<Name, Vec<(Timestamp, u64)>>;

/// A snapshot that was taken.
#[derive(Debug)]
pub(crate) struct Shot {
    /// Rises with each one.
    pub(crate) number: u64,
    pub(crate) snapshot: Snapshot,
    /// Until when it serves further callers.
    fresh_until: Instant,
    event: OnceLock<Bytes>,
}

impl Shot {
    /// The snapshot as a server-sent event, made once for all viewers.
    pub(crate) fn event(&self) -> Bytes {
        let make = || {
            // Our own types always have a JSON form, on one line.
            let json = serde_json::to_string(&self.snapshot).unwrap_or_default();
            Bytes::from(format!("event: snapshot\nid: {}\ndata: {json}\n\n", self.number))
        };
        self.event.get_or_init(make).clone()
    }
}

/// The shared look at a store.
pub(crate) struct Watch {
    every: Duration,
    /// Locked while the store is asked.
    sampler: tokio::sync::Mutex<Sampler>,
    latest: Mutex<Option<Arc<Shot>>>,
    /// The last audit that a caller asked for, and when.
    audited: Mutex<Option<(Arc<Audit>, Timestamp)>>,
    viewers: Arc<Semaphore>,
}

impl Default for Watch {
    fn default() -> Self {
        Self {
            every: SNAPSHOT_EVERY,
            sampler: tokio::sync::Mutex::new(Sampler::new(now())),
            latest: Mutex::default(),
            audited: Mutex::default(),
            viewers: Arc::new(Semaphore::new(VIEWERS_MAX)),
        }
    }
}

impl Watch {
    /// The snapshot of now. `audit` is the last audit of the worker in this process.
    pub(crate) async fn shot(&self, store: &SharedStore, audit: Option<LastAudit>) -> Arc<Shot> {
        if let Some(shot) = self.fresh() {
            return shot;
        }
        let mut sampler = self.sampler.lock().await;
        // Another caller may have looked while this one waited for the lock.
        if let Some(shot) = self.fresh() {
            return shot;
        }
        let began = Instant::now();
        sampler.look(store, Reach::Whole).await;
        let pause = pause(self.every, began.elapsed());
        let snapshot = sampler.snapshot(self.audited(audit), pause);
        let number = sampler.looks();
        let shot = Arc::new(Shot { number, snapshot, fresh_until: began + pause, event: OnceLock::new() });
        *lock(&self.latest) = Some(Arc::clone(&shot));
        shot
    }

    /// The first snapshot after the one with this number. Waits until it is time for it.
    pub(crate) async fn after(
        &self,
        number: u64,
        store: &SharedStore,
        audit: impl Fn() -> Option<LastAudit>,
    ) -> Arc<Shot> {
        loop {
            let shot = self.shot(store, audit()).await;
            if shot.number > number {
                return shot;
            }
            tokio::time::sleep_until(shot.fresh_until).await;
        }
    }

    /// Keeps the history complete while no caller looks. Ends only by being dropped.
    pub(crate) async fn record(&self, store: &SharedStore) -> Infallible {
        loop {
            let began = Instant::now();
            let mut sampler = self.sampler.lock().await;
            if sampler.is_point_due() {
                sampler.look(store, Reach::Figures).await;
            }
            drop(sampler);
            tokio::time::sleep(pause(RECORD_EVERY, began.elapsed())).await;
        }
    }

    /// The history of a queue, or of all together, from this time on.
    pub(crate) async fn series(&self, queue: Option<Name>, from: Option<Timestamp>) -> Series {
        let points = self.sampler.lock().await.points(queue.as_ref(), from);
        Series { queue, points }
    }

    /// The backlog of each queue over a time until now, in at most about so many points.
    pub(crate) async fn backlogs(&self, over: Duration, most: u32) -> Backlogs {
        self.sampler.lock().await.backlogs(over, most)
    }

    /// Remembers the result of an audit that a caller asked for.
    pub(crate) fn note_audit(&self, audit: &Audit) {
        *lock(&self.audited) = Some((Arc::new(audit.clone()), now()));
    }

    /// The last audit that a caller asked for, and when.
    pub(crate) fn asked_audit(&self) -> Option<(Arc<Audit>, Timestamp)> {
        lock(&self.audited).clone()
    }

    /// A place for a stream of snapshots.
    pub(crate) fn viewer(&self) -> Result<OwnedSemaphorePermit, ErrorDetail> {
        Arc::clone(&self.viewers).try_acquire_owned().map_err(|_| {
            ErrorDetail::new(ErrorCode::Unavailable, "too many streams of events at once")
                .hint("GET /v1/snapshot answers the same once")
        })
    }

    fn fresh(&self) -> Option<Arc<Shot>> {
        lock(&self.latest).clone().filter(|shot| Instant::now() < shot.fresh_until)
    }

    /// The later of two audits: of `other` and the last that a caller asked for.
    pub(crate) fn audited(&self, other: Option<LastAudit>) -> Option<LastAudit> {
        let asked = self.asked_audit();
        let asked = asked.map(|(audit, at)| LastAudit { findings: audit.findings.len() as u64, at });
        asked.into_iter().chain(other).max_by_key(|audit| audit.at)
    }
}

/// How long to wait after a look.
fn pause(every: Duration, took: Duration) -> Duration {
    every.max((took * SHARE).min(PAUSE_MAX))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The wall clock, only for people.
fn now() -> Timestamp {
    at(SystemTime::now())
}

/// A time of this process for people.
pub(crate) fn at(time: SystemTime) -> Timestamp {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_ms(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests;
