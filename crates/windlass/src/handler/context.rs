//! A handler's view of its attempt.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;
use windlass_core::{Claimed, LeaseRef, Payload, Result, Source, TaskId, Timestamp, TraceContext, WorkerId};

use crate::{
    handler::cancel::{CancelReason, Cancellation},
    telemetry::KindMeter,
    trace::RunTrace,
};

/// One attempt as its handler sees it. Cheap to clone.
#[derive(Clone)]
pub struct Context {
    attempt: Arc<Attempt>,
}

/// A claimed task in the executor.
pub(crate) struct Attempt {
    pub(crate) claimed: Claimed,
    pub(crate) deadline: Option<Instant>,
    pub(crate) cancellation: Cancellation,
    /// Boxed: most attempts have none.
    pub(crate) trace: Option<Box<RunTrace>>,
    source: Option<Arc<dyn Source>>,
    claimed_at: Instant,
    /// The counters of its kind, if metrics are on.
    pub(crate) meter: Option<Arc<KindMeter>>,
    ended: AtomicBool,
}

impl Attempt {
    pub(crate) fn new(
        claimed: Claimed,
        deadline: Option<Instant>,
        cancellation: Cancellation,
        source: impl Into<Option<Arc<dyn Source>>>,
    ) -> Self {
        let (source, claimed_at) = (source.into(), Instant::now());
        let ended = AtomicBool::new(false);
        Self { claimed, deadline, cancellation, trace: None, source, claimed_at, meter: None, ended }
    }

    /// The same, counted.
    pub(crate) fn metered(self, meter: Option<Arc<KindMeter>>) -> Self {
        Self { meter, ..self }
    }

    /// The same with its place in a trace.
    pub(crate) fn traced(mut self, trace: Option<RunTrace>) -> Self {
        self.trace = trace.map(Box::new);
        self
    }

    /// The fence of this attempt.
    pub(crate) fn lease(&self) -> LeaseRef {
        LeaseRef { id: self.claimed.id, lease: self.claimed.lease }
    }

    /// The store's clock, carried forward from the claim with this process's monotonic clock (CLOCK-FREE).
    pub(crate) fn store_now(&self) -> Timestamp {
        self.claimed.claimed_at.after(self.age())
    }

    /// How long ago it was claimed.
    pub(crate) fn age(&self) -> Duration {
        self.claimed_at.elapsed()
    }

    /// Marks the attempt as ended; returns whether this call was the first.
    pub(crate) fn end(&self) -> bool {
        !self.ended.swap(true, Ordering::AcqRel)
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }
}

impl Context {
    pub(crate) fn new(attempt: Arc<Attempt>) -> Self {
        Self { attempt }
    }

    /// A context outside of any worker, for calling a handler directly in a test. Progress is dropped.
    pub fn detached(claimed: Claimed) -> Self {
        Self::new(Arc::new(Attempt::new(claimed, None, Cancellation::new(), None)))
    }

    /// The task as it was claimed.
    pub fn task(&self) -> &Claimed {
        &self.attempt.claimed
    }

    /// The task's id, the same in every attempt: the natural idempotency key for a side effect.
    pub fn id(&self) -> TaskId {
        self.attempt.claimed.id
    }

    /// The payload of the task.
    pub fn payload(&self) -> &Payload {
        &self.attempt.claimed.payload
    }

    /// Which attempt this is, from 1.
    pub fn attempt(&self) -> u32 {
        self.attempt.claimed.attempt
    }

    /// How many attempts the task was granted.
    pub fn max_attempts(&self) -> u32 {
        self.attempt.claimed.max_attempts
    }

    /// How often the process of this task crashed since its last attempt that ended otherwise.
    /// [`Context::attempt`] does not count a crashed attempt.
    pub fn crashes(&self) -> u32 {
        self.attempt.claimed.crashes
    }

    /// The fencing token: it rises with every claim of the task and never falls.
    pub fn lease(&self) -> u32 {
        self.attempt.claimed.lease
    }

    /// The worker that runs the attempt.
    pub fn worker(&self) -> WorkerId {
        self.attempt.claimed.worker
    }

    /// The trace context of this attempt: send it as `traceparent`, and use it as the parent of the handler's
    /// own spans.
    pub fn trace(&self) -> Option<TraceContext> {
        self.attempt.trace.as_ref().map(|trace| trace.context).or(self.attempt.claimed.trace)
    }

    /// When the time limit of this attempt passes, if it has one.
    pub fn deadline(&self) -> Option<Instant> {
        self.attempt.deadline
    }

    /// Why the attempt was asked to end, if it was.
    pub fn cancel_reason(&self) -> Option<&CancelReason> {
        self.attempt.cancellation.reason()
    }

    /// Waits until the attempt is asked to end. Cancel safe.
    pub async fn cancelled(&self) -> &CancelReason {
        self.attempt.cancellation.cancelled().await
    }

    /// Stores a short text about the progress of the attempt.
    ///
    /// # Errors
    /// [`windlass_core::Error::LeaseLost`] if another attempt may have the task: stop.
    pub async fn progress(&self, text: impl Into<String> + Send) -> Result<()> {
        let claimed = &self.attempt.claimed;
        let lease = self.attempt.lease();
        match &self.attempt.source {
            Some(source) => source.progress(claimed.worker, lease, text.into()).await,
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never the payload: contexts end up in logs.
        f.debug_struct("Context")
            .field("id", &self.id())
            .field("attempt", &self.attempt())
            .field("lease", &self.lease())
            .finish_non_exhaustive()
    }
}
