//! Sends the spans of Windlass to an OpenTelemetry collector: OTLP over HTTP, with JSON bodies.
//!
//! An [`Exporter`] is a bounded queue and a thread. Recording a span never waits: the span is queued, or
//! counted as dropped.
//!
//! ```text
//! record ─► queue (≤ QUEUE_MAX) ─► batch (≤ BATCH_MAX, or after LINGER) ─► POST /v1/traces
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
