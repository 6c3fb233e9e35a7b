//! A copy of the store's lanes in memory. A lane keeps its number for ever, so the copy names every lane
//! that it has seen. Which lanes are in use may have changed since it was read: a lane may be new, retired or
//! back.

use std::{
    collections::HashMap,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use windlass_core::{Error, Lane, LaneId, Name, NewTask, Result, Rules, lanes::LaneCounts};

use crate::{connection::pool::Session, sql};

/// How long the lanes are taken to be complete without a sign of a new one.
const FRESH_FOR: Duration = Duration::from_mins(1);

/// What tells one set of lanes in use from another one, almost surely.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LanesInUse {
    pub n: usize,
    /// Of their numbers: the count alone stays the same when one lane is retired and another one is made.
    pub sum: i64,
}

/// The lanes that this process has read.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    known: RwLock<Known>,
    /// Reads of the lanes that have begun.
    loads: AtomicU64,
    /// A lane was seen that this process has not read.
    is_stale: AtomicBool,
}

#[derive(Debug, Default)]
struct Known {
    /// Every lane that was ever read: a claim may bring a task of a lane that has been retired since.
    by_id: HashMap<i32, Arc<Lane>>,
    /// Lanes in use.
    by_name: HashMap<Name, HashMap<Name, i32>>,
    /// The same, oldest first.
    in_use: Vec<Arc<Lane>>,
    /// Also those whose names cannot be read.
    rows: LanesInUse,
    /// The read that this is of.
    load: u64,
    loaded_at: Option<Instant>,
}

impl Lanes {
    /// Whether the lanes that the store has in use are those that are known here.
    pub(crate) fn are_complete(&self, in_use: LanesInUse) -> bool {
        let known = self.read();
        known.loaded_at.is_some() && known.rows == in_use
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

    /// Every lane in use, oldest first.
    pub(crate) fn in_use(&self) -> Vec<Arc<Lane>> {
        self.read().in_use.clone()
    }

    pub(crate) fn get(&self, id: i32) -> Option<Arc<Lane>> {
        self.read().by_id.get(&id).cloned()
    }

    pub(crate) fn id(&self, queue: &Name, kind: &Name) -> Option<i32> {
        self.read().by_name.get(queue)?.get(kind).copied()
    }

    /// The lanes that a worker with these kinds and queues (empty: all) would serve, oldest first.
    pub(crate) fn served(&self, kinds: &[Name], queues: &[Name]) -> Vec<Arc<Lane>> {
        let is_served = |lane: &&Arc<Lane>| {
            kinds.contains(&lane.kind) && (queues.is_empty() || queues.contains(&lane.queue))
        };
        self.read().in_use.iter().filter(is_served).cloned().collect()
    }

    /// Reads all lanes in use.
    pub(crate) async fn load(&self, session: &mut Session<'_>) -> Result<()> {
        self.is_stale.store(false, Ordering::Release);
        let load = self.loads.fetch_add(1, Ordering::AcqRel) + 1;
        let rows = session.query(&sql::LANES, &[]).await?;
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if load < known.load {
            // A read that began later was faster: it saw all that this one saw, and more.
            return Ok(());
        }
        known.by_name.clear();
        known.in_use.clear();
        known.rows = LanesInUse { n: rows.len(), sum: 0 };
        for row in rows {
            let id: i32 = row.get(0);
            known.rows.sum += i64::from(id);
            // One bad row must not hide the other lanes.
            let (Ok(queue), Ok(kind)) =
                (Name::stored("queue", row.get::<_, &str>(1)), Name::stored("kind", row.get::<_, &str>(2)))
            else {
                tracing::warn!(lane = id, "a lane with a name that is not allowed is left out");
                continue;
            };
            known.by_name.entry(queue.clone()).or_default().insert(kind.clone(), id);
            let lane = Arc::new(Lane { id: LaneId(i64::from(id)), queue, kind });
            known.by_id.insert(id, Arc::clone(&lane));
            known.in_use.push(lane);
        }
        known.load = load;
        known.loaded_at = Some(Instant::now());
        Ok(())
    }

    /// The lane of every task, if all of them have been read.
    pub(crate) fn of_tasks(&self, tasks: &[NewTask]) -> Option<Vec<i32>> {
        let known = self.read();
        tasks.iter().map(|task| known.by_name.get(&task.queue)?.get(&task.kind).copied()).collect()
    }

    /// Makes the lanes of these pairs that are missing, and brings back those that are retired; answers
    /// whether any are new.
    pub(crate) async fn make(
        &self,
        session: &mut Session<'_>,
        pairs: &[(&Name, &Name)],
        rules: &Rules,
    ) -> Result<bool> {
        let mut missing: Vec<_> =
            pairs.iter().copied().filter(|(queue, kind)| self.id(queue, kind).is_none()).collect();
        missing.sort_unstable();
        missing.dedup();
        if missing.is_empty() {
            return Ok(false);
        }
        let queues: Vec<&str> = missing.iter().map(|(queue, _)| queue.as_str()).collect();
        let kinds: Vec<&str> = missing.iter().map(|(_, kind)| kind.as_str()).collect();
        let found = session.row(&sql::FIND_LANES, &[&queues, &kinds]).await?;
        let found = found.ok_or_else(|| Error::Unavailable("the lanes were not counted".to_owned()))?;
        let counts =
            LaneCounts { in_use: found.get::<_, i64>(0) as usize, ever: found.get::<_, i64>(1) as usize };
        let known: Vec<i32> = found.get(2);
        counts.check(rules, missing.len().saturating_sub(known.len()))?;
        let mut made = Vec::new();
        if !known.is_empty() {
            session.query(&sql::WAKE_LANES, &[&known]).await?;
        }
        if known.len() < missing.len() {
            made = session.query(&sql::INSERT_LANES, &[&queues, &kinds]).await?;
        }
        self.load(session).await?;
        Ok(!made.is_empty())
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }
}
