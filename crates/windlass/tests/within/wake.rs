//! A commit wakes an idle worker. Its polls are an hour apart, so only the notification can have brought the
//! task within the time of a test.

use std::{sync::Arc, time::Duration};

use tokio::sync::mpsc;
use tokio_postgres::IsolationLevel;
use windlass::{
    Client, State, TaskId, Worker, WorkerConfig, WorkerError,
    store::Store,
    worker::{DrainReport, WorkerHandle},
};

use crate::place::{Greet, Place, greet};

/// Far longer than any test.
const POLL: Duration = Duration::from_hours(1);

type Running = tokio::task::JoinHandle<Result<DrainReport, WorkerError>>;

/// A worker that reports which tasks it runs.
struct Idle {
    ran: mpsc::UnboundedReceiver<TaskId>,
    handle: WorkerHandle,
    running: Running,
}

impl Idle {
    fn start(store: Arc<dyn Store>) -> Self {
        async fn tell(
            _: Greet,
            ctx: windlass::Context,
            State(ran): State<mpsc::UnboundedSender<TaskId>>,
        ) -> Result<(), String> {
            ran.send(ctx.id()).map_err(|error| error.to_string())
        }
        let (told, ran) = mpsc::unbounded_channel();
        let config = WorkerConfig { poll_interval: POLL, poll_interval_max: POLL, ..WorkerConfig::default() };
        let worker = Worker::builder(store).state(told).handle(tell).config(config).build().unwrap();
        let handle = worker.handle();
        Self { ran, handle, running: tokio::spawn(worker.run(std::future::pending::<()>())) }
    }

    async fn next(&mut self) -> TaskId {
        self.ran.recv().await.unwrap()
    }

    async fn stop(self) {
        self.handle.drain();
        self.running.await.unwrap().unwrap();
    }
}

/// A lane of its kind exists, and is empty.
async fn with_lane(place: &Place) -> Arc<dyn Store> {
    let store = place.store().await;
    let client = Client::new(store.clone());
    let id = client.enqueue(greet("lane")).await.unwrap().id;
    client.cancel(id, "only for its lane").await.unwrap();
    store
}

#[tokio::test]
async fn a_task_of_psql_is_picked_up_without_a_poll() {
    let place = Place::new();
    let mut worker = Idle::start(with_lane(&place).await);
    for _ in 0..3 {
        place.until_armed().await;
        let id = place.psql("SELECT id FROM windlass.enqueue('greet', '\"Ada\"', queue => 'mail')").await;
        assert_eq!(worker.next().await.to_string(), id);
    }
    worker.stop().await;
}

#[tokio::test]
async fn a_task_in_a_new_lane_is_picked_up_without_a_poll() {
    let place = Place::new();
    let store = place.store().await;
    let mut worker = Idle::start(store.clone());
    worker.handle.started().await;
    place.until_listening(&*store).await;
    let id = place.psql("SELECT id FROM windlass.enqueue('greet', '\"Ada\"', queue => 'never seen')").await;
    assert_eq!(worker.next().await.to_string(), id);
    worker.stop().await;
}

/// The commit wakes workers that are idle at that time, not those that were idle when the task was added.
async fn becomes_idle_meanwhile(level: IsolationLevel) {
    let place = Place::new();
    let client = Client::new(place.store().await);
    let store = with_lane(&place).await;
    let mut db = place.caller().await;
    let mut tx = db.build_transaction().isolation_level(level).start().await.unwrap();
    let id = client.enqueue(greet("Ada")).within(&mut tx).await.unwrap().id;
    let mut worker = Idle::start(store);
    place.until_armed().await;
    tx.commit().await.unwrap();
    assert_eq!(worker.next().await, id);
    worker.stop().await;
}

#[tokio::test]
async fn a_commit_wakes_a_worker_idle_since_the_insert() {
    becomes_idle_meanwhile(IsolationLevel::ReadCommitted).await;
}

#[tokio::test]
async fn a_commit_wakes_a_worker_idle_since_the_snapshot() {
    becomes_idle_meanwhile(IsolationLevel::RepeatableRead).await;
    becomes_idle_meanwhile(IsolationLevel::Serializable).await;
}

#[tokio::test]
async fn a_rollback_wakes_no_worker_and_the_next_commit_does() {
    let place = Place::new();
    let client = Client::new(place.store().await);
    let mut worker = Idle::start(with_lane(&place).await);
    place.until_armed().await;
    let mut db = place.caller().await;
    let mut tx = db.transaction().await.unwrap();
    client.enqueue(greet("Ada")).within(&mut tx).await.unwrap();
    tx.rollback().await.unwrap();
    let mut tx = db.transaction().await.unwrap();
    let id = client.enqueue(greet("Ada")).within(&mut tx).await.unwrap().id;
    tx.commit().await.unwrap();
    assert_eq!(worker.next().await, id);
    worker.stop().await;
}
