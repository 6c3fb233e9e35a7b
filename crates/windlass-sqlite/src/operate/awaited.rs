//! Who waits for the end of which task: the writer wakes nobody unless somebody does.

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

/// The tasks that somebody waits for.
#[derive(Debug, Default)]
pub(crate) struct Awaited {
    waiters: Mutex<IdMap<TaskId, Vec<Arc<Notify>>>>,
    /// How many tasks are waited for, readable without the lock.
    tasks: AtomicUsize,
    /// Tasks that somebody waited for a moment ago: whoever waits looks again and again, and between two looks the end of
    /// a task must not be forgotten.
    recent: Mutex<IdMap<TaskId, Instant>>,
}

/// How long a task counts as awaited after the last look.
const RECENT_AGE: Duration = Duration::from_mins(1);
/// Most tasks that count as awaited without somebody who waits.
const RECENT_MAX: usize = 100_000;

impl Awaited {
    /// Registers interest until the guard is dropped.
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

    /// Whether somebody waits for a task.
    pub(crate) fn contains(&self, id: TaskId) -> bool {
        (self.tasks.load(Ordering::Acquire) > 0 && self.lock().contains_key(&id))
            || self.recent().get(&id).is_some_and(|at| at.elapsed() < RECENT_AGE)
    }

    fn recent(&self) -> MutexGuard<'_, IdMap<TaskId, Instant>> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody stops waiting, perhaps only until the next look.
    fn remember(&self, ids: &[TaskId]) {
        let (mut recent, now) = (self.recent(), Instant::now());
        if recent.len() + ids.len() > RECENT_MAX {
            recent.retain(|_, at| at.elapsed() < RECENT_AGE);
        }
        let room = RECENT_MAX.saturating_sub(recent.len());
        recent.extend(ids.iter().take(room).map(|id| (*id, now)));
    }

    /// Wakes those who wait for one of these tasks.
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

/// One caller's interest in some tasks.
#[derive(Debug)]
pub(crate) struct Interest {
    awaited: Arc<Awaited>,
    ids: Vec<TaskId>,
    wake: Arc<Notify>,
}

impl Interest {
    /// Waits until one of the tasks ended after the registration. A wake-up is not lost in between.
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
