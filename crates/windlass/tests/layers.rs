//! Layers around every run: what they see, in which order, and that their faults affect only their own task.
#![cfg(feature = "sqlite")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use windlass::{Client, Context, Next, Outcome, RetryPolicy, Task, TaskRecord, TaskState, Worker, testing};

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
enum Way {
    Fine,
    Fail,
    Panic,
    Hang,
}

#[derive(serde::Serialize, serde::Deserialize, Task)]
#[task(max_attempts = 1)]
struct Go(Way);

async fn go(Go(way): Go, _ctx: Context) -> Outcome {
    match way {
        Way::Fine => Outcome::Done(None),
        Way::Fail => Outcome::retry("no luck"),
        Way::Panic => panic!("oh no"),
        Way::Hang => std::future::pending().await,
    }
}

type Log = Arc<Mutex<Vec<String>>>;

fn note(log: &Log, line: impl Into<String>) {
    log.lock().unwrap().push(line.into());
}

/// A layer that logs what it sees before and after.
fn noting(log: &Log, name: &'static str) -> impl windlass::Layer {
    let log = log.clone();
    move |ctx: Context, next: Next| {
        let log = log.clone();
        async move {
            let task = ctx.task();
            let (kind, job) = (&task.lane.kind, task.job.as_ref().map(ToString::to_string));
            note(&log, format!("{name} before {kind} attempt {} job {job:?}", ctx.attempt()));
            let outcome = next.run().await;
            note(&log, format!("{name} after {outcome:?}"));
            outcome
        }
    }
}

async fn ended(
    store: windlass::store::SharedStore,
    worker: windlass::worker::WorkerBuilder,
    way: Way,
) -> TaskRecord {
    let client = Client::new(store);
    let id = client.enqueue(Go(way)).job("j").timeout(Duration::from_millis(50)).await.unwrap().id;
    testing::run_until_idle(worker).await.unwrap();
    client.task(id).await.unwrap().unwrap()
}

#[tokio::test]
async fn the_first_layer_is_the_outermost() {
    let (log, store) = (Log::default(), testing::store().await.unwrap());
    let worker =
        Worker::builder(store.clone()).layer(noting(&log, "outer")).layer(noting(&log, "inner")).handle(go);
    let task = ended(store, worker, Way::Fine).await;
    assert_eq!(task.state, TaskState::Done);
    assert_eq!(
        *log.lock().unwrap(),
        [
            "outer before go attempt 1 job Some(\"j\")",
            "inner before go attempt 1 job Some(\"j\")",
            "inner after Done(None)",
            "outer after Done(None)",
        ]
    );
}

#[tokio::test]
async fn a_layer_sees_ends_that_the_handler_did_not_choose() {
    for (way, part) in
        [(Way::Fail, "no luck"), (Way::Panic, "panicked: oh no"), (Way::Hang, "timed out after")]
    {
        let (log, store) = (Log::default(), testing::store().await.unwrap());
        let worker = Worker::builder(store.clone()).layer(noting(&log, "layer")).handle(go);
        let task = ended(store, worker, way).await;
        assert_eq!(task.state, TaskState::Dead);
        assert!(task.error.as_deref().unwrap().contains(part), "{way:?}: {task:?}");
        let log = log.lock().unwrap();
        assert!(log.last().unwrap().contains(part), "{way:?}: {log:?}");
    }
}

#[tokio::test]
async fn a_panic_in_a_layer_hurts_only_its_own_task() {
    let store = testing::store().await.unwrap();
    let client = Client::new(store.clone());
    let bad = client.enqueue(Go(Way::Fine)).job("bad").await.unwrap().id;
    let good = client.enqueue(Go(Way::Fine)).job("good").await.unwrap().id;
    let worker = Worker::builder(store)
        .layer(|ctx: Context, next: Next| async move {
            let outcome = next.run().await;
            let job = ctx.task().job.as_ref().map(ToString::to_string);
            assert_ne!(job.as_deref(), Some("bad"), "the layer itself");
            outcome
        })
        .handle(go);
    testing::run_until_idle(worker).await.unwrap();
    let bad = client.task(bad).await.unwrap().unwrap();
    assert_eq!(bad.state, TaskState::Dead);
    assert!(bad.error.as_deref().unwrap().contains("the layer itself"), "{bad:?}");
    assert_eq!(client.task(good).await.unwrap().unwrap().state, TaskState::Done);
}

#[tokio::test]
async fn a_layer_that_never_ends_is_cut_off_after_the_deadline() {
    let store = testing::store().await.unwrap();
    let worker = Worker::builder(store.clone())
        .layer(|_: Context, next: Next| async move {
            drop(next);
            std::future::pending().await
        })
        .handle(go);
    let task = ended(store, worker, Way::Fine).await;
    assert!(task.error.as_deref().unwrap().contains("timed out after"), "{task:?}");
}

#[tokio::test]
async fn a_layer_may_decide_otherwise() {
    let store = testing::store().await.unwrap();
    let worker = Worker::builder(store.clone())
        .layer(|_: Context, next: Next| async move {
            match next.run().await {
                Outcome::Retry { error, .. } if error == "no luck" => Outcome::cancel("not worth it"),
                outcome => outcome,
            }
        })
        .handle(go);
    let task = ended(store, worker, Way::Fail).await;
    assert_eq!((task.state, task.error.as_deref()), (TaskState::Cancelled, Some("not worth it")));
}

#[tokio::test]
async fn every_attempt_goes_through_the_layers() {
    let (log, store) = (Log::default(), testing::store().await.unwrap());
    let client = Client::new(store.clone());
    let at_once = RetryPolicy { base: Duration::ZERO, max: Duration::ZERO, jitter_percent: 0 };
    let id = client.enqueue(Go(Way::Fail)).max_attempts(3).retry(at_once).await.unwrap().id;
    let worker = Worker::builder(store).layer(noting(&log, "layer")).handle(go).build().unwrap();
    let running = tokio::spawn(worker.run(std::future::pending::<()>()));
    assert_eq!(client.wait(id, Duration::from_mins(1)).await.unwrap().state, TaskState::Dead);
    running.abort();
    let befores = log.lock().unwrap().iter().filter(|line| line.contains("before")).count();
    assert_eq!(befores, 3);
}
