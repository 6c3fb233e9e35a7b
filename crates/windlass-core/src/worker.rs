//! Workers as the store knows them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{id::WorkerId, name::Name, time::Timestamp};

/// What a worker says of itself when it registers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewWorker {
    /// Host, for people only; never an identity.
    pub host: String,
    /// Process number, for people only.
    pub pid: u32,
    /// Version of the program.
    pub version: String,
    /// Kinds that it has handlers for.
    pub kinds: Vec<Name>,
    /// Queues that it serves; empty means all.
    pub queues: Vec<Name>,
    /// How many tasks it runs at once.
    pub slots: u32,
    /// How long it is believed alive after its last renewal.
    pub lease_ttl: Duration,
}

/// What a worker says with every renewal.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WorkerReport {
    /// Slots that are free.
    pub available: u32,
    /// Tasks whose handlers run.
    pub in_flight: u32,
    /// Whether it has stopped claiming and finishes what it has.
    pub draining: bool,
}

/// A worker as a person looks at it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkerRecord {
    /// Its registration.
    pub id: WorkerId,
    /// Its host.
    pub host: String,
    /// Its process number.
    pub pid: u32,
    /// Its version.
    pub version: String,
    /// Kinds that it has handlers for.
    pub kinds: Vec<Name>,
    /// Queues that it serves; empty means all.
    pub queues: Vec<Name>,
    /// How many tasks it may run at once.
    pub slots: u32,
    /// How many it says it runs.
    pub in_flight: u32,
    /// How many more it says it could run.
    pub available: u32,
    /// Whether it is finishing and takes nothing new.
    pub draining: bool,
    /// Whether its lease is in force.
    pub live: bool,
    /// When it registered.
    pub registered_at: Timestamp,
    /// When it last renewed.
    pub renewed_at: Timestamp,
}

impl WorkerRecord {
    /// Whether it is alive and takes tasks of this kind from this queue.
    pub fn serves(&self, queue: &Name, kind: &Name) -> bool {
        self.live && self.kinds.contains(kind) && (self.queues.is_empty() || self.queues.contains(queue))
    }
}
