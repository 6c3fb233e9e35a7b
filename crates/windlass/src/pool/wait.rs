//! Waiting for room in the buffer.

use std::{sync::Arc, time::Duration};

use tokio::{
    task::yield_now,
    time::{Instant, timeout_at},
};

use super::{
    shared::{Refusal, Shared},
    task::Task,
};

impl Shared {
    /// Accepts a task as soon as there is room, or returns it at the deadline.
    pub(super) async fn admit_within<F>(
        self: &Arc<Self>,
        task: Box<Task<F>>,
        deadline: Duration,
    ) -> Result<(), (Box<Task<F>>, Refusal)>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        let by = Instant::now().checked_add(deadline);
        // Short tasks make room while this yields once; that needs no timer and no notification.
        yield_now().await;
        let _waiting = Waiting::new(self);
        let mut task = task;
        loop {
            // Subscribe before the check: a close in between notifies only existing subscribers.
            let freed = self.room_freed.notified();
            task = match self.admit(task) {
                Err((task, Refusal::Full)) => task,
                decided => return decided,
            };
            match by {
                Some(by) => {
                    if timeout_at(by, freed).await.is_err() {
                        return Err((task, Refusal::Full));
                    }
                }
                None => freed.await,
            }
        }
    }
}

/// A caller that waits. It is counted, so that without waiters no notification is sent.
struct Waiting<'a>(&'a Shared);

impl<'a> Waiting<'a> {
    fn new(shared: &'a Shared) -> Self {
        shared.lock().waiting += 1;
        Self(shared)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.waiting -= 1;
        let others_wait = state.waiting > 0;
        drop(state);
        // One freed place wakes one caller, and more places may have become free since.
        if others_wait {
            self.0.room_freed.notify_one();
        }
    }
}
