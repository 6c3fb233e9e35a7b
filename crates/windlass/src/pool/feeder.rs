//! A pool as admission control sees it: slots, of which fewer may be allowed.

use std::sync::{Arc, Weak};

use super::shared::Shared;

/// A pool, if it still exists.
pub(crate) struct Feeder(Weak<Shared>);

/// How busy a feeder is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    /// Its slots.
    pub(crate) slots: u32,
    /// Slots in use.
    pub(crate) in_use: u32,
    /// Number of ended tasks.
    pub(crate) ended: u64,
}

impl Feeder {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        Self(Arc::downgrade(shared))
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.0.strong_count() == 0
    }

    /// How busy it is; `None` if it no longer exists.
    pub(crate) fn load(&self) -> Option<Load> {
        self.0.upgrade().map(|shared| shared.load())
    }

    /// Sets how many of its slots it may use.
    pub(crate) fn allow(&self, slots: u32) {
        if let Some(shared) = self.0.upgrade() {
            shared.allow(slots as usize);
        }
    }
}

impl Shared {
    fn load(&self) -> Load {
        let count = |slots: usize| u32::try_from(slots).unwrap_or(u32::MAX);
        Load {
            slots: count(self.slots.total()),
            in_use: count(self.slots.in_use()),
            ended: self.ended_count(),
        }
    }

    /// Changes how many slots may be taken. Running tasks continue; buffered tasks start if there is room
    /// now.
    pub(super) fn allow(self: &Arc<Self>, slots: usize) {
        let is_more = slots > self.slots.limit();
        self.slots.allow(slots);
        if is_more {
            self.call_for_queued();
        }
    }
}
