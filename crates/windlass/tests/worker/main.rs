//! The durable worker: every edge case of claiming, leases and stopping, on a store that a test can break.

mod claiming;
mod leases;
mod outcomes;
mod rig;
mod staged;
mod stopping;
