//! Spans of Windlass to an OpenTelemetry collector: OTLP over HTTP, with JSON bodies.
//!
//! An [`Exporter`] is a bounded queue and a thread. Whoever records a span never waits: it is queued, or counted as dropped.
//!
//! ```text
//! record ─► queue (at most QUEUE_MAX) ─► batch (at most BATCH_MAX, or what came within LINGER) ─► POST /v1/traces
//! ```

mod body;
mod endpoint;
mod exporter;
mod queue;
mod send;

pub use body::Service;
pub use endpoint::{Endpoint, EndpointError};
pub use exporter::{Exporter, Stats};
pub use queue::QUEUE_MAX;
