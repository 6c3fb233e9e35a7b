//! What clients and operators need from a store, on top of what workers need.

mod cause;
pub mod depth;
pub mod lanes;
mod list;
pub mod rules;
#[doc(hidden)]
pub mod transfer;
pub mod usage;

use std::{fmt, path::Path, pin::Pin, sync::Arc, time::Duration};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{
    error::{Error, Result},
    gate::{GateView, JobChange, JobRecord, WorkflowAction, WorkflowRecord},
    id::{TaskId, WorkerId},
    name::Name,
    operators::{NoOperators, Operators},
    rules::Rules,
    schedule::{DueSchedules, Fire, ScheduleRow},
    session::{NoSessions, Sessions},
    source::{Demand, DutyReport, Source},
    state::State,
    task::{Claimed, Enqueued, NewTask, TaskRecord},
    token::{NewToken, TokenRecord},
    usage::{ReadyLines, Usage},
    worker::{Registration, WorkerRecord},
};

pub use crate::depth::Depth;
pub use cause::cause_of;
pub use list::{Detail, FILTER_IDS_MAX, Filter, PAGE_MAX, Page, Summaries, SummaryRecord};

/// Most lanes whose first ready task one call reads.
pub const READY_LANES_MAX: usize = 1_000;

/// The result of a bulk operation for one task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The task.
    pub id: TaskId,
    /// Its state now, or why nothing was done.
    pub result: Result<State>,
}

/// Retry of one dead task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Redrive {
    /// The task.
    pub id: TaskId,
    /// How long to wait first.
    pub delay: Duration,
}

/// A lane with its figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneRecord {
    /// The queue.
    pub queue: Name,
    /// The kind.
    pub kind: Name,
    /// Whether the queue is paused.
    pub paused: bool,
    /// Its figures.
    pub depth: Depth,
}

/// What a store reports about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreInfo {
    /// "sqlite", "memory", …
    pub backend: String,
    /// Where it is, without secrets.
    pub location: String,
    /// Version of the engine underneath.
    pub engine_version: String,
    /// Version of the schema.
    pub schema_version: u32,
    /// Bytes on disk, log included.
    pub bytes: u64,
    /// Bytes of the write-ahead log.
    pub wal_bytes: u64,
    /// Free bytes on its disk.
    pub free_disk_bytes: u64,
    /// Finished tasks that are kept.
    pub history_rows: u64,
    /// Their bytes, about.
    pub history_bytes: u64,
    /// Whether every acknowledged write survives a power cut.
    pub durable: bool,
    /// Whether it did not exist before this process opened it.
    pub created: bool,
    /// Tasks that were taken back from dead workers when it was opened.
    pub recovered: u64,
}

/// How long ended tasks are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Done and cancelled tasks.
    pub history_age: Duration,
    /// Their size at most.
    pub history_max_bytes: u64,
    /// Dead tasks.
    pub dead_age: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        let day = Duration::from_hours(24);
        Self { history_age: 7 * day, history_max_bytes: 1 << 30, dead_age: 30 * day }
    }
}

/// A task that breaks NO-STRANDED or another rule, found by the audit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The task, if the finding is about one.
    pub task: Option<TaskId>,
    /// The promise that is broken.
    pub promise: String,
    /// What was found.
    pub detail: String,
}

/// A whole store: what workers need, and what clients and operators need.
#[async_trait]
pub trait Store: Source {
    /// The numbers that this store was opened with.
    fn rules(&self) -> &Rules;

    /// The schema of its tables, if they are in a database in which callers have transactions of their own.
    fn schema(&self) -> Option<&str> {
        None
    }

    /// Adds tasks, all or none, in one durable commit; the answers are in the order of the tasks.
    async fn enqueue(&self, tasks: Vec<NewTask>) -> Result<Vec<Enqueued>>;

    /// Adds one task for a worker that waits for it. The task is leased to the worker in the same commit if
    /// it is [plain](NewTask::is_plain), the worker may claim it and no task of its lane is ready before it.
    /// Otherwise, and in a store that cannot do this, the task is added as usual and the lease is `None`: a
    /// worker that may not claim is not an error here. Not cancel safe, like a claim.
    ///
    /// The answer may come before the task is safe on disk, so that its worker can start in the meantime. A
    /// caller that confirms the task to another party waits for [`Safe`] first.
    async fn enqueue_for(&self, task: NewTask, demand: &Demand) -> Result<(Enqueued, Option<Claimed>, Safe)> {
        let _ = demand;
        Ok((only(self.enqueue(vec![task]).await?)?, None, Safe::already()))
    }

    /// One task: unfinished, or ended and still kept.
    async fn task(&self, id: TaskId) -> Result<Option<TaskRecord>>;

    /// One page of tasks, newest first, older than `after` if given.
    async fn tasks(&self, filter: &Filter, after: Option<TaskId>, limit: u32) -> Result<Page>;

