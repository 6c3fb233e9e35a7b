//! Waiting for the end of tasks. A settlement in this process wakes the caller at once. Ends that other
//! processes write are looked for at growing intervals.

use std::{collections::HashMap, sync::Arc, time::Duration};

use tokio::{sync::Notify, time::Instant};
use windlass_core::{Result, TaskId, TaskRecord};

use crate::{
    connection::{options::History, pool::closed, sync::Lock, values::ms},
    operate::inspect,
    shared::Shared,
    sql,
};

/// First pause between two looks.
const LOOK_MIN: Duration = Duration::from_millis(10);
/// The longest of these pauses.
const LOOK_MAX: Duration = Duration::from_millis(250);
/// How long the end of an awaited task is kept although history is off.
pub(crate) const KEPT_FOR: Duration = Duration::from_mins(10);

/// The tasks that callers in this process wait for.
#[derive(Debug, Default)]
pub(crate) struct Awaited {
    waiters: Lock<HashMap<TaskId, Vec<Arc<Notify>>>>,
}

impl Awaited {
    /// Wakes the callers that wait for one of these tasks.
    pub(crate) fn wake(&self, ended: impl Iterator<Item = TaskId>) {
        let waiters = self.waiters.lock();
        if waiters.is_empty() {
            return;
        }
        for wake in ended.filter_map(|id| waiters.get(&id)).flatten() {
            wake.notify_one();
        }
    }
}

/// The tasks that one caller waits for, until it is dropped.
struct Interest<'a> {
    awaited: &'a Awaited,
    ids: &'a [TaskId],
    wake: Arc<Notify>,
}

impl<'a> Interest<'a> {
    fn new(awaited: &'a Awaited, ids: &'a [TaskId]) -> Self {
        let wake = Arc::new(Notify::new());
        let mut waiters = awaited.waiters.lock();
        for id in ids {
            waiters.entry(*id).or_default().push(Arc::clone(&wake));
        }
        drop(waiters);
        Self { awaited, ids, wake }
    }
}

impl Drop for Interest<'_> {
    fn drop(&mut self) {
        let mut waiters = self.awaited.waiters.lock();
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

/// Waits until one of the tasks has ended or does not exist any more. Answers all such tasks.
pub(crate) async fn ended(
    shared: &Shared,
    ids: &[TaskId],
    wait: Duration,
) -> Result<Vec<(TaskId, Option<TaskRecord>)>> {
    // The interest is registered before the first look: an end between the two is not missed.
    let interest = Interest::new(&shared.awaited, ids);
    if shared.options.history == History::Off && !wait.is_zero() && !ids.is_empty() {
        let raw: Vec<i64> = ids.iter().map(|id| id.raw()).collect();
        let keep_for = ms(KEPT_FOR);
        shared.pool.query(&sql::AWAIT_TASKS, &[&raw, &keep_for]).await?;
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
