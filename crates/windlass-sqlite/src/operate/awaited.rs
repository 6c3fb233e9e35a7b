//! Which callers wait for the end of which task. The writer wakes only those callers.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::Notify;
use windlass_core::TaskId;

use crate::memory::id_map::IdMap;

/// The tasks that callers wait for.
#[derive(Debug, Default)]
pub(crate) struct Awaited {
    waiters: Mutex<IdMap<TaskId, Vec<Arc<Notify>>>>,
    /// The number of awaited tasks, readable without the lock.
    tasks: AtomicUsize,
    /// Tasks that a caller awaited a moment ago. Callers poll again and again, and the end of a task between
    /// two polls must not be lost.
    recent: Mutex<IdMap<TaskId, Instant>>,
}

/// How long a task counts as awaited after the last poll.
const RECENT_AGE: Duration = Duration::from_mins(1);
/// Most tasks that count as awaited without a waiting caller.
const RECENT_MAX: usize = 100_000;

impl Awaited {
    /// Registers a caller that waits for these tasks, until it drops the guard.
    pub(crate) fn wait_for(self: &Arc<Self>, ids: &[TaskId]) -> Interest {
        let wake = Arc::new(Notify::new());
        let mut waiters = self.lock();
        for id in ids {
            waiters.entry(*id).or_default().push(Arc::clone(&wake));
        }
        self.tasks.store(waiters.len(), Ordering::Release);
        drop(waiters);
        Interest { awaited: Arc::clone(self), ids: ids.to_vec(), wake }
    }

    /// Whether a caller waits for a task, or did a moment ago.
    pub(crate) fn contains(&self, id: TaskId) -> bool {
        (self.tasks.load(Ordering::Acquire) > 0 && self.lock().contains_key(&id))
            || self.recent().get(&id).is_some_and(|at| at.elapsed() < RECENT_AGE)
    }

    fn recent(&self) -> MutexGuard<'_, IdMap<TaskId, Instant>> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A caller stops waiting, perhaps only until its next poll.
    fn remember(&self, ids: &[TaskId]) {
        let (mut recent, now) = (self.recent(), Instant::now());
        if recent.len() + ids.len() > RECENT_MAX {
            recent.retain(|_, at| at.elapsed() < RECENT_AGE);
        }
        let room = RECENT_MAX.saturating_sub(recent.len());
        recent.extend(ids.iter().take(room).map(|id| (*id, now)));
    }

    /// Wakes the callers that wait for one of these tasks.
    pub(crate) fn wake(&self, ended: &[TaskId]) {
        if ended.is_empty() || self.tasks.load(Ordering::Acquire) == 0 {
            return;
        }
        let waiters = self.lock();
        for wake in ended.iter().filter_map(|id| waiters.get(id)).flatten() {
            wake.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, IdMap<TaskId, Vec<Arc<Notify>>>> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One caller that waits for some tasks.
#[derive(Debug)]
pub(crate) struct Interest {
    awaited: Arc<Awaited>,
    ids: Vec<TaskId>,
    wake: Arc<Notify>,
}

impl Interest {
    /// Waits until one of the tasks has ended since the registration. No wake-up is lost in between.
    pub(crate) async fn woken(&self) {
        self.wake.notified().await;
    }
}

impl Drop for Interest {
    fn drop(&mut self) {
        self.awaited.remember(&self.ids);
        let mut waiters = self.awaited.lock();
        for id in &self.ids {
            if let Some(wakes) = waiters.get_mut(id) {
                wakes.retain(|wake| !Arc::ptr_eq(wake, &self.wake));
                if wakes.is_empty() {
                    waiters.remove(id);
                }
            }
        }
        self.awaited.tasks.store(waiters.len(), Ordering::Release);
    }
}
