//! Who waits for the end of which task: the writer wakes nobody unless somebody does.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use tokio::sync::Notify;
use windlass_core::TaskId;

use crate::id_map::IdMap;

/// The tasks that somebody waits for.
#[derive(Debug, Default)]
pub(crate) struct Awaited {
    waiters: Mutex<IdMap<TaskId, Vec<Arc<Notify>>>>,
    /// How many tasks are waited for, readable without the lock.
    tasks: AtomicUsize,
}

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
        self.tasks.load(Ordering::Acquire) > 0 && self.lock().contains_key(&id)
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
