//! A task: as a caller enqueues it, as a worker gets it, and as a person sees it.

pub mod attempt_log;
pub mod batch;
pub mod id;
pub mod name;
pub mod outcome;
pub mod payload;
pub mod repeat;
pub mod retry;
pub mod schedule;
pub mod settlement;
pub mod state;

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{
    error::{Error, Result},
    gate::{Gate, OnFailure},
    id::{LaneId, TaskId, WorkerId},
    name::Name,
    payload::Payload,
    retry::RetryPolicy,
    rules::Rules,
    state::State,
    time::Timestamp,
    trace::TraceContext,
};

/// The queue of tasks that name none.
pub const DEFAULT_QUEUE: &str = "default";

/// When a new task may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Start {
    /// At once.
    #[default]
    Now,
    /// After a delay, counted by the store's clock.
    In(Duration),
    /// Not before a time of the store's clock.
    At(Timestamp),
}

/// An idempotency key: the same (queue, key) gives one task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// The key, 1 to 256 bytes.
    pub text: String,
    /// If the key belongs to a task with another kind or payload: whether to answer with that task instead of
    /// an error.
    pub ignore_conflict: bool,
}

/// A task that a caller enqueues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTask {
    /// Which handler runs it.
    pub kind: Name,
    /// Which queue it waits in.
    pub queue: Name,
    /// Its payload.
    pub payload: Payload,
    /// Higher first; 0 is usual.
    pub priority: i32,
    /// When it may start.
    pub start: Start,
    /// Its idempotency key, if any.
    pub key: Option<Key>,
    /// Attempts granted; `None` means the installation's default.
    pub max_attempts: Option<u32>,
    /// Retry delays; `None` means the installation's default.
    pub retry: Option<RetryPolicy>,
    /// How long one attempt may take; `None` means no limit.
    pub timeout: Option<Duration>,
    /// The job it belongs to.
    pub job: Option<Name>,
    /// The limit of its job, if the store does not know that job yet. An existing job keeps its own limit.
    pub job_concurrency: Option<u32>,
    /// The workflow it is appended to.
    pub workflow: Option<Name>,
    /// What a failure means for the rest of its workflow. The first append decides; later ones change
    /// nothing.
    pub on_failure: Option<OnFailure>,
    /// Where it stands in a trace, if the caller is traced. An idempotency key does not compare it.
    pub trace: Option<TraceContext>,
}

/// Longest idempotency key.
pub const KEY_MAX_BYTES: usize = 256;
/// Most attempts that a task may be granted.
pub const MAX_ATTEMPTS_LIMIT: u32 = 1_000_000;

impl NewTask {
    /// Whether it may start at once: it has no job, no workflow, no key and no start time.
    pub fn is_plain(&self) -> bool {
        self.start == Start::Now && self.key.is_none() && self.job.is_none() && self.workflow.is_none()
    }

    /// A task of a kind with a payload, on the default queue.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the kind is not a valid name.
    pub fn new(kind: &str, payload: Payload) -> Result<Self> {
        Ok(Self {
            kind: Name::new("kind", kind)?,
            queue: Name::new("queue", DEFAULT_QUEUE)?,
            payload,
            priority: 0,
            start: Start::Now,
            key: None,
            max_attempts: None,
            retry: None,
            timeout: None,
            job: None,
            job_concurrency: None,
            workflow: None,
            on_failure: None,
            trace: None,
        })
    }

    /// Checks what the types do not.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the field and the limit.
    pub fn check(&self, rules: &Rules) -> Result<()> {
        let names = [("kind", Some(&self.kind)), ("queue", Some(&self.queue))];
        let gates = [("job", self.job.as_ref()), ("workflow", self.workflow.as_ref())];
        for (what, name) in names.into_iter().chain(gates) {
            name.map_or(Ok(()), |name| name.check(what))?;
        }
        if let Start::At(at) = self.start
            && !at.has_text()
        {
            return Err(Error::invalid(format!("run_at is out of range: {}", Timestamp::RANGE)));
        }
        if self.payload.len() > rules.payload_max_bytes {
            return Err(Error::invalid(format!(
                "payload is {} bytes; payload_max_bytes is {}",
                self.payload.len(),
                rules.payload_max_bytes
            )));
        }
        if let Some(key) = &self.key
            && (key.text.is_empty() || key.text.len() > KEY_MAX_BYTES || key.text.contains('\0'))
        {
            return Err(Error::invalid(format!("key must have 1 to {KEY_MAX_BYTES} bytes and no NUL")));
        }
        if self.max_attempts.is_some_and(|n| n == 0 || n > MAX_ATTEMPTS_LIMIT) {
            return Err(Error::invalid(format!("max_attempts must be 1 to {MAX_ATTEMPTS_LIMIT}")));
        }
        if self.timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Err(Error::invalid("timeout must be longer than zero"));
        }
        if self.on_failure.is_some() && self.workflow.is_none() {
            return Err(Error::invalid("on_failure says what becomes of a workflow; name the workflow"));
        }
        if self.job_concurrency.is_some() && self.job.is_none() {
            return Err(Error::invalid("job_concurrency is the limit of a job; name the job"));
        }
        if self.job_concurrency == Some(0) {
            return Err(Error::invalid("job_concurrency must be 1 or more"));
        }
        Ok(())
    }
}

