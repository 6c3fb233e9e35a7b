//! Workers as the store knows them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{id::WorkerId, name::Name, time::Timestamp};

pub mod affinity;
pub mod counts;
pub mod crash;
pub mod epoch;

pub use counts::{Counts, WorkerCounts};

/// What a worker tells the store when it registers.
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
    /// How long it counts as alive after its last renewal.
    pub lease_ttl: Duration,
}

/// What a server must know about a registration. It never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    /// The caller that registered it through a server.
    pub owner: Option<String>,
    /// Kinds that it has handlers for.
    pub kinds: Vec<Name>,
    /// Queues that it serves; empty means all.
    pub queues: Vec<Name>,
}

/// Longest lease of a worker. After a worker's death its tasks stay leased for this long.
pub const LEASE_TTL_MAX: Duration = Duration::from_hours(24);

/// Most slots that a worker may have.
pub const SLOTS_MAX: u32 = 100_000;

/// What a worker tells the store with every renewal.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkerReport {
    /// How many more tasks it could run now.
    pub available: u32,
    /// Tasks whose handlers run.
    pub in_flight: u32,
    /// Whether it has stopped claiming and finishes what it has.
    pub draining: bool,
    /// Memory in use, as a share of the limit that applies to it; 0 if it is unknown.
    pub memory_usage: f64,
    /// The share of its slots that admission control lets it use.
    pub factor: f64,
    /// Why that is less than all; empty if it is all.
    pub reason: String,
    /// What it has done since it registered.
    pub counts: WorkerCounts,
}

impl Default for WorkerReport {
    fn default() -> Self {
        Self {
            available: 0,
            in_flight: 0,
            draining: false,
            memory_usage: 0.0,
            factor: 1.0,
            reason: String::new(),
            counts: WorkerCounts::default(),
        }
    }
}

impl WorkerReport {
    /// The report of a worker with this many slots, until it sends its first one.
    pub fn of_new(slots: u32) -> Self {
        Self { available: slots, ..Self::default() }
    }
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
    /// How many tasks it reports as running.
    pub in_flight: u32,
    /// How many more tasks it reports that it could run.
    pub available: u32,
    /// Whether it finishes its tasks and takes no new ones.
    pub draining: bool,
    /// Memory in use at its last renewal, as a share of the limit that applies to it.
    pub memory_usage: f64,
    /// The share of its slots that admission control let it use.
    pub factor: f64,
    /// Why that was less than all; empty if it was not.
    pub reason: String,
    /// What it had done by then since it registered.
    #[serde(default)]
    pub counts: WorkerCounts,
    /// Whether its lease is in force.
    pub live: bool,
    /// Whether its registration is over. A worker that is neither live nor ended has missed its renewals, and
    /// no sweep has taken its tasks yet.
    pub ended: bool,
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

/// The error text for a worker that cannot be changed any more.
pub fn not_live(worker: WorkerId) -> String {
    format!("worker {worker} is not live: its lease has run out or it has stopped")
}

/// Checks whether a worker may have this many slots.
///
/// # Errors
/// [`crate::Error::Invalid`].
pub fn check_slots(slots: u32) -> crate::Result<()> {
    if (1..=SLOTS_MAX).contains(&slots) {
        Ok(())
    } else {
        Err(crate::Error::invalid(format!("slots must be 1 to {SLOTS_MAX}, not {slots}")))
    }
}
