//! Slots taken in advance, for work that must start at once or not be fetched.

use std::{fmt, sync::Arc};

use super::{shared::Shared, task::Task};
use crate::pool::slots::Held;

/// Slots of a pool that no other caller can use. Dropping this returns the unused ones.
#[must_use = "dropping it gives the slots back"]
pub struct Reserved {
    shared: Arc<Shared>,
    held: Held,
}

impl Reserved {
    pub(super) fn new(shared: Arc<Shared>, held: Held) -> Self {
        Self { shared, held }
    }

    /// How many slots are left.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether none is left.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Starts a task with one of the slots, at once and never through the buffer. The slot is free again when
    /// the task has ended, even by a panic, which is logged and affects nothing else.
    ///
    /// Returns whether the task will run. It is dropped if no slot is left, or if the pool is past the drain
    /// of its stop.
    pub fn start(&mut self, task: impl Future<Output = ()> + Send + 'static) -> bool {
        self.shared.start(Box::pin(Task::new(task, None, None)), &mut self.held)
    }

    /// Returns up to `count` slots now.
    pub fn release(&mut self, count: usize) {
        let mut returned = self.shared.slots.none();
        self.held.hand_over(&mut returned, count);
        drop(Self { shared: Arc::clone(&self.shared), held: returned });
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if self.held.len() > 0 {
            self.held.release();
            // Tasks in the buffer may have waited for these slots.
            self.shared.slots_came_back();
        }
    }
}

impl fmt::Debug for Reserved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reserved").field("len", &self.len()).finish_non_exhaustive()
    }
}
