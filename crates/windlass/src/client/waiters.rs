//! Waits for the ends of tasks: any number of waiters share one query of the store.
//!
//! The first waiter starts a loop, and the loop ends with the last waiter. The loop asks the store for the
//! ends of all awaited tasks in one call that lasts up to an interval; a new waiter ends the call early, so
//! that its own task is part of the next one.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Notify, oneshot},
    task::JoinSet,
    time::{Instant, sleep_until},
};
use windlass_core::{Error, Result, TaskId, TaskRecord, store::SharedStore};

use crate::client::not_found;

/// How long one query lasts when no task ends: the most that a lost notification costs.
pub const WAIT_INTERVAL: Duration = Duration::from_secs(1);
/// Distance of queries per awaited task. So a thousand waiters that come and go one by one cost a hundred
/// thousand look-ups a second and not the square of their number. One waiter is not delayed.
const GAP_PER_TASK: Duration = Duration::from_micros(10);
/// Longest such distance, however many wait.
const GAP_MAX: Duration = Duration::from_millis(50);

/// Most tasks in one query: stores bound what one call may cost. More tasks are split over several queries at
/// once.
const LOOK_MAX: usize = 10_000;

/// The callers that wait for tasks of one store. Cheap to clone; clones share the loop.
#[derive(Clone)]
pub struct Waiters {
    room: Arc<Room>,
}

struct Room {
    store: SharedStore,
    interval: Duration,
    book: Mutex<Book>,
}

type Answer = Result<Option<TaskRecord>>;

#[derive(Default)]
struct Book {
    awaited: HashMap<TaskId, Vec<oneshot::Sender<Answer>>>,
    /// Present while a loop runs: tells it about a new waiter, or that the last one is gone.
    changed: Option<Arc<Notify>>,
}

impl Waiters {
    /// No waiter yet; without waiters the store is not queried.
    pub fn new(store: SharedStore) -> Self {
        Self::with_interval(store, WAIT_INTERVAL)
    }

    /// The same with another length of a query.
    pub fn with_interval(store: SharedStore, interval: Duration) -> Self {
        Self { room: Arc::new(Room { store, interval, book: Mutex::default() }) }
    }

    /// Waits until the task has ended. Cancel safe. Needs a tokio runtime with timers.
    ///
    /// # Errors
    /// [`windlass_core::Error::NotFound`] if the task does not exist (any more), or the error of the store.
    pub async fn ended(&self, id: TaskId) -> Result<TaskRecord> {
        loop {
            let mut place = Place { room: &self.room, id, answer: self.room.enter(id) };
            // A closed channel means that the loop's runtime is gone: start another loop on this one.
            if let Ok(answer) = (&mut place.answer).await {
                return answer?.ok_or_else(|| not_found(id));
            }
        }
    }

    /// How many calls of [`Waiters::ended`] are waiting now.
    pub fn count(&self) -> usize {
        self.room.lock().awaited.values().map(Vec::len).sum()
    }
}

impl fmt::Debug for Waiters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiters").field("count", &self.count()).finish_non_exhaustive()
    }
}

/// One waiter's entry in the book; dropping it removes the entry.
struct Place<'a> {
    room: &'a Room,
    id: TaskId,
    answer: oneshot::Receiver<Answer>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.answer.close();
        self.room.leave(self.id);
    }
}

impl Room {
    fn lock(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(self: &Arc<Self>, id: TaskId) -> oneshot::Receiver<Answer> {
        let (sender, receiver) = oneshot::channel();
        let mut book = self.lock();
        book.awaited.entry(id).or_default().push(sender);
        if let Some(changed) = &book.changed {
            changed.notify_one();
        } else {
            let changed = Arc::new(Notify::new());
            book.changed = Some(changed.clone());
            // The handle of this task is not kept: the loop ends with the last waiter and holds no other
            // state.
            tokio::spawn(Looking { room: self.clone(), changed }.run());
        }
        receiver
    }

    fn leave(&self, id: TaskId) {
        let mut book = self.lock();
        if let Some(waiting) = book.awaited.get_mut(&id) {
            waiting.retain(|sender| !sender.is_closed());
            if waiting.is_empty() {
                book.awaited.remove(&id);
            }
        }
        if book.awaited.is_empty()
            && let Some(changed) = &book.changed
        {
            changed.notify_one();
        }
    }

    /// The first ends among these tasks, within an interval.
    async fn look(&self, ids: &[TaskId]) -> Result<Vec<(TaskId, Option<TaskRecord>)>> {
        if ids.len() <= LOOK_MAX {
            return self.store.ended(ids, self.interval).await;
        }
        let mut looks = JoinSet::new();
        for part in ids.chunks(LOOK_MAX) {
            let (store, part, interval) = (self.store.clone(), part.to_vec(), self.interval);
            looks.spawn(async move { store.ended(&part, interval).await });
        }
        while let Some(look) = looks.join_next().await {
            match look {
                Ok(Ok(ended)) if ended.is_empty() => {}
                Ok(looked) => return looked,
                Err(error) => {
                    return Err(Error::Unavailable(format!("a look at the store was lost: {error}")));
                }
            }
        }
        Ok(Vec::new())
    }

    fn answer(&self, ended: Vec<(TaskId, Option<TaskRecord>)>) {
        for (id, task) in ended {
            let waiting = self.lock().awaited.remove(&id).unwrap_or_default();
            for sender in waiting {
                // The waiter may have gone; then it needs no answer.
                let _ = sender.send(Ok(task.clone()));
            }
        }
    }

    fn fail(&self, error: &Error) {
        let awaited = std::mem::take(&mut self.lock().awaited);
        for sender in awaited.into_values().flatten() {
            let _ = sender.send(Err(error.clone()));
        }
    }
}

/// The running loop's access to the room.
struct Looking {
    room: Arc<Room>,
    changed: Arc<Notify>,
}

impl Looking {
    async fn run(self) {
        let room = &self.room;
        while let Some(ids) = self.awaited() {
            let started = Instant::now();
            let gap = (GAP_PER_TASK * u32::try_from(ids.len()).unwrap_or(u32::MAX)).min(GAP_MAX);
            let changed = async {
                self.changed.notified().await;
                sleep_until(started + gap).await;
            };
            tokio::pin!(changed);
            tokio::select! {
                looked = room.look(&ids) => match looked {
                    // A store that returns early without an end must not be queried in a busy loop.
                    Ok(ended) if ended.is_empty() => tokio::select! {
                        () = &mut changed => {}
                        () = sleep_until(started + room.interval) => {}
                    },
                    Ok(ended) => {
                        room.answer(ended);
                        sleep_until(started + gap).await;
                    }
                    Err(error) => room.fail(&error),
                },
                () = &mut changed => {}
            }
        }
    }

    /// The awaited tasks; `None` ends the loop, if there are none.
    fn awaited(&self) -> Option<Vec<TaskId>> {
        let mut book = self.room.lock();
        if book.awaited.is_empty() {
            book.changed = None;
            return None;
        }
        Some(book.awaited.keys().copied().collect())
    }
}

impl Drop for Looking {
    fn drop(&mut self) {
        let mut book = self.room.lock();
        // The entry is still this loop's: it did not end, its runtime was dropped. Its waiters start another.
        if book.changed.as_ref().is_some_and(|changed| Arc::ptr_eq(changed, &self.changed)) {
            book.changed = None;
            book.awaited.clear();
        }
    }
}
