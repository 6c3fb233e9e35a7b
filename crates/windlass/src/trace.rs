//! Spans of a task: enqueue, claim, run and settle, each the parent of the next.
//!
//! Without a [`Tracer`] none of this code runs, and a task's trace is only passed on. With one, the sampled
//! flag of the caller decides: an unsampled trace is passed on unchanged. A trace that begins here is
//! sampled.

pub(crate) mod enqueue;

use std::{
    fmt,
    hash::{BuildHasher, RandomState},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

#[doc(inline)]
pub use windlass_core::trace::{
    ParseTraceError, Span, SpanCounts, SpanKind, SpanSink, TRACEPARENT, TRACESTATE, TraceContext, Value,
};
use windlass_core::{Claimed, NewTask, Outcome};

/// Makes spans and gives them to an exporter. Cheap to clone.
#[derive(Clone)]
pub struct Tracer {
    sink: Arc<dyn SpanSink>,
    ids: Arc<Ids>,
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracer").finish_non_exhaustive()
    }
}

/// Random numbers without coordination: a counter, hashed with a key from the operating system.
struct Ids {
    key: RandomState,
    next: AtomicU64,
}

impl Ids {
    fn draw(&self) -> u64 {
        // Zero means "none" in a trace context.
        self.key.hash_one(self.next.fetch_add(1, Ordering::Relaxed)).max(1)
    }
}

/// A span that has not ended.
#[derive(Clone, Copy)]
struct Open {
    context: TraceContext,
    parent: Option<u64>,
    start: SystemTime,
}

impl Tracer {
    /// Sends every span to this sink.
    pub fn new(sink: Arc<dyn SpanSink>) -> Self {
        Self { sink, ids: Arc::new(Ids { key: RandomState::new(), next: AtomicU64::new(0) }) }
    }

    /// Begins a span for code that brings tasks from elsewhere, as a child of `parent` or as the first of a
    /// trace. `None` if the trace is not sampled; the caller then passes it on unchanged.
    pub fn begin(&self, parent: Option<TraceContext>) -> Option<Begun> {
        Some(Begun { tracer: self.clone(), open: self.open(parent, SystemTime::now())? })
    }

    /// How many spans were exported and dropped so far.
    pub fn counts(&self) -> SpanCounts {
        self.sink.counts()
    }

    /// A span as a child of another, or as the first of a new trace; `None` if that trace is not sampled.
    fn open(&self, parent: Option<TraceContext>, start: SystemTime) -> Option<Open> {
        if parent.is_some_and(|parent| !parent.sampled) {
            return None;
        }
        let trace_id = parent.map_or_else(
            || u128::from(self.ids.draw()) << 64 | u128::from(self.ids.draw()),
            |parent| parent.trace_id,
        );
        let context = TraceContext { trace_id, span_id: self.ids.draw(), sampled: true };
        Some(Open { context, parent: parent.map(|parent| parent.span_id), start })
    }

    fn close(&self, open: Open, what: What, failure: Option<&'static str>) {
        self.sink.record(Span {
            context: open.context,
            parent: open.parent,
            name: what.name,
            kind: what.kind,
            start: open.start,
            end: SystemTime::now(),
            attributes: what.attributes,
            failure,
        });
    }

    /// Records the claim that brought this task, and opens the span of its run.
    pub(crate) fn claimed(&self, task: &Claimed, asked_at: SystemTime) -> Option<RunTrace> {
        let claim = self.open(task.trace, asked_at)?;
        let run = self.open(Some(claim.context), SystemTime::now())?;
        self.close(claim, What::of_attempt("claim", SpanKind::Consumer, task), None);
        Some(RunTrace {
            tracer: self.clone(),
            context: run.context,
            parent: run.parent,
            start: run.start,
            end: OnceLock::new(),
        })
    }
}

/// A span that has begun. If it is dropped without an end, it is not exported.
#[must_use = "a span is exported when it ends"]
pub struct Begun {
    tracer: Tracer,
    open: Open,
}

impl Begun {
    /// The trace context for the children of this span.
    pub fn context(&self) -> TraceContext {
        self.open.context
    }

