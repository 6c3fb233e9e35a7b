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
    /// Lets a task in as soon as there is room, or gives it back at the deadline.
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
        // Short tasks make room while we stand aside once, without a timer or a notification.
        yield_now().await;
        let _waiting = Waiting::new(self);
        let mut task = task;
        loop {
            // Before the look: a close in between tells only those who listen already.
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

/// A caller that waits, counted: without one, nobody is told of room.
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
        // One place that comes free tells one caller, and more may have come free since.
        if others_wait {
            self.0.room_freed.notify_one();
        }
    }
}
