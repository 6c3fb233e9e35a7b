//! A worker on a staged store, with handlers that the test controls.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use tokio::sync::Semaphore;
use windlass::{
    Context, Name, NewTask, Outcome, Payload, TaskId, TaskRecord, TaskState, Worker, WorkerConfig,
    WorkerError,
    handler::{RawHandler, Registry},
    store::{Rules, Store},
    time::{Clock, Timestamp},
    worker::{DrainReport, WorkerHandle, WorkerStatus},
};
use windlass_conformance::MemoryStore;

use crate::staged::Staged;

/// How long a test waits for an event that must happen before it fails.
const PATIENCE: Duration = Duration::from_secs(20);

/// Real time.
struct RealClock(std::time::Instant);

impl Clock for RealClock {
    fn wall(&self) -> Timestamp {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        Timestamp::from_ms(now.as_millis() as i64)
    }
    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }
}

pub fn memory() -> Arc<MemoryStore> {
    Arc::new(MemoryStore::new(Arc::new(RealClock(std::time::Instant::now())), Rules::default()))
}

pub fn staged() -> Arc<Staged> {
    Arc::new(Staged::new(memory()))
}

/// Short times, so that a test of leases takes tenths of a second.
pub fn quick() -> WorkerConfig {
    WorkerConfig {
        slots: 4,
        poll_interval: Duration::from_millis(10),
        poll_interval_max: Duration::from_millis(50),
        lease_ttl: Duration::from_millis(600),
        heartbeat: Duration::from_millis(100),
        sweep: Duration::from_millis(50),
        ..WorkerConfig::default()
    }
}

type Body = dyn Fn(Context) -> futures::BoxFuture + Send + Sync;

mod futures {
    pub type BoxFuture = std::pin::Pin<Box<dyn Future<Output = windlass::Outcome> + Send>>;
}

/// A handler made of a closure; counts how many of its calls are open at once.
pub struct Act {
    body: Box<Body>,
    pub open: AtomicUsize,
    pub most_open: AtomicUsize,
    pub calls: AtomicUsize,
}

pub fn act<F, Fut>(body: F) -> Arc<Act>
where
    F: Fn(Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Outcome> + Send + 'static,
{
    Arc::new(Act {
        body: Box::new(move |context| Box::pin(body(context))),
        open: AtomicUsize::new(0),
        most_open: AtomicUsize::new(0),
        calls: AtomicUsize::new(0),
    })
}

/// Also counts down when the handler's future is dropped.
struct Open<'a>(&'a AtomicUsize);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl RawHandler for Act {
    async fn call(&self, context: Context) -> Outcome {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let open = self.open.fetch_add(1, Ordering::SeqCst) + 1;
        let _open = Open(&self.open);
        self.most_open.fetch_max(open, Ordering::SeqCst);
        (self.body)(context).await
    }
}

/// A handler that waits until the test adds a permit.
pub fn gated(gate: &Arc<Semaphore>) -> Arc<Act> {
    let gate = gate.clone();
    act(move |_| {
        let gate = gate.clone();
        async move {
            gate.acquire().await.unwrap().forget();
            Outcome::Done(None)
        }
    })
}

/// A running worker.
pub struct Running {
    pub handle: WorkerHandle,
    task: tokio::task::JoinHandle<Result<DrainReport, WorkerError>>,
}

pub fn start(store: Arc<dyn Store>, handler: Arc<Act>, config: WorkerConfig) -> Running {
    let mut registry = Registry::new();
    registry.insert(Name::new("kind", "t").unwrap(), handler).unwrap();
    run(Worker::new(store, registry, config).unwrap())
}

pub fn run(worker: Worker) -> Running {
    let handle = worker.handle();
    Running { handle, task: tokio::spawn(worker.run(std::future::pending())) }
}

impl Running {
    pub fn status(&self) -> WorkerStatus {
        self.handle.status()
    }

    /// Drops the worker while it runs.
    pub fn abort(self) {
        self.task.abort();
    }

    pub async fn ended(self) -> Result<DrainReport, WorkerError> {
        tokio::time::timeout(PATIENCE, self.task).await.expect("the worker did not stop").unwrap()
    }

    /// Drains and checks that no slot and no lease is left over (SLOT-BALANCED).
    pub async fn stop(self) -> DrainReport {
        self.handle.drain();
        let handle = self.handle.clone();
        let report = self.ended().await.unwrap();
        assert_no_leak(&handle);
        report
    }
}

pub fn assert_no_leak(handle: &WorkerHandle) {
    let status = handle.status();
    assert_eq!((status.running, status.in_flight, status.unsettled), (0, 0, 0), "{status:?}");
}

pub async fn enqueue(store: &dyn Store, n: usize) -> Vec<TaskId> {
    let task = NewTask::new("t", Payload::json(&0).unwrap()).unwrap();
    store.enqueue(vec![task; n]).await.unwrap().into_iter().map(|enqueued| enqueued.id).collect()
}

pub async fn record(store: &dyn Store, id: TaskId) -> TaskRecord {
    store.task(id).await.unwrap().unwrap()
}

/// Waits until a condition holds. The test sets the order of events; the machine sets the speed.
pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let met = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, met).await.unwrap_or_else(|_| panic!("waited in vain: {what}"));
}

pub async fn until_state(store: &dyn Store, ids: &[TaskId], state: TaskState) {
    until(&format!("all {state}"), async || {
        for id in ids {
            if record(store, *id).await.state != state {
                return false;
            }
        }
        true
    })
    .await;
}
