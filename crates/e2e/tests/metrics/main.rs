//! What a monitor sees of the built program: `/metrics` against the table of names, and the dashboard and the
//! alerts in the real Prometheus.
#![allow(clippy::panic, clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod consumer;
mod load;
mod ops;
mod page;
mod prometheus;
mod scrape;
