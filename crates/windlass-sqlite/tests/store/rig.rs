//! A store in a folder of its own, with a clock that stands still, and the calls that every test makes.

use std::{path::PathBuf, sync::Arc, time::Duration};

use tempfile::TempDir;
use windlass_core::{
    ClaimAnswer, Claimed, Clock, Demand, Name, NewTask, NewWorker, Payload, SettleBatch, SettleItem, Settled,
    Settlement, Source, State, Store, TaskId, Timestamp, WorkerId, store::Depth, time::ManualClock,
};
use windlass_sqlite::{Location, Options, SqliteStore};

pub const START: Timestamp = Timestamp::from_ms(1_763_000_000_000);
pub const DONE: Settlement = Settlement::Done { output: None, note: None };

pub struct Rig {
    pub folder: TempDir,
    pub clock: Arc<ManualClock>,
    pub options: Options,
    pub store: Arc<SqliteStore>,
    batch_no: std::sync::atomic::AtomicU64,
}

impl Rig {
    pub async fn new() -> Self {
        Self::with(|options| options).await
    }

    pub async fn with(change: impl FnOnce(Options) -> Options) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::new(START));
        let shared: Arc<dyn Clock> = clock.clone();
        let options = change(Options::default().clock(shared).min_free(0, 0));
        let location = Location::File(folder.path().join("w.db"));
        let store = SqliteStore::open(&location, options.clone()).await.unwrap();
        Self { folder, clock, options, store, batch_no: 0.into() }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("w.db")
    }

    pub fn location(&self) -> Location {
        Location::File(self.path())
    }

    /// Closes the store with its running tasks, and opens it again.
    pub async fn reopen(&mut self) {
        self.store.close().await.unwrap();
        self.store = SqliteStore::open(&self.location(), self.options.clone()).await.unwrap();
    }

    pub async fn add(&self, n: usize) -> Vec<TaskId> {
        self.add_tasks(vec![task("a"); n]).await
    }

    pub async fn add_tasks(&self, tasks: Vec<NewTask>) -> Vec<TaskId> {
        self.store.enqueue(tasks).await.unwrap().into_iter().map(|enqueued| enqueued.id).collect()
    }

    pub async fn worker(&self) -> WorkerId {
        let worker = NewWorker {
            host: "here".into(),
            pid: 1,
            version: "1".into(),
            kinds: Vec::new(),
            queues: Vec::new(),
            slots: 10,
            lease_ttl: Duration::from_secs(10),
        };
        self.store.register(worker).await.unwrap()
    }

    pub async fn claim(&self, worker: WorkerId, n: u32) -> ClaimAnswer {
        let lanes = self.store.lane_records().await.unwrap();
        let kinds: Vec<Name> = lanes.iter().map(|lane| lane.kind.clone()).collect();
        let lanes = self.store.lanes(&kinds, &[]).await.unwrap().iter().map(|lane| lane.id).collect();
        self.store.claim(&[Demand::new(worker, 1, lanes, n)]).await.unwrap()
    }

    pub async fn settle(&self, worker: WorkerId, tasks: &[Claimed], settlement: &Settlement) -> Settled {
        self.store.settle(Arc::new(self.batch(worker, tasks, settlement))).await.unwrap()
    }

    pub fn batch(&self, worker: WorkerId, tasks: &[Claimed], settlement: &Settlement) -> SettleBatch {
        let batch_no = self.batch_no.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
        let item = |task: &Claimed| SettleItem::new(task, settlement.clone());
        SettleBatch { worker, settler_no: 1, batch_no, items: tasks.iter().map(item).collect() }
    }

    pub async fn finish(&self, n: u32) -> Vec<TaskId> {
        let worker = self.worker().await;
        let claimed = self.claim(worker, n).await.tasks;
        self.settle(worker, &claimed, &DONE).await;
        claimed.iter().map(|task| task.id).collect()
    }

    pub async fn state(&self, id: TaskId) -> State {
        self.store.task(id).await.unwrap().unwrap().state
    }

    pub async fn depth(&self) -> Depth {
        let lanes = self.store.lane_records().await.unwrap();
        lanes.iter().fold(Depth::default(), |mut sum, lane| {
            sum.scheduled += lane.depth.scheduled;
            sum.ready += lane.depth.ready;
            sum.running += lane.depth.running;
            sum.dead += lane.depth.dead;
            sum
        })
    }
}

pub fn task(kind: &str) -> NewTask {
    NewTask::new(kind, Payload::json(&kind).unwrap()).unwrap()
}

pub fn name(text: &str) -> Name {
    Name::new("name", text).unwrap()
}
