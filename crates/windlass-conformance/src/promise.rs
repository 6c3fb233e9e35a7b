//! The promises of a store, by the names that tests, docs and code comments use.

use std::fmt;

/// A promise that a store keeps, alone or as its part of a larger one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Promise {
    /// A task whose enqueue returned OK exists until retention removes it.
    EnqDurable,
    /// The same (queue, key) gives one task and the same id.
    EnqIdempotent,
    /// A batch is all or nothing.
    BatchAtomic,
    /// At most one live lease per task; each claim raises its number by one; it is never lowered.
    OneLease,
    /// Only the current (task, lease, worker) writes.
    Fenced,
    /// A task reaches exactly one terminal state, once.
    OneTerminal,
    /// After its settlement got OK a task never runs again.
    DoneDurable,
    /// A dead worker's tasks are ready again within the lease, one second and a sweep.
    RecoveryBound,
    /// A worker that renews never loses a lease.
    NoFalseDeath,
    /// Every unfinished task is ready, due at a time, or leased to a live worker that names it in reconcile.
    NoStranded,
    /// A claim never gives more tasks than were asked for.
    Bounded,
    /// A task that is handed back has spent no attempt.
    Drain,
    /// A task that kills its process hurts only itself.
    PoisonContained,
    /// Handler starts that ended in an outcome are at most the attempts granted.
    AttemptBound,
    /// A jump of the wall clock moves no lease.
    ClockFree,
    /// Never before due, and each tick of a schedule once.
    Schedule,
    /// A job's tasks that are ready or running are never more than its limit.
    Limit,
    /// One step of a workflow at a time, in the order of append, each after the success of the one before.
    WfOrder,
    /// Every place that a job or a worker gives is given back exactly once.
    SlotBalanced,
}

impl Promise {
    /// Every promise that a store keeps.
    pub const ALL: [Self; 19] = [
        Self::EnqDurable,
        Self::EnqIdempotent,
        Self::BatchAtomic,
        Self::OneLease,
        Self::Fenced,
        Self::OneTerminal,
        Self::DoneDurable,
        Self::RecoveryBound,
        Self::NoFalseDeath,
        Self::NoStranded,
        Self::Bounded,
        Self::Drain,
        Self::PoisonContained,
        Self::AttemptBound,
        Self::ClockFree,
        Self::Schedule,
        Self::Limit,
        Self::WfOrder,
        Self::SlotBalanced,
    ];

    /// The promise's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::EnqDurable => "ENQ-DURABLE",
            Self::EnqIdempotent => "ENQ-IDEMPOTENT",
            Self::BatchAtomic => "BATCH-ATOMIC",
            Self::OneLease => "ONE-LEASE",
            Self::Fenced => "FENCED",
            Self::OneTerminal => "ONE-TERMINAL",
            Self::DoneDurable => "DONE-DURABLE",
            Self::RecoveryBound => "RECOVERY-BOUND",
            Self::NoFalseDeath => "NO-FALSE-DEATH",
            Self::NoStranded => "NO-STRANDED",
            Self::Bounded => "BOUNDED",
            Self::Drain => "DRAIN",
            Self::PoisonContained => "POISON-CONTAINED",
            Self::AttemptBound => "ATTEMPT-BOUND",
            Self::ClockFree => "CLOCK-FREE",
            Self::Schedule => "SCHEDULE",
            Self::Limit => "LIMIT",
            Self::WfOrder => "WF-ORDER",
            Self::SlotBalanced => "SLOT-BALANCED",
        }
    }
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