    /// Ends it. No attribute may contain a payload, an address or the text of an error.
    pub fn end(
        self,
        name: String,
        kind: SpanKind,
        attributes: Vec<(&'static str, Value)>,
        failure: Option<&'static str>,
    ) {
        self.tracer.close(self.open, What { name, kind, attributes }, failure);
    }
}

impl fmt::Debug for Begun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Begun").field("context", &self.open.context).finish_non_exhaustive()
    }
}

/// The contents of a span.
struct What {
    name: String,
    kind: SpanKind,
    attributes: Vec<(&'static str, Value)>,
}

impl What {
    fn of_attempt(verb: &'static str, kind: SpanKind, task: &Claimed) -> Self {
        let mut attributes = vec![
            ("messaging.system", text("windlass")),
            ("messaging.operation.name", text(verb)),
            ("messaging.destination.name", text(&task.lane.queue)),
            ("messaging.message.id", Value::Text(task.id.to_string())),
            ("windlass.kind", text(&task.lane.kind)),
            ("windlass.attempt", Value::Number(task.attempt.into())),
            ("windlass.worker", Value::Text(task.worker.to_string())),
        ];
        attributes.extend(task.job.as_ref().map(|job| ("windlass.job", text(job))));
        attributes.extend(task.workflow.as_ref().map(|workflow| ("windlass.workflow", text(workflow))));
        Self { name: format!("{verb} {}", task.lane.kind), kind, attributes }
    }

    fn of_enqueue(tasks: &[NewTask]) -> Self {
        let mut attributes =
            vec![("messaging.system", text("windlass")), ("messaging.operation.name", text("enqueue"))];
        let [task] = tasks else {
            attributes.push(("messaging.batch.message_count", Value::Number(tasks.len() as i64)));
            let name = format!("enqueue {} tasks", tasks.len());
            return Self { name, kind: SpanKind::Producer, attributes };
        };
        attributes.push(("messaging.destination.name", text(&task.queue)));
        attributes.push(("windlass.kind", text(&task.kind)));
        attributes.extend(task.job.as_ref().map(|job| ("windlass.job", text(job))));
        attributes.extend(task.workflow.as_ref().map(|workflow| ("windlass.workflow", text(workflow))));
        Self { name: format!("enqueue {}", task.kind), kind: SpanKind::Producer, attributes }
    }
}

fn text(text: impl AsRef<str>) -> Value {
    Value::Text(text.as_ref().to_owned())
}

/// The trace of one attempt, from its claim to its settlement.
pub(crate) struct RunTrace {
    tracer: Tracer,
    /// The trace context of the handler.
    pub(crate) context: TraceContext,
    parent: Option<u64>,
    start: SystemTime,
    end: OnceLock<SystemTime>,
}

impl RunTrace {
    /// The handler has ended.
    pub(crate) fn ended(&self, task: &Claimed, outcome: &Outcome) {
        let (name, failure) = match outcome {
            Outcome::Done(_) => ("done", None),
            Outcome::Retry { .. } => ("retry", Some("the attempt failed")),
            Outcome::Snooze(_) => ("snooze", None),
            Outcome::Cancel(_) => ("cancelled", None),
            Outcome::Dead(_) => ("dead", Some("the task failed for good")),
            Outcome::Release => ("released", None),
        };
        let mut what = What::of_attempt("run", SpanKind::Internal, task);
        what.attributes.push(("windlass.outcome", text(name)));
        let open = Open { context: self.context, parent: self.parent, start: self.start };
        self.tracer.close(open, what, failure);
        // The first end counts, as it does for the attempt.
        let _ = self.end.set(SystemTime::now());
    }

    /// The store has answered the settlement.
    pub(crate) fn settled(&self, task: &Claimed, is_fenced: bool) {
        let start = self.end.get().copied().unwrap_or(self.start);
        if let Some(open) = self.tracer.open(Some(self.context), start) {
            let failure = is_fenced.then_some("the lease was lost");
            self.tracer.close(open, What::of_attempt("settle", SpanKind::Internal, task), failure);
        }
    }
}
