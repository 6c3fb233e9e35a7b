//! Windlass: a durable task queue and worker runtime for services that wait on I/O.
//!
//! A [`Client`] puts a task into a store. A [`Worker`] claims it and runs its handler, an async function. The
//! store is a file, a PostgreSQL schema, or a Windlass server. Four things make up most of an application.
//!
//! # 1. Enqueue tasks and run them
//!
//! A task is a payload type with a kind. Its handler takes the payload, and also the [`Context`] of the
//! attempt and [`State`]s of the worker if it wants them. An error is retried with a growing delay. A panic
//! ends only its own attempt.
//!
//! ```
//! use windlass::{Client, Context, State, Task, Worker, testing};
//!
//! #[derive(serde::Serialize, serde::Deserialize, Task)]
//! #[task(queue = "mail", max_attempts = 5, timeout = "30s")]
//! struct Greet { name: String }
//!
//! async fn greet(Greet { name }: Greet, ctx: Context, State(word): State<&'static str>) -> Result<(), String> {
//!     if name.is_empty() {
//!         return Err("no name to greet".into());
//!     }
//!     println!("{word}, {name}! (attempt {})", ctx.attempt());
//!     Ok(())
//! }
//!
//! # #[tokio::main] async fn main() -> anyhow::Result<()> {
//! let store = windlass::open("sqlite::memory:").await?; // or sqlite:app.db, or postgres://…
//! let client = Client::new(store.clone());
//! client.enqueue(Greet { name: "Ada".into() }).key("greet-ada").await?;
//!
//! let worker = Worker::builder(store).slots(100).state("Hello").handle(greet);
//! // A service: worker.run(windlass::shutdown_signal()).await?; a test stops when no task is left.
//! let ended = testing::run_until_idle(worker).await?;
//! assert_eq!(ended.len(), 1);
//! # Ok(()) }
//! ```
//!
//! # 2. Keep the order of a workflow
//!
//! Tasks that name one workflow run one after another, in the order in which they were enqueued. A step that
//! failed for good holds the steps behind it until an operator retries it, skips it or cancels them.
//!
//! ```
//! use windlass::{Client, Task, Worker, testing};
//!
//! #[derive(serde::Serialize, serde::Deserialize, Task)]
//! struct Charge { order: u32 }
//! #[derive(serde::Serialize, serde::Deserialize, Task)]
//! struct Ship { order: u32 }
//!
//! async fn charge(_: Charge) {}
//! async fn ship(_: Ship) {}
//!
//! # #[tokio::main] async fn main() -> anyhow::Result<()> {
//! # let store = windlass::open("sqlite::memory:").await?;
//! # let client = Client::new(store.clone());
//! client.enqueue(Charge { order: 42 }).workflow("order-42").await?;
//! client.enqueue(Ship { order: 42 }).workflow("order-42").await?; // starts when the charge is done
//!
//! let ended = testing::run_until_idle(Worker::builder(store).handle(charge).handle(ship)).await?;
//! let kinds: Vec<&str> = ended.iter().map(|task| task.lane.kind.as_str()).collect();
//! assert_eq!(kinds, ["charge", "ship"]);
//! # Ok(()) }
//! ```
//!
//! # 3. Limit a job
//!
//! Tasks that name one job share its limit: how many of them run at once, over all workers, and how long to
//! wait between two starts. A job is a site, a tenant, or a database.
//!
//! ```
//! use std::time::Duration;
//! use windlass::{Client, Task};
//!
//! #[derive(serde::Serialize, serde::Deserialize, Task)]
//! struct Visit { url: String }
//!
//! # #[tokio::main] async fn main() -> anyhow::Result<()> {
//! # let client = Client::new(windlass::open("sqlite::memory:").await?);
//! client.jobs().set_concurrency("example.com", 3).await?;
//! client.jobs().set_delay("example.com", Duration::from_millis(200)).await?;
//! for page in 1..=10 {
//!     let url = format!("https://example.com/{page}");
//!     client.enqueue(Visit { url }).job("example.com").await?;
//! }
//! let job = client.jobs().get("example.com").await?;
//! assert_eq!((job.concurrency, job.running), (Some(3), 0));
//! # Ok(()) }
//! ```
//!
//! # 4. Run a fleet, and enqueue inside your own transaction
//!
//! Any number of processes share a store on PostgreSQL. Each runs a [`Worker`]; a task of a process that died
//! is given to another one. A transaction of the application can enqueue: the task exists if, and only if,
//! the transaction commits.
//!
#![cfg_attr(feature = "postgres", doc = "```no_run")]
#![cfg_attr(not(feature = "postgres"), doc = "```ignore")]
//! use windlass::{Client, OpenOptions, Task, Worker};
//!
//! #[derive(serde::Serialize, serde::Deserialize, Task)]
//! #[task(kind = "send_email")]
//! struct SendEmail { to: String }
//!
//! async fn send_email(email: SendEmail) -> Result<(), std::io::Error> {
//!     println!("to {}", email.to);
//!     Ok(())
//! }
//!
//! async fn order(client: &Client, db: &mut tokio_postgres::Client, to: String) -> anyhow::Result<()> {
//!     let mut tx = db.transaction().await?;
//!     tx.execute("INSERT INTO orders (customer) VALUES ($1)", &[&to]).await?;
//!     client.enqueue(SendEmail { to }).within(&mut tx).await?;
//!     Ok(tx.commit().await?)
//! }
//!
//! # #[tokio::main] async fn main() -> anyhow::Result<()> {
//! let url = "postgres://app@db.internal/app";
//! let store = windlass::open_with(url, OpenOptions::new().migrate(true)).await?;
//! Worker::builder(store).handle(send_email).run(windlass::shutdown_signal()).await?;
//! # Ok(()) }
//! ```
//!
//! # Where the rest is
//!
//! | Module | What it has |
//! |---|---|
//! | [`client`] | what a [`Client`] returns: jobs, queues, schedules, waits |
//! | [`task`] | tasks as they are enqueued and looked up |
//! | [`gate`] | jobs and workflows as operators see them |
//! | [`schedule`] | recurring tasks |
//! | [`handler`] | handlers, layers around them, cancellation |
//! | [`worker`] | settings, reports and errors of a worker |
//! | [`pool`] | in-process work with bounded slots, not durable |
//! | [`admission`] | how memory and latency limit what runs |
//! | [`lifecycle`] | components of a process that start and stop in order |
//! | [`telemetry`], [`trace`] | metrics and spans |
//! | [`testing`], [`time`] | tests without waiting |
//! | [`store`] | the contract of a store |
//!
//! A test keeps the list of all public names in `public-names.txt`.

