//! Consumers of RabbitMQ, as their processes report them.

use serde::{Deserialize, Serialize};
use windlass_core::{Name, Timestamp};

/// What a process says of its consumers. A later report of the same process takes the place of this one; a
/// report without consumers says that the process has stopped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConsumerReport {
    /// A name that only this process has.
    pub process: String,
    /// Its host.
    #[serde(default)]
    pub host: String,
    /// Its process number.
    #[serde(default)]
    pub pid: u32,
    /// Its version.
    #[serde(default)]
    pub version: String,
    /// Its consumers, at most 200.
    #[serde(default)]
    pub consumers: Vec<ConsumerView>,
}

/// The answer to a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsumersReported {
    /// The process.
    pub process: Name,
    /// How many of its consumers this server shows now.
    pub consumers: u64,
}

/// Every process with consumers that this server has heard of lately.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consumers {
    /// The processes.
    pub processes: Vec<ConsumerProcess>,
}

/// A process with consumers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsumerProcess {
    /// The name that it gave itself; absent for the process of this server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Name>,
    /// Its host.
    pub host: String,
    /// Its process number.
    pub pid: u32,
    /// Its version.
    pub version: String,
    /// Whether its last report is recent. The figures of another one are old.
    pub live: bool,
    /// When it last reported.
    pub seen_at: Timestamp,
    /// Its consumers.
    pub consumers: Vec<ConsumerView>,
}

/// Whether a consumer gets deliveries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConsumerState {
    /// It has a channel and is subscribed.
    Consuming,
    /// It lost its channel and tries to open another.
    #[default]
    Reconnecting,
    /// It takes no new deliveries and finishes those that it has.
    Stopping,
}

/// The figures of one consumer. Counts are of its process since it started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsumerView {
    /// The queue at the broker.
    pub queue: String,
    /// The event type of its messages; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub event_type: String,
    /// Whether it gets deliveries.
    pub state: ConsumerState,
    /// Handlers that run.
    pub busy: u64,
    /// Handlers that may run at once now.
    pub allowed: u64,
    /// Handlers that may run at once, as configured.
    pub workers: u64,
    /// Deliveries that the broker may send ahead now.
    pub prefetch: u64,
    /// Messages that wait at the broker, as of its last answer; absent while that is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_messages: Option<u64>,
    /// Deliveries taken.
    pub deliveries: u64,
    /// Deliveries that had been delivered before, to any consumer.
    pub redeliveries: u64,
    /// Deliveries that were acknowledged.
    pub acked: u64,
    /// Deliveries that were rejected for good.
    pub rejected: u64,
    /// Deliveries that were returned to the queue.
    pub requeued: u64,
    /// Results that came after their channel was lost: the broker delivers those messages again.
    pub unanswered: u64,
    /// Channels that were opened after the first one.
    pub reconnects: u64,
}