    /// The same page without payloads, outputs and attempts. A store does not read them either.
    async fn summaries(&self, filter: &Filter, after: Option<TaskId>, limit: u32) -> Result<Summaries> {
        Ok(self.tasks(filter, after, limit).await?.summarised())
    }

    /// Those of the tasks that have ended, or no longer exist (`None`). Waits up to `wait` for the first one.
    async fn ended(&self, ids: &[TaskId], wait: Duration) -> Result<Vec<(TaskId, Option<TaskRecord>)>>;

    /// Ends tasks that have not started and asks running ones to end. A running task becomes cancelled when
    /// its attempt ends, with any outcome but success.
    async fn cancel(&self, ids: &[TaskId], reason: &str) -> Result<Vec<Changed>>;

    /// Grants dead tasks new attempts, and records it.
    async fn redrive(&self, tasks: &[Redrive]) -> Result<Vec<Changed>>;

    /// Removes dead tasks now instead of at the end of their retention. Each answers with the state that it
    /// had. [`Error::Conflict`] for a task that is not dead, and for one that blocks its workflow.
    async fn remove(&self, ids: &[TaskId]) -> Result<Vec<Changed>>;

    /// The task that an idempotency key belongs to, while the key is remembered.
    async fn key_holder(&self, queue: &Name, key: &str) -> Result<Option<TaskId>>;

    /// Every lane with its figures.
    async fn lane_records(&self) -> Result<Vec<LaneRecord>>;

    /// Pauses or resumes claims from a queue, also from one that has no lane yet. Answers whether that
    /// changed anything.
    async fn set_queue_paused(&self, queue: &Name, paused: bool) -> Result<bool>;

    /// Queues that are paused.
    async fn paused_queues(&self) -> Result<Vec<Name>>;

    /// Every worker, also those that died or left in the last day.
    async fn workers(&self) -> Result<Vec<WorkerRecord>>;

    /// What a worker registered with, also if it has ended since; `None` if there is no such worker.
    async fn registration(&self, worker: WorkerId) -> Result<Option<Registration>> {
        let _ = worker;
        Ok(None)
    }

    /// Sets how many slots a worker has; the worker reads it with its next renewal. [`Error::Invalid`] out of
    /// bounds,
    /// [`Error::NotFound`] if there is no such worker, [`Error::Conflict`] if its lease is not in force.
    async fn set_worker_slots(&self, worker: WorkerId, slots: u32) -> Result<()>;

    /// One bounded step of retention; `more` says whether another is due at once.
    async fn retain(&self, retention: &Retention) -> Result<DutyReport>;

    /// Its operations on jobs and workflows.
    fn gates(&self) -> &dyn Gates;

    /// Its operations on recurring tasks.
    fn schedules(&self) -> &dyn Schedules;

    /// Its tokens of the API. A store behind a server leaves them to that server.
    fn tokens(&self) -> &dyn Tokens {
        &NoTokens
    }

    /// Bulk runs, and the last calls that changed something. A store that other processes reach through a
    /// server keeps none.
    fn operators(&self) -> &dyn Operators {
        &NoOperators
    }

    /// Looks for tasks that break a promise. Counts everything: for operators and tests, not for a hot path.
    async fn audit(&self) -> Result<Vec<Finding>>;

    /// What the store reports about itself.
    async fn info(&self) -> Result<StoreInfo>;

    /// What this process used it for. Reads memory only; a store that counts nothing answers zeros.
    fn usage(&self) -> Usage {
        Usage::default()
    }

    /// The first ready task of each lane: one read per lane from the index of the claims, for at most
    /// [`READY_LANES_MAX`] lanes. A store that cannot tell answers none.
    async fn ready_lines(&self) -> Result<ReadyLines> {
        Ok(ReadyLines::default())
    }

    /// Writes a consistent copy of the running store to a new file.
    async fn backup(&self, to: &Path) -> Result<()>;

    /// Waits until everything that was accepted is written, and closes. Later calls fail.
    async fn close(&self) -> Result<()>;
}

/// A write that every caller can see and that may not be on the disk yet.
#[must_use = "nothing may be promised before it is safe"]
pub struct Safe(Option<Pin<Box<dyn Future<Output = Result<()>> + Send>>>);

impl Safe {
    /// Already on the disk: nothing to wait for.
    pub fn already() -> Self {
        Self(None)
    }

    /// On the disk when this future ends.
    pub fn when(safe: impl Future<Output = Result<()>> + Send + 'static) -> Self {
        Self(Some(Box::pin(safe)))
    }

    /// Waits until the write is as durable as the store's commits are configured.
    ///
    /// # Errors
    /// [`Error::Unknown`] if that is not known: a crash may lose the write.
    pub async fn wait(self) -> Result<()> {
        match self.0 {
            None => Ok(()),
            Some(safe) => safe.await,
        }
    }
}

impl fmt::Debug for Safe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Safe").field(&if self.0.is_some() { "pending" } else { "already" }).finish()
    }
}

