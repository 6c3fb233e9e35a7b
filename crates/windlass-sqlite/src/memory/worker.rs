//! A worker as the writer caches it, and its leases.

use std::collections::HashMap;

use windlass_core::{Lane, LaneId, LeaseRef, Name, TaskId, Timestamp, crash::Group};

use crate::memory::id_map::IdMap;

/// A lease as the writer caches it, with the columns that its end needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Held {
    pub lease: u32,
    pub attempt: u32,
    pub max_attempts: u32,
    pub crashes: u32,
    /// Its group, if it is a suspect.
    pub group: Group,
    pub claim_no: u64,
    pub claimed_at: Timestamp,
    pub lane: LaneId,
    pub payload_bytes: u32,
    pub keyed: bool,
    pub cancel: Option<Box<str>>,
    /// The gates that it passed; `None` for a plain task.
    pub gate: Option<Box<Passed>>,
}

/// The gates that a running task passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Passed {
    pub job: Option<Name>,
    pub workflow: Option<Name>,
    /// Its place in the workflow.
    pub step: i64,
    pub priority: i32,
    /// The number of this start among those of all jobs.
    pub start_no: u64,
}

impl Held {
    /// The fence of this lease.
    pub(crate) fn lease_of(&self, id: TaskId) -> LeaseRef {
        LeaseRef { id, lease: self.lease }
    }
}

/// What a registered worker takes. A worker of an earlier process takes nothing.
#[derive(Debug, Clone, Default)]
pub(crate) struct Service {
    pub kinds: Vec<Name>,
    /// Empty: all queues.
    pub queues: Vec<Name>,
    pub slots: u32,
}

impl Service {
    pub(super) fn covers(&self, lane: &Lane) -> bool {
        self.kinds.contains(&lane.kind) && (self.queues.is_empty() || self.queues.contains(&lane.queue))
    }
}

/// A worker that may hold tasks.
#[derive(Debug, Default)]
pub(crate) struct Worker {
    pub service: Service,
    pub min_claim_no: u64,
    /// Where its next claim over more than 64 lanes starts.
    pub rotation: usize,
    pub held: IdMap<TaskId, Held>,
    /// How many of the held tasks are suspects of crashes.
    pub suspects: u32,
    /// The last batch number of each of its settlers.
    pub receipts: HashMap<u32, u64>,
    /// How many tasks it held when it was found dead.
    pub crowd: Option<usize>,
}
