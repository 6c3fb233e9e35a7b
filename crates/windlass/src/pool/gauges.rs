//! The state and the counters of a pool.

/// A snapshot of a pool, taken at one moment.
///
/// Until the pool is stopped, `accepted = completed + panicked + deadline_exceeded + aborted + running +
/// starting + buffered`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Gauges {
    /// Slots: how many tasks run at once at most.
    pub size: usize,
    /// Slots that a running task holds.
    pub running: usize,
    /// Slots with a task that no consumer has taken yet.
    pub starting: usize,
    /// Slots that are reserved and have no task yet.
    pub reserved: usize,
    /// Slots that are free.
    pub idle: usize,
    /// Places of the buffer.
    pub buffer: usize,
    /// Tasks in the buffer: accepted, without a slot.
    pub buffered: usize,
    /// Consumers that exist, busy or parked; they appear with the load.
    pub consumers: usize,
    /// Tasks accepted since the pool was built.
    pub accepted: u64,
    /// Tasks given back because the buffer was full.
    pub rejected: u64,
    /// Tasks that ended with a result.
    pub completed: u64,
    /// Tasks that panicked.
    pub panicked: u64,
    /// Tasks that were ended at their deadline.
    pub deadline_exceeded: u64,
    /// Tasks that were aborted, or dropped unstarted, when the pool was stopped or dropped.
    pub aborted: u64,
}
