//! Windlass: a durable task queue and worker runtime for services that wait on I/O.
//!
//! Reading order: [`Client`] puts a task into a store; the coordinator of a [`Worker`] claims it; the
//! [`Pool`] runs its handler through the executor; the outcome becomes a settlement; the settler writes it.

pub mod admission;
#[doc(hidden)]
pub mod backoff;
pub mod builder;
pub mod cancel;
pub mod client;
pub mod context;
mod coordinator;
mod duties;
mod engine;
mod executor;
pub mod extract;
pub mod handler;
mod heartbeat;
#[doc(hidden)]
pub mod home;
pub mod layer;
pub mod lifecycle;
mod log_line;
mod open;
pub mod pool;
pub mod quota;
pub mod registry;
pub mod schedule;
mod settler;
pub mod shutdown;
mod slots;
mod supervisor;
mod sync;
pub mod task;
pub mod telemetry;
pub mod testing;
pub mod trace;
pub mod waiters;
pub mod worker;

pub use admission::{AdmissionConfig, AdmissionStatus, Controller};
pub use builder::WorkerBuilder;
pub use cancel::{CancelReason, Cancellation};
pub use client::{Client, Enqueue, EnqueueAll};
pub use context::Context;
pub use extract::State;
pub use handler::{BoxError, Handler, IntoOutcome, RawHandler};
pub use layer::{Layer, Next};
pub use lifecycle::{Component, Lifecycle};
pub use open::{OpenOptions, open, open_with};
pub use pool::{
    DispatchOptions, Gauges, Handle, JoinError, Pool, PoolBuilder, PoolError, Rejected, Reserved, StopReport,
};
pub use registry::Registry;
/// The serde that [`Task`] is built on, for crates that do not depend on it themselves.
pub use serde;
pub use shutdown::{Shutdown, Signals, shutdown_signal};
pub use task::Task;
pub use trace::Tracer;
pub use waiters::Waiters;
/// The state of a task. [`State`] at this crate's root is the handler argument.
pub use windlass_core::State as TaskState;
pub use windlass_core::*;
pub use windlass_macros::Task;
#[cfg(feature = "postgres")]
pub use windlass_postgres as postgres;
#[cfg(feature = "sqlite")]
pub use windlass_sqlite as sqlite;
pub use worker::{ClaimBatch, DrainReport, Worker, WorkerConfig, WorkerError, WorkerHandle, WorkerStatus};

/// Compiles the examples of the documents.
#[cfg(all(doctest, feature = "sqlite"))]
mod documents {
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/guides/admission.md")]
    struct Admission;
    #[doc = include_str!("../../../docs/guides/handlers.md")]
    struct Handlers;
    #[doc = include_str!("../../../docs/guides/observing.md")]
    struct Observing;
    #[doc = include_str!("../../../docs/guides/schedules.md")]
    struct Schedules;
    #[cfg(feature = "postgres")]
    #[doc = include_str!("../../../docs/guides/postgres.md")]
    struct Postgres;
    #[doc = include_str!("../../../docs/guides/jobs.md")]
    struct Jobs;
    #[cfg(feature = "postgres")]
    #[doc = include_str!("../../../docs/guides/postgres-transactions.md")]
    struct PostgresTransactions;
}
