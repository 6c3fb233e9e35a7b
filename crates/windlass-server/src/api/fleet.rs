//! Queues, workers, and what a server says of itself.

use serde::{Deserialize, Serialize};
use windlass_core::{
    Counts, Name, Timestamp,
    store::{Depth, Finding, StoreInfo},
};

pub use windlass_core::why::summary::Cause;

/// Every queue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queues {
    /// The queues by name.
    pub queues: Vec<QueueView>,
}

/// A queue with its figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueView {
    /// Its name.
    pub queue: Name,
    /// Whether nothing is claimed from it.
    pub paused: bool,
    /// Its lanes by kind; none for a queue that was paused before its first task.
    pub kinds: Vec<KindView>,
}

/// The tasks of one kind in a queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindView {
    /// The kind.
    pub kind: Name,
    /// How many tasks are in each state; done and cancelled ones are not counted.
    pub depth: Depth,
}

/// Why the tasks of a queue wait, from a sample: the 50 newest of each state in which a task waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueWhy {
    /// The queue.
    pub queue: Name,
    /// Whether it is paused.
    pub paused: bool,
    /// How many tasks it has in each state.
    pub depth: Depth,
    /// How many of those that wait were looked at.
    pub looked_at: u64,
    /// Why they wait, the most frequent cause first.
    pub causes: Vec<Cause>,
}

/// The answer to pause and resume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueChange {
    /// The queue.
    pub queue: Name,
    /// Whether it is paused now.
    pub paused: bool,
    /// Whether that is new.
    pub changed: bool,
}

/// Every worker of the last day.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Workers {
    /// The workers, newest first.
    pub workers: Vec<WorkerView>,
}

/// Whether a worker is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerState {
    /// Its lease is in force.
    Live,
    /// Its lease is in force, but it is finishing: it claims no new task.
    Draining,
    /// It has missed its renewals; its tasks will be taken from it.
    Stale,
    /// It has left, or its tasks were taken from it.
    Gone,
}

/// Changes to a worker.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerRequest {
    /// How many tasks it may run at once.
    pub slots: u32,
}

/// A worker, as its last heartbeat told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkerView {
    /// Its registration, such as `w7`.
    pub worker_id: String,
    /// Whether it is there.
    pub state: WorkerState,
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
    /// How many tasks it may run at once at most.
    pub max_capacity: u32,
    /// How many more it says it could run.
    pub available_capacity: u32,
    /// How many it says it runs.
    pub in_flight: u32,
    /// Memory in use as a share of the limit that applies to it, 0 to 1.
    pub memory_usage: f64,
    /// The share of its slots that admission control lets it use.
    pub factor: f64,
    /// Why that is less than all: `start`, `memory`, `memory_stop`, `latency`, or several with `+`; empty if
    /// it is all.
    pub reason: String,
    /// What it has done since it registered, as its last heartbeat said.
    #[serde(default)]
    pub counts: Counts,
    /// Whether it is finishing and claims no new task.
    pub draining: bool,
    /// Whether its lease is in force.
    pub live: bool,
    /// How long ago it last renewed.
    pub seen_ago_ms: u64,
    /// When it registered.
    pub registered_at: Timestamp,
    /// When it last renewed.
    pub renewed_at: Timestamp,
}

/// What the audit of the whole store found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Audit {
    /// Broken promises; empty is how it should be.
    pub findings: Vec<Finding>,
}

/// Connections to the store for one purpose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionsView {
    /// The purpose.
    pub name: String,
    /// How many there are at most.
    pub size: u32,
    /// How many are in use.
    pub busy: u32,
    /// How often a caller got one since the process started.
    pub uses: u64,
    /// How long callers waited for one, in all.
    pub waited_ms: u64,
}

/// What a server says of itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InfoView {
    /// Version of the program.
    pub version: String,
    /// Its process number.
    pub pid: u32,
    /// The store.
    pub store: StoreInfo,
    /// The connections of this process to the store, by purpose; none if the store does not count them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub connections: Vec<ConnectionsView>,
    /// The worker in the same process, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerStatusView>,
}

/// The worker in the server's own process, as it stands this moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerStatusView {
    /// Its registration, such as `w7`, once it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// How many tasks it may run at once.
    pub slots: u32,
    /// Tasks that are running.
    pub in_flight: u32,
    /// Slots that are free and may be used.
    pub available: u32,
    /// How many tasks admission control lets it run now.
    #[serde(default)]
    pub allowed: u32,
    /// That as a share of the slots.
    #[serde(default)]
    pub factor: f64,
    /// Why that is less than all; empty if it is all.
    #[serde(default)]
    pub reason: String,
    /// Memory in use as a share of the limit that applies, if it can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_usage: Option<f64>,
    /// Ends of attempts that are not yet written to the store.
    pub unsettled: u32,
    /// Whether it is finishing and claims no new task.
    pub draining: bool,
    /// Kinds that it has handlers for.
    pub kinds: Vec<Name>,
    /// Queues that it serves; empty means all.
    pub queues: Vec<Name>,
    /// Tasks claimed since it started.
    #[serde(default)]
    pub claimed: u64,
    /// Attempts that ended in success since it started.
    #[serde(default)]
    pub succeeded: u64,
    /// Attempts that ended otherwise since it started, without those that were handed back.
    #[serde(default)]
    pub failed: u64,
}

/// Counts of the server's process since it started. They only rise, so the difference of two answers is a
/// rate.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Overview {
    /// Its process number. Another number means that the counts began again at zero.
    pub pid: u32,
    /// Tasks that came in through this server.
    pub enqueued: u64,
    /// The worker in the same process, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerStatusView>,
}
