//! The counter of slots: a fixed total; callers take slots first come, first served, and each slot is
//! returned exactly once. A limit may allow fewer than all; slots taken before stay taken.
//!
//! A taken slot is always inside a [`Held`], and leaves it in one of three ways: moved to another `Held`,
//! released, or dropped with it (even by a panic). No call returns a slot that is not held (SLOT-BALANCED).
//!
//! A caller that waits for a slot must follow this order, and then misses none: *acknowledge, try, wait for
//! the hook, again*. The first release after an acknowledgement calls the hook; releases in between cost one
//! load.

use super::sync::{Arc, AtomicBool, AtomicUsize, Ordering};

/// All orderings here are sequentially consistent. "Release, then check whether the hook was called" and
/// "acknowledge, then look for a slot" access two variables in opposite order; with a weaker order both sides
/// could miss each other.
const ORDER: Ordering = Ordering::SeqCst;

/// The shared counter. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Slots {
    counter: Arc<Counter>,
}

struct Counter {
    total: AtomicUsize,
    /// How many may be taken; at most `total`.
    limit: AtomicUsize,
    in_use: AtomicUsize,
    /// Whether the hook was called since the last acknowledgement.
    told: AtomicBool,
    on_freed: Box<dyn Fn() + Send + Sync>,
}

impl Slots {
    /// A counter of `total` slots. `on_freed` is called by the first release after each acknowledgement.
    pub(crate) fn new(total: usize, on_freed: impl Fn() + Send + Sync + 'static) -> Self {
        let counter = Counter {
            total: AtomicUsize::new(total),
            limit: AtomicUsize::new(total),
            in_use: AtomicUsize::new(0),
            told: AtomicBool::new(false),
            on_freed: Box::new(on_freed),
        };
        Self { counter: Arc::new(counter) }
    }

    /// Takes up to `wanted` slots of those that are free.
    pub(crate) fn reserve(&self, wanted: usize) -> Held {
        Held { count: self.counter.take(wanted), slots: self.clone() }
    }

    /// An empty holder, to move slots into.
    pub(crate) fn none(&self) -> Held {
        Held { count: 0, slots: self.clone() }
    }

    /// How many slots there are.
    pub(crate) fn total(&self) -> usize {
        self.counter.total.load(ORDER)
    }

    /// How many of them may be taken.
    pub(crate) fn limit(&self) -> usize {
        self.counter.limit.load(ORDER)
    }

    /// How many may be taken now.
    pub(crate) fn free(&self) -> usize {
        self.limit().saturating_sub(self.in_use())
    }

    /// Changes how many slots there are. The limit stays as it is; the caller sets it next.
    pub(crate) fn resize(&self, total: usize) {
        self.counter.total.store(total, ORDER);
    }

    /// Changes how many may be taken. If that is more than before, the hook is called for waiting callers.
    pub(crate) fn allow(&self, limit: usize) {
        let before = self.counter.limit.swap(limit, ORDER);
        if limit > before {
            self.counter.tell();
        }
    }

    /// How many are taken.
    pub(crate) fn in_use(&self) -> usize {
        self.counter.in_use.load(ORDER)
    }

    /// The caller looks for a slot after this call: the next release calls the hook again.
    pub(crate) fn acknowledge(&self) {
        self.counter.told.store(false, ORDER);
    }
}

impl Counter {
    fn take(&self, wanted: usize) -> usize {
        let mut in_use = self.in_use.load(ORDER);
        loop {
            let granted = wanted.min(self.limit.load(ORDER).saturating_sub(in_use));
            if granted == 0 {
                return 0;
            }
            match self.in_use.compare_exchange_weak(in_use, in_use + granted, ORDER, ORDER) {
                Ok(_) => return granted,
                Err(now) => in_use = now,
            }
        }
    }

    fn give_back(&self, count: usize) {
        self.in_use.fetch_sub(count, ORDER);
        self.tell();
    }

    fn tell(&self) {
        if !self.told.load(ORDER) && !self.told.swap(true, ORDER) {
            (self.on_freed)();
        }
    }
}

/// Slots that belong to the owner of this value. Dropping it returns them.
#[must_use = "dropping it gives the slots back"]
pub(crate) struct Held {
    count: usize,
    slots: Slots,
}

impl Held {
    /// How many slots are held.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Takes up to `wanted` more and returns how many it got.
    pub(crate) fn reserve_more(&mut self, wanted: usize) -> usize {
        let granted = self.slots.counter.take(wanted);
        self.count += granted;
        granted
    }

    /// Moves up to `count` slots to another holder of the same counter and returns how many.
    pub(crate) fn hand_over(&mut self, to: &mut Self, count: usize) -> usize {
        debug_assert!(Arc::ptr_eq(&self.slots.counter, &to.slots.counter), "slots move within one counter");
        let moved = count.min(self.count);
        self.count -= moved;
        to.count += moved;
        moved
    }

    /// Returns all held slots if more are in use than the limit allows.
    pub(crate) fn release_excess(&mut self) {
        if self.count > 0 && self.slots.in_use() > self.slots.limit() {
            self.release();
        }
    }

    /// Returns all held slots.
    pub(crate) fn release(&mut self) {
        // Set zero first: if the hook panics, the following drop must not return the slots again.
        let count = std::mem::take(&mut self.count);
        if count > 0 {
            self.slots.counter.give_back(count);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.release();
    }
}
