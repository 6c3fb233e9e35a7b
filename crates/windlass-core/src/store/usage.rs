//! What a store has counted in this process. Reading the numbers costs nothing.

use std::{
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
    time::Duration,
};

/// A reading of what a store was used for since it was opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tasks that were enqueued through it.
    pub enqueued: u64,
    /// Enqueues that found their key in use.
    pub existing: u64,
    /// Its connections, by purpose.
    pub pools: Vec<PoolUsage>,
}

/// A reading of the connections for one purpose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolUsage {
    /// The purpose.
    pub name: &'static str,
    /// How many there are at most.
    pub size: u32,
    /// How many are in use.
    pub busy: u32,
    /// How often a caller asked for one and got it.
    pub uses: u64,
    /// How long callers waited for one, in all.
    pub waited: Duration,
}

/// Counts enqueues.
#[derive(Debug, Default)]
pub struct EnqueueMeter {
    enqueued: AtomicU64,
    existing: AtomicU64,
}

impl EnqueueMeter {
    /// Counts the answers of a call.
    pub fn count<'a>(&self, answers: impl IntoIterator<Item = &'a crate::task::Enqueued>) {
        let (mut enqueued, mut existing) = (0, 0);
        for answer in answers {
            if answer.existing {
                existing += 1;
            } else {
                enqueued += 1;
            }
        }
        self.enqueued.fetch_add(enqueued, Ordering::Relaxed);
        self.existing.fetch_add(existing, Ordering::Relaxed);
    }

    /// New tasks, and keys that were in use.
    pub fn read(&self) -> (u64, u64) {
        (self.enqueued.load(Ordering::Relaxed), self.existing.load(Ordering::Relaxed))
    }
}

/// Counts the use of connections for one purpose.
#[derive(Debug)]
pub struct PoolMeter {
    name: &'static str,
    size: u32,
    busy: AtomicU32,
    uses: AtomicU64,
    waited_us: AtomicU64,
}

impl PoolMeter {
    /// A meter of `size` connections.
    pub fn new(name: &'static str, size: u32) -> Self {
        let (busy, uses, waited_us) = (AtomicU32::new(0), AtomicU64::new(0), AtomicU64::new(0));
        Self { name, size, busy, uses, waited_us }
    }

    /// Counts one connection as in use until the returned value is dropped.
    pub fn enter(&self) -> InUse<'_> {
        self.busy.fetch_add(1, Ordering::Relaxed);
        self.uses.fetch_add(1, Ordering::Relaxed);
        InUse(self)
    }

    /// Adds the time that a caller waited for a connection.
    pub fn waited(&self, waited: Duration) {
        self.waited_us.fetch_add(waited.as_micros() as u64, Ordering::Relaxed);
    }

    /// The counters now.
    pub fn read(&self) -> PoolUsage {
        PoolUsage {
            name: self.name,
            size: self.size,
            busy: self.busy.load(Ordering::Relaxed).min(self.size),
            uses: self.uses.load(Ordering::Relaxed),
            waited: Duration::from_micros(self.waited_us.load(Ordering::Relaxed)),
        }
    }
}

/// The use of one connection.
#[derive(Debug)]
pub struct InUse<'a>(&'a PoolMeter);

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The first ready task of each lane. Places rise with time: a task that became ready later has a higher one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadyLines {
    /// The place that was given out last.
    pub last: i64,
    /// For each lane that has ready tasks, the place of the next one.
    pub heads: Vec<(crate::id::LaneId, crate::name::Name, i64)>,
}
