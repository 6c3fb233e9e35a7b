//! Windlass: a durable task queue and worker runtime for services that wait on I/O.
//!
//! Reading order: [`Client`] puts a task into a store; the coordinator of a [`Worker`] claims it; the
//! [`Pool`] runs its handler through the executor; the outcome becomes a settlement; the settler writes it.

pub mod cancel;
pub mod context;
pub mod handler;

pub use cancel::{CancelReason, Cancellation};
pub use context::Context;
pub use handler::RawHandler;
pub use windlass_core::*;
