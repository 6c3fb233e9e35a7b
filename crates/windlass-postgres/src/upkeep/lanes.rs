//! A copy of the store's lanes in memory. A lane is never removed, so the copy never becomes wrong, only
//! incomplete.

use std::{
    collections::HashMap,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use windlass_core::{Error, Lane, LaneId, Name, NewTask, Result};

use crate::{connection::pool::Session, sql};

/// Most lanes of a store: pairs of queue and kind.
const LANES_MAX: usize = 10_000;
/// How long the lanes are taken to be complete without a sign of a new one.
const FRESH_FOR: Duration = Duration::from_mins(1);

/// The lanes that this process has read.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    known: RwLock<Known>,
    /// A lane was seen that this process has not read.
    is_stale: AtomicBool,
}

#[derive(Debug, Default)]
struct Known {
    by_id: HashMap<i32, Arc<Lane>>,
    by_name: HashMap<Name, HashMap<Name, i32>>,
    loaded_at: Option<Instant>,
}

impl Lanes {
    /// Whether all `n` lanes of the store have been read.
    pub(crate) fn are_complete(&self, n: usize) -> bool {
        let known = self.read();
        known.loaded_at.is_some() && known.by_id.len() >= n
    }

    /// Whether the lanes were ever read.
    pub(crate) fn are_loaded(&self) -> bool {
        self.read().loaded_at.is_some()
    }

    /// The next look must read them again.
    pub(crate) fn mark_stale(&self) {
        self.is_stale.store(true, Ordering::Release);
    }

    /// Whether the lanes should be read again although no new one was seen.
    pub(crate) fn are_stale(&self) -> bool {
        let is_old = self.read().loaded_at.is_none_or(|at| at.elapsed() > FRESH_FOR);
        is_old || self.is_stale.load(Ordering::Acquire)
    }

    /// Every lane, oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<Lane>> {
        let mut lanes: Vec<_> = self.read().by_id.values().cloned().collect();
        lanes.sort_unstable_by_key(|lane| lane.id);
        lanes
    }

    pub(crate) fn get(&self, id: i32) -> Option<Arc<Lane>> {
        self.read().by_id.get(&id).cloned()
    }

    pub(crate) fn id(&self, queue: &Name, kind: &Name) -> Option<i32> {
        self.read().by_name.get(queue)?.get(kind).copied()
    }

    /// The lanes that a worker with these kinds and queues (empty: all) would serve, oldest first.
    pub(crate) fn served(&self, kinds: &[Name], queues: &[Name]) -> Vec<Arc<Lane>> {
        let known = self.read();
        let mut lanes: Vec<_> = known
            .by_id
            .values()
            .filter(|lane| kinds.contains(&lane.kind) && (queues.is_empty() || queues.contains(&lane.queue)))
            .cloned()
            .collect();
        lanes.sort_unstable_by_key(|lane| lane.id);
        lanes
    }

    /// Reads all lanes.
    pub(crate) async fn load(&self, session: &mut Session<'_>) -> Result<()> {
        self.is_stale.store(false, Ordering::Release);
        let rows = session.query(&sql::LANES, &[]).await?;
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        for row in rows {
            let id: i32 = row.get(0);
            // One bad row must not hide the other lanes.
            let (Ok(queue), Ok(kind)) =
                (Name::stored("queue", row.get::<_, &str>(1)), Name::stored("kind", row.get::<_, &str>(2)))
            else {
                tracing::warn!(lane = id, "a lane with a name that is not allowed is left out");
                continue;
            };
            known.by_name.entry(queue.clone()).or_default().insert(kind.clone(), id);
            known.by_id.insert(id, Arc::new(Lane { id: LaneId(i64::from(id)), queue, kind }));
        }
        known.loaded_at = Some(Instant::now());
        Ok(())
    }

    /// The lane of every task, if all of them have been read.
    pub(crate) fn of_tasks(&self, tasks: &[NewTask]) -> Option<Vec<i32>> {
        let known = self.read();
        tasks.iter().map(|task| known.by_name.get(&task.queue)?.get(&task.kind).copied()).collect()
    }

    /// Makes the lanes of these pairs that are missing; answers whether there were any.
    pub(crate) async fn make(&self, session: &mut Session<'_>, pairs: &[(&Name, &Name)]) -> Result<bool> {
        let mut missing: Vec<_> =
            pairs.iter().copied().filter(|(queue, kind)| self.id(queue, kind).is_none()).collect();
        missing.sort_unstable();
        missing.dedup();
        if missing.is_empty() {
            return Ok(false);
        }
        if self.read().by_id.len() + missing.len() > LANES_MAX {
            return Err(Error::invalid(format!(
                "a store has at most {LANES_MAX} pairs of queue and kind; use fewer queue names"
            )));
        }
        let queues: Vec<&str> = missing.iter().map(|(queue, _)| queue.as_str()).collect();
        let kinds: Vec<&str> = missing.iter().map(|(_, kind)| kind.as_str()).collect();
        let made = session.query(&sql::INSERT_LANES, &[&queues, &kinds]).await?;
        self.load(session).await?;
        Ok(!made.is_empty())
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }
}
