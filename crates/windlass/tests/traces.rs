//! One trace from the enqueue to the settlement, with the right parents.
#![cfg(feature = "sqlite")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex};

use windlass::{
    Client, Context, Outcome, State, Task, TaskState, Worker, testing,
    trace::{Span, SpanKind, SpanSink, TraceContext, Tracer, Value},
};

#[derive(Default)]
struct Kept(Mutex<Vec<Span>>);

impl SpanSink for Kept {
    fn record(&self, span: Span) {
        self.0.lock().unwrap().push(span);
    }
}

impl Kept {
    /// The spans with this verb, in the order of their ends.
    fn of(&self, verb: &str) -> Vec<Span> {
        let spans = self.0.lock().unwrap();
        spans.iter().filter(|span| span.name.split(' ').next() == Some(verb)).cloned().collect()
    }
}

#[derive(serde::Serialize, serde::Deserialize, Task)]
struct Look(u32);

type Seen = Arc<Mutex<Vec<Option<TraceContext>>>>;

async fn look(Look(fails): Look, ctx: Context, State(seen): State<Seen>) -> Outcome {
    seen.lock().unwrap().push(ctx.trace());
    if ctx.attempt() <= fails { Outcome::dead("a hush-hush reason") } else { Outcome::Done(None) }
}

fn attribute(span: &Span, key: &str) -> Option<Value> {
    span.attributes.iter().find(|(name, _)| *name == key).map(|(_, value)| value.clone())
}

#[tokio::test]
async fn a_task_is_one_trace_of_four_nested_spans() {
    let (kept, seen) = (Arc::new(Kept::default()), Seen::default());
    let store = testing::store().await.unwrap();
    let tracer = Tracer::new(kept.clone());
    let client = Client::new(store.clone()).tracer(tracer.clone());
    let remote = TraceContext { trace_id: 77, span_id: 5, sampled: true };
    let id = client.enqueue(Look(0)).job("j").trace(remote).await.unwrap().id;
    let worker = Worker::builder(store).tracer(tracer).state(seen.clone()).handle(look);
    testing::run_until_idle(worker).await.unwrap();

    let chain = ["enqueue", "claim", "run", "settle"].map(|verb| {
        let spans = kept.of(verb);
        assert_eq!(spans.len(), 1, "{verb}");
        spans[0].clone()
    });
    let mut parent = remote.span_id;
    for span in &chain {
        assert_eq!((span.context.trace_id, span.parent), (77, Some(parent)), "{}", span.name);
        assert!(span.start <= span.end && span.failure.is_none(), "{span:?}");
        assert_eq!(attribute(span, "messaging.message.id"), Some(Value::Text(id.to_string())));
        assert_eq!(attribute(span, "windlass.job"), Some(Value::Text("j".to_owned())));
        parent = span.context.span_id;
    }
    let kinds = chain.clone().map(|span| span.kind);
    assert_eq!(kinds, [SpanKind::Producer, SpanKind::Consumer, SpanKind::Internal, SpanKind::Internal]);
    assert_eq!(*seen.lock().unwrap(), [Some(chain[2].context)], "the handler stands in the span of its run");
    assert_eq!(attribute(&chain[2], "windlass.attempt"), Some(Value::Number(1)));
}

#[tokio::test]
async fn an_unsampled_trace_is_passed_on_without_spans() {
    let (kept, seen) = (Arc::new(Kept::default()), Seen::default());
    let store = testing::store().await.unwrap();
    let tracer = Tracer::new(kept.clone());
    let client = Client::new(store.clone()).tracer(tracer.clone());
    let remote = TraceContext { trace_id: 77, span_id: 5, sampled: false };
    client.enqueue(Look(0)).trace(remote).await.unwrap();
    let worker = Worker::builder(store).tracer(tracer).state(seen.clone()).handle(look);
    testing::run_until_idle(worker).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), [Some(remote)]);
    assert_eq!(*kept.0.lock().unwrap(), []);
}

#[tokio::test]
async fn without_a_tracer_a_trace_is_only_handed_on() {
    let seen = Seen::default();
    let store = testing::store().await.unwrap();
    let client = Client::new(store.clone());
    let remote = TraceContext { trace_id: 77, span_id: 5, sampled: true };
    client.enqueue(Look(0)).trace(remote).await.unwrap();
    client.enqueue(Look(0)).await.unwrap();
    testing::run_until_idle(Worker::builder(store).state(seen.clone()).handle(look)).await.unwrap();
    let mut seen = seen.lock().unwrap().clone();
    seen.sort_by_key(Option::is_none);
    assert_eq!(seen, [Some(remote), None]);
}

#[tokio::test]
async fn a_failure_shows_in_the_run_and_its_text_does_not() {
    let kept = Arc::new(Kept::default());
    let store = testing::store().await.unwrap();
    let worker =
        Worker::builder(store.clone()).tracer(Tracer::new(kept.clone())).state(Seen::default()).handle(look);
    // The caller does not trace, so the trace begins with the claim.
    let id = Client::new(store.clone()).enqueue(Look(9)).await.unwrap().id;
    testing::run_until_idle(worker).await.unwrap();
    assert_eq!(store.task(id).await.unwrap().unwrap().state, TaskState::Dead);
    let (claim, run) = (&kept.of("claim")[0], &kept.of("run")[0]);
    assert_eq!((claim.parent, run.parent), (None, Some(claim.context.span_id)));
    assert_eq!(run.failure, Some("the task failed for good"));
    assert_eq!(attribute(run, "windlass.outcome"), Some(Value::Text("dead".to_owned())));
    let all = format!("{:?}", kept.0.lock().unwrap());
    assert!(!all.contains("hush"), "{all}");
}

#[tokio::test]
async fn a_batch_is_one_span_and_its_tasks_are_its_children() {
    let kept = Arc::new(Kept::default());
    let store = testing::store().await.unwrap();
    let tracer = Tracer::new(kept.clone());
    let client = Client::new(store.clone()).tracer(tracer.clone());
    client.enqueue_all([Look(0), Look(0), Look(0)]).await.unwrap();
    let worker = Worker::builder(store).tracer(tracer).state(Seen::default()).handle(look);
    testing::run_until_idle(worker).await.unwrap();
    let (enqueues, claims) = (kept.of("enqueue"), kept.of("claim"));
    assert_eq!((enqueues.len(), claims.len()), (1, 3));
    assert_eq!(attribute(&enqueues[0], "messaging.batch.message_count"), Some(Value::Number(3)));
    assert!(claims.iter().all(|claim| claim.parent == Some(enqueues[0].context.span_id)));
}
