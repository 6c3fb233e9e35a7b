//! The durable worker: every edge case of claiming, leases and stopping, on a store that a test can break.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod admission;
mod claiming;
mod gates;
mod leases;
mod metrics;
mod outages;
mod outcomes;
mod registering;
mod rig;
mod schedules;
mod stopping;

use windlass_conformance::staged;