pub mod admission;
pub mod client;
mod engine;
pub mod handler;
#[doc(hidden)]
pub mod inside;
pub mod lifecycle;
pub mod pool;
pub mod schedule;
pub mod store;
pub mod task;
pub mod telemetry;
pub mod testing;
pub mod trace;
pub mod worker;

/// Jobs and workflows: limits and order of tasks, as operators see and change them.
pub mod gate {
    #[doc(inline)]
    pub use windlass_core::gate::{
        COUNT_MAX, Gate, JobChange, JobRecord, JobState, OnFailure, WorkflowAction, WorkflowRecord,
    };
}

/// Times of a store, and a clock that a test moves.
pub mod time {
    #[doc(inline)]
    pub use windlass_core::time::{Clock, ManualClock, ParseTimestampError, Timestamp};
}

#[doc(inline)]
pub use client::Client;
#[doc(inline)]
pub use handler::{Context, Layer, Next, Outcome, State};
#[doc(inline)]
pub use lifecycle::shutdown_signal;
#[doc(inline)]
pub use pool::{Pool, Rejected};
/// The serde that [`Task`] is built on, for crates that do not depend on it themselves.
pub use serde;
pub use store::open::{OpenOptions, open, open_with};
#[doc(inline)]
pub use task::{Name, NewTask, Payload, RetryPolicy, Task, TaskId, TaskRecord, TaskState};
#[doc(inline)]
pub use windlass_core::{Error, Result};
pub use windlass_macros::Task;
#[cfg(feature = "postgres")]
pub use windlass_postgres as postgres;
#[cfg(feature = "sqlite")]
pub use windlass_sqlite as sqlite;
#[doc(inline)]
pub use worker::{Worker, WorkerConfig, WorkerError};

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