/// The answer to an enqueue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enqueued {
    /// The task, new or already there.
    pub id: TaskId,
    /// Whether a task with this key was already there.
    pub existing: bool,
    /// Whether its job is cancelled: a new task is then cancelled too, at once or when its turn in its
    /// workflow comes. Not known for a task that is added inside a caller's transaction, because its job is
    /// read after the commit.
    #[serde(default)]
    pub cancelled: bool,
}

impl Enqueued {
    /// A new task.
    pub fn new(id: TaskId) -> Self {
        Self { id, existing: false, cancelled: false }
    }

    /// A task that was already there.
    pub fn existing(id: TaskId) -> Self {
        Self { id, existing: true, cancelled: false }
    }
}

/// An interned pair of queue and kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lane {
    /// Its number in this store.
    pub id: LaneId,
    /// The queue.
    pub queue: Name,
    /// The kind.
    pub kind: Name,
}

/// A task that a worker holds a lease on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    /// The task.
    pub id: TaskId,
    /// The fence: raised by one at every claim, never lowered.
    pub lease: u32,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// Attempts granted.
    pub max_attempts: u32,
    /// How often a worker process died while it ran, since it last ended otherwise.
    pub crashes: u32,
    /// The worker that holds it.
    pub worker: WorkerId,
    /// Which claim of that worker took it.
    pub claim_no: u64,
    /// Its queue and kind.
    pub lane: Arc<Lane>,
    /// Higher first.
    pub priority: i32,
    /// Its payload.
    pub payload: Payload,
    /// The job it belongs to.
    pub job: Option<Name>,
    /// The workflow it belongs to.
    pub workflow: Option<Name>,
    /// How long the attempt may take.
    pub timeout: Option<Duration>,
    /// Retry delays of its own.
    pub retry: Option<RetryPolicy>,
    /// Where the caller that enqueued it stands in a trace.
    pub trace: Option<TraceContext>,
    /// The store's clock when it was claimed.
    pub claimed_at: Timestamp,
}

impl Claimed {
    /// The gates that it passed.
    pub fn gate(&self) -> Gate {
        Gate { job: self.job.clone(), workflow: self.workflow.clone() }
    }
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptResult {
    /// Success.
    Done,
    /// Failure with another attempt to come.
    Retry,
    /// The handler asked to be called again later.
    Snoozed,
    /// Handed back by the worker.
    Released,
    /// The worker process died while it ran.
    Crashed,
    /// Cancelled while it ran.
    Cancelled,
    /// Failure for good.
    Dead,
    /// Not an attempt: an operator granted new attempts here.
    Redriven,
}

/// One attempt in a task's record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptRecord {
    /// The attempt's number.
    pub attempt: u32,
    /// The lease it ran under.
    pub lease: u32,
    /// The worker that ran it.
    pub worker: Option<WorkerId>,
    /// When it was claimed.
    pub started_at: Option<Timestamp>,
    /// When its end was committed.
    pub ended_at: Timestamp,
    /// How it ended.
    pub result: AttemptResult,
    /// The error or reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Attempts kept per task; the oldest are dropped first. The number of snoozes is not limited, so the record
/// is.
pub const ATTEMPT_RECORDS_MAX: usize = 50;

/// A task as a person or a program looks at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRecord {
    /// The task.
    pub id: TaskId,
    /// Its state.
    pub state: State,
    /// Its queue and kind.
    pub lane: Arc<Lane>,
    /// Higher first.
    pub priority: i32,
    /// Its payload.
    pub payload: Payload,
    /// The job it belongs to.
    pub job: Option<Name>,
    /// The workflow it belongs to.
    pub workflow: Option<Name>,
    /// Its idempotency key.
    pub key: Option<String>,
    /// Its fence.
    pub lease: u32,
    /// Attempts spent, or the number of the one that runs.
    pub attempt: u32,
    /// Attempts granted.
    pub max_attempts: u32,
    /// Crashes since it last ended otherwise.
    pub crashes: u32,
    /// How long an attempt may take.
    pub timeout: Option<Duration>,
    /// When it may start, while it is scheduled or waits for its turn.
    pub due_at: Option<Timestamp>,
    /// When the current or last attempt was claimed.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// The worker that runs it or ran it last.
    pub worker: Option<WorkerId>,
    /// What the handler last reported.
    pub progress: Option<String>,
    /// Its output.
    pub output: Output,
    /// The last error or reason.
    pub error: Option<String>,
    /// Why the running attempt should stop, if a user asked for that.
    pub cancel_requested: Option<String>,
    /// Ended attempts, oldest first, at most [`ATTEMPT_RECORDS_MAX`].
    pub attempts: Vec<AttemptRecord>,
}

/// The output of a task.
pub type Output = crate::outcome::Output;
