//! Waiting for the end of tasks: whoever settles in this process wakes at once, the ends that others write are looked for in
//! growing intervals.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};
use windlass_core::{Result, TaskId, TaskRecord};

use crate::{
    connection::{options::History, pool::closed},
    operate::inspect,
    shared::Shared,
    sql,
};

/// First pause between two looks.
const LOOK_MIN: Duration = Duration::from_millis(10);
/// Longest one.
const LOOK_MAX: Duration = Duration::from_millis(250);
/// How long the end of a task that was waited for is kept although history is off.
pub(crate) const KEPT_FOR: Duration = Duration::from_mins(10);

/// The tasks that somebody in this process waits for.
#[derive(Debug, Default)]
pub(crate) struct Awaited {
    waiters: Mutex<HashMap<TaskId, Vec<Arc<Notify>>>>,
}

impl Awaited {
    fn lock(&self) -> MutexGuard<'_, HashMap<TaskId, Vec<Arc<Notify>>>> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes those who wait for one of these tasks.
    pub(crate) fn wake(&self, ended: impl Iterator<Item = TaskId>) {
        let waiters = self.lock();
        if waiters.is_empty() {
            return;
        }
        for wake in ended.filter_map(|id| waiters.get(&id)).flatten() {
            wake.notify_one();
        }
    }
}

/// One caller's interest, until it is dropped.
struct Interest<'a> {
    awaited: &'a Awaited,
    ids: &'a [TaskId],
    wake: Arc<Notify>,
}

impl<'a> Interest<'a> {
    fn new(awaited: &'a Awaited, ids: &'a [TaskId]) -> Self {
        let wake = Arc::new(Notify::new());
        let mut waiters = awaited.lock();
        for id in ids {
            waiters.entry(*id).or_default().push(Arc::clone(&wake));
        }
        drop(waiters);
        Self { awaited, ids, wake }
    }
}

impl Drop for Interest<'_> {
    fn drop(&mut self) {
        let mut waiters = self.awaited.lock();
        for id in self.ids {
            if let Some(wakes) = waiters.get_mut(id) {
                wakes.retain(|wake| !Arc::ptr_eq(wake, &self.wake));
                if wakes.is_empty() {
                    waiters.remove(id);
                }
            }
        }
    }
}

/// Those of the tasks that have ended, or do not exist any more; waits for the first.
pub(crate) async fn ended(
    shared: &Shared,
    ids: &[TaskId],
    wait: Duration,
) -> Result<Vec<(TaskId, Option<TaskRecord>)>> {
    // Interest comes before the first look: an end between the two is not missed.
    let interest = Interest::new(&shared.awaited, ids);
    if shared.options.history == History::Off && !wait.is_zero() && !ids.is_empty() {
        let raw: Vec<i64> = ids.iter().map(|id| id.raw()).collect();
        let keep_for = KEPT_FOR.as_millis() as i64;
        shared.pool.session().await?.query(&sql::AWAIT_TASKS, &[&raw, &keep_for]).await?;
    }
    let deadline = Instant::now().checked_add(wait);
    let mut closing = shared.closing.subscribe();
    let mut pause = LOOK_MIN;
    loop {
        let ended = inspect::ended(shared, ids).await?;
        let is_over = deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if !ended.is_empty() || ids.is_empty() || is_over {
            return Ok(ended);
        }
        let until = deadline.map_or(Instant::now() + pause, |deadline| deadline.min(Instant::now() + pause));
        tokio::select! {
            () = interest.wake.notified() => {}
            () = tokio::time::sleep_until(until) => pause = (pause * 3 / 2).min(LOOK_MAX),
            _ = closing.wait_for(|closing| *closing) => return Err(closed()),
        }
    }
}