/// The answer for one task.
///
/// # Errors
/// [`Error::Unknown`] if there is none.
pub fn only(enqueued: Vec<Enqueued>) -> Result<Enqueued> {
    let none = || Error::Unknown("the store did not say which task it added".to_owned());
    enqueued.into_iter().next().ok_or_else(none)
}

/// What operators and clients do with jobs and workflows. Stores pass tasks through the gates without these
/// calls.
#[async_trait]
pub trait Gates: Send + Sync {
    /// Makes a job or changes it. Acts at once on tasks that wait, and on running tasks only if asked.
    async fn set_job(&self, name: &Name, change: &JobChange) -> Result<JobRecord>;

    /// Jobs by name, after `after` if given; at most `limit`.
    async fn jobs(&self, after: Option<&Name>, limit: u32) -> Result<Vec<JobRecord>>;

    /// One job.
    async fn job(&self, name: &Name) -> Result<Option<JobRecord>>;

    /// Cancels the tasks that wait in a job, and forgets the job when its last running task has ended; `now`
    /// asks those to end too.
    /// [`Error::NotFound`] if there is none. Answers how many tasks were cancelled.
    async fn remove_job(&self, name: &Name, now: bool) -> Result<u64>;

    /// Workflows by name, after `after` if given; at most `limit`.
    async fn workflows(&self, blocked: bool, after: Option<&Name>, limit: u32)
    -> Result<Vec<WorkflowRecord>>;

    /// One workflow that has unfinished steps or is blocked.
    async fn workflow(&self, name: &Name) -> Result<Option<WorkflowRecord>>;

    /// Retries or skips the step that blocks a workflow ([`Error::Conflict`] if it is not blocked, or the
    /// step cannot be retried), or cancels its unfinished steps. [`Error::NotFound`] if there is none.
    /// Answers how many tasks that changed.
    async fn change_workflow(&self, name: &Name, action: WorkflowAction) -> Result<u64>;

    /// The job and the workflow of a task with their figures.
    async fn view(&self, task: &TaskRecord) -> Result<GateView>;
}

/// Recurring tasks.
#[async_trait]
pub trait Schedules: Send + Sync {
    /// Makes a schedule, or replaces its text and its next tick; its last tick stays.
    async fn put(&self, row: &ScheduleRow) -> Result<()>;

    /// Every schedule, by name.
    async fn list(&self) -> Result<Vec<ScheduleRow>>;

    /// Removes a schedule; answers whether there was one.
    async fn remove(&self, name: &Name) -> Result<bool>;

    /// Schedules that are due, at most `limit`, and when the next one is.
    async fn due(&self, limit: u32) -> Result<DueSchedules>;

    /// One schedule.
    async fn find(&self, name: &Name) -> Result<Option<ScheduleRow>> {
        Ok(self.list().await?.into_iter().find(|row| row.name == *name))
    }

    /// Enqueues the task of a tick and sets the next tick, in one commit. It does so if the schedule is not
    /// paused, has the same text as when the tick was decided, still waits for that tick, and the tick has
    /// come by the store's clock. Otherwise it answers `None` (SCHEDULE).
    ///
    /// A store behind a server asks that server, which itself decides what the tick enqueues and when the
    /// next one is.
    async fn fire(&self, fire: Fire) -> Result<Option<Enqueued>>;
}

/// The tokens of the API, by their hashes.
#[async_trait]
pub trait Tokens: Send + Sync {
    /// Adds a token. [`Error::Conflict`] if the id is taken, or there are [`crate::token::TOKENS_MAX`]
    /// already.
    async fn add(&self, token: &NewToken) -> Result<TokenRecord>;

    /// Every token, expired ones too, oldest first.
    async fn list(&self) -> Result<Vec<TokenRecord>>;

    /// One token, also if it has expired.
    async fn find(&self, id: &Name) -> Result<Option<TokenRecord>>;

    /// Removes a token and its sessions; answers whether there was one.
    async fn remove(&self, id: &Name) -> Result<bool>;

    /// The sessions that were started with these tokens.
    fn sessions(&self) -> &dyn Sessions {
        &NoSessions
    }
}

/// A store that keeps no tokens.
struct NoTokens;

impl NoTokens {
    fn refuse<T>() -> Result<T> {
        Err(Error::Unsupported("this store keeps no tokens".to_owned()))
    }
}

#[async_trait]
impl Tokens for NoTokens {
    async fn add(&self, _: &NewToken) -> Result<TokenRecord> {
        Self::refuse()
    }

    async fn list(&self) -> Result<Vec<TokenRecord>> {
        Self::refuse()
    }

    async fn find(&self, _: &Name) -> Result<Option<TokenRecord>> {
        Self::refuse()
    }

    async fn remove(&self, _: &Name) -> Result<bool> {
        Self::refuse()
    }
}

/// A store behind a cheap handle.
pub type SharedStore = Arc<dyn Store>;
