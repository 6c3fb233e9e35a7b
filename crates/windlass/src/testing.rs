//! For the tests of applications: a store in memory, a worker that stops when no task is left, many
//! simultaneous calls of one handler.
//!
//! ```
//! use windlass::{Client, Task, TaskState, Worker, testing};
//!
//! #[derive(serde::Serialize, serde::Deserialize, Task)]
//! struct Greet(String);
//!
//! async fn greet(Greet(name): Greet) -> Result<(), String> {
//!     if name.is_empty() { Err("no name to greet".into()) } else { Ok(()) }
//! }
//!
//! # #[tokio::main] async fn main() -> anyhow::Result<()> {
//! let store = testing::store().await?;
//! let client = Client::new(store.clone());
//! client.enqueue(Greet("Ada".into())).await?;
//! client.enqueue(Greet(String::new())).max_attempts(1).await?;
//!
//! let ended = testing::run_until_idle(Worker::builder(store).handle(greet)).await?;
//! assert_eq!(ended.len(), 2);
//! assert_eq!(ended[0].state, TaskState::Done);
//! assert_eq!(ended[1].error.as_deref(), Some("attempt 1 of 1: no name to greet"));
//! # Ok(()) }
//! ```

mod calls;
mod idle;

use std::sync::Arc;

use windlass_core::{Claimed, Lane, LaneId, Name, Result, TaskId, Timestamp, WorkerId};

pub use calls::{Call, call_many};
pub use idle::run_until_idle;

use crate::{handler::context::Context, task::Task};

/// An empty store in memory, gone with the test.
///
/// # Errors
/// If SQLite reports an error, which should not happen.
#[cfg(feature = "sqlite")]
pub async fn store() -> Result<windlass_core::store::SharedStore> {
    crate::open("sqlite::memory:").await
}

/// A store in memory with a clock that the test moves, for delays, retries and leases without waiting.
///
/// # Errors
/// If SQLite reports an error, which should not happen.
#[cfg(feature = "sqlite")]
pub async fn store_with_clock(
    clock: Arc<dyn windlass_core::Clock>,
) -> Result<windlass_core::store::SharedStore> {
    use windlass_sqlite::{Location, Options, SqliteStore};

    match SqliteStore::open(&Location::Memory, Options::default().clock(clock)).await {
        Ok(store) => Ok(store),
        Err(error) => Err(windlass_core::Error::Unavailable(error.to_string())),
    }
}

/// A context for calling a handler directly, as in the first attempt of a task with this payload.
///
/// ```
/// # use windlass::{Task, testing};
/// #[derive(serde::Serialize, serde::Deserialize, Task)]
/// struct Greet(String);
///
/// let context = testing::context(&Greet("Ada".into())).unwrap();
/// assert_eq!((context.attempt(), context.cancel_reason()), (1, None));
/// ```
///
/// # Errors
/// If the payload has no JSON form.
pub fn context<T: Task>(task: &T) -> Result<Context> {
    let task = task.new_task()?;
    Ok(Context::detached(Claimed {
        id: TaskId::from_raw(1),
        lease: 1,
        attempt: 1,
        max_attempts: task.max_attempts.unwrap_or(windlass_core::Rules::default().max_attempts),
        crashes: 0,
        worker: WorkerId(1),
        claim_no: 1,
        lane: Arc::new(Lane { id: LaneId(1), queue: task.queue, kind: Name::new("kind", T::KIND)? }),
        priority: task.priority,
        payload: task.payload,
        job: task.job,
        workflow: task.workflow,
        timeout: task.timeout,
        retry: task.retry,
        trace: task.trace,
        claimed_at: Timestamp::default(),
    }))
}
