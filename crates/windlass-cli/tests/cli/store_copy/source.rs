//! A store with every kind of row, and a worker for it.

use std::{path::Path, sync::Arc, time::Duration};

use windlass_core::{
    Claimed, Demand, JobChange, JobState, LaneId, LeaseRef, Name, NewTask, NewWorker, OnFailure, Payload,
    SettleBatch, SettleItem, Settlement, Source as _, Start, Store, TaskId, Timestamp, TraceContext,
    WorkerId, task::Key,
};
use windlass_sqlite::{Durability, Location, Options, SqliteStore};

use crate::support::windlass;

pub fn name(text: &str) -> Name {
    Name::new("name", text).unwrap()
}

/// The trace of a task: every second task has one.
pub fn trace(n: u32) -> Option<TraceContext> {
    n.is_multiple_of(2).then_some(TraceContext { trace_id: 7, span_id: u64::from(n) + 1, sampled: true })
}

pub fn task(n: u32) -> NewTask {
    NewTask { trace: trace(n), ..NewTask::new("echo", Payload::json(&n).unwrap()).unwrap() }
}

pub fn keyed(n: u32, key: &str) -> NewTask {
    NewTask { key: Some(Key { text: key.to_owned(), ignore_conflict: false }), ..task(n) }
}

pub fn of_job(n: u32, job: &str) -> NewTask {
    NewTask { job: Some(name(job)), ..task(n) }
}

fn step(n: u32, workflow: &str, on_failure: OnFailure) -> NewTask {
    NewTask { workflow: Some(name(workflow)), on_failure: Some(on_failure), ..task(n) }
}

pub async fn add(store: &dyn Store, tasks: Vec<NewTask>) -> Vec<TaskId> {
    store.enqueue(tasks).await.unwrap().iter().map(|enqueued| enqueued.id).collect()
}

pub async fn open_file(folder: &Path) -> Arc<SqliteStore> {
    let options = Options::new().durability(Durability::Normal).min_free(0, 0);
    SqliteStore::open(&Location::File(folder.join("windlass.db")), options).await.unwrap()
}

/// A worker that claims and settles on the test's orders.
pub struct Hand<'a> {
    store: &'a dyn Store,
    pub worker: WorkerId,
    no: u64,
}

impl<'a> Hand<'a> {
    pub async fn new(store: &'a dyn Store) -> Self {
        let worker = NewWorker {
            host: "here".to_owned(),
            pid: 1,
            version: "test".to_owned(),
            kinds: vec![name("echo")],
            queues: Vec::new(),
            slots: 100,
            lease_ttl: Duration::from_mins(10),
        };
        let worker = store.register(worker).await.unwrap();
        Self { store, worker, no: 0 }
    }

    pub async fn claim(&mut self, n: u32) -> Vec<Claimed> {
        self.no += 1;
        let lanes = self.store.lanes(&[name("echo")], &[]).await.unwrap();
        let lanes: Arc<[LaneId]> = lanes.iter().map(|lane| lane.id).collect();
        let demand = Demand::new(self.worker, self.no, lanes, n);
        self.store.claim(&[demand]).await.unwrap().tasks
    }

    pub async fn settle(&mut self, claimed: &Claimed, settlement: Settlement) {
        self.no += 1;
        let items = vec![SettleItem::new(claimed, settlement)];
        let batch = SettleBatch { worker: self.worker, settler_no: 0, batch_no: self.no, items };
        assert!(self.store.settle(Arc::new(batch)).await.unwrap().fenced.is_empty());
    }
}

pub fn done(text: &str) -> Settlement {
    Settlement::Done { output: Some(Payload::json(&text).unwrap()), note: None }
}

/// The ids of the rows in a full source.
#[derive(Default)]
pub struct Made {
    pub done: Option<TaskId>,
    pub dead: Option<TaskId>,
    pub retried: Option<TaskId>,
    pub ready: Vec<TaskId>,
    pub ran: Option<TaskId>,
    pub of_job: Vec<TaskId>,
    pub line: Vec<TaskId>,
    pub stuck: Vec<TaskId>,
    pub paused: Option<TaskId>,
}

/// Fills a store with every kind of row, and leaves it as a killed process would.
pub async fn fill(folder: &Path) -> Made {
    windlass(folder, &["migrate"]).done();
    windlass(folder, &["schedules", "set", "nightly", "echo", "--cron", "0 3 * * *"]).done();
    let store = open_file(folder).await;
    let mut made = Made::default();
    let mut hand = Hand::new(&*store).await;
    // In this order: a done attempt with output, a task that is gone except for its key, a dead one, one
    // that failed once.
    let first = add(&*store, vec![keyed(1, "done"), keyed(2, "gone"), task(3), task(4)]).await;
    let claimed = hand.claim(4).await;
    hand.settle(&claimed[0], done("one")).await;
    hand.settle(&claimed[1], done("two")).await;
    hand.settle(&claimed[2], Settlement::Dead { error: "no way".to_owned() }).await;
    let later = Timestamp::from_ms(claimed[3].id.enqueued_at().as_ms() + 3_600_000);
    hand.settle(&claimed[3], Settlement::Retry { due_at: later, error: "not yet".to_owned() }).await;
    (made.done, made.dead, made.retried) = (Some(first[0]), Some(first[2]), Some(first[3]));

    // A workflow whose first step is dead, and one in progress.
    made.stuck =
        add(&*store, vec![step(10, "stuck", OnFailure::Block), step(11, "stuck", OnFailure::Block)]).await;
    let head = hand.claim(1).await;
    hand.settle(&head[0], Settlement::Dead { error: "broken".to_owned() }).await;
    made.line = add(&*store, (20..23).map(|n| step(n, "line", OnFailure::Cancel)).collect()).await;

    // A job with a limit and two running tasks, a paused job, and a job with a delay.
    let limit = JobChange { concurrency: Some(Some(2)), ..JobChange::default() };
    store.gates().set_job(&name("press"), &limit).await.unwrap();
    made.of_job = add(&*store, (30..35).map(|n| of_job(n, "press")).collect()).await;
    let running = hand.claim(3).await;
    assert_eq!(running.len(), 3, "the head of the line and two of the job");
    let lease = LeaseRef { id: running[0].id, lease: running[0].lease };
    store.progress(hand.worker, lease, "half".to_owned()).await.unwrap();
    let paused = JobChange { state: Some(JobState::Paused), ..JobChange::default() };
    store.gates().set_job(&name("idle"), &paused).await.unwrap();
    add(&*store, vec![of_job(40, "idle")]).await;
    let delay = JobChange { delay: Some(Some(Duration::from_hours(2))), ..JobChange::default() };
    store.gates().set_job(&name("slow"), &delay).await.unwrap();

    // A running plain task, ready ones of several priorities, a scheduled one, and one in a paused queue.
    made.ran = Some(add(&*store, vec![task(50)]).await[0]);
    assert_eq!(hand.claim(1).await.len(), 1);
    let of_priority = |n: u32, priority: i32| NewTask { priority, ..task(n) };
    made.ready =
        add(&*store, vec![of_priority(60, 0), of_priority(61, 5), of_priority(62, 0), of_priority(63, 5)])
            .await;
    add(&*store, vec![NewTask { start: Start::In(Duration::from_hours(3)), ..keyed(70, "later") }]).await;
    let elsewhere = NewTask { queue: name("closed"), ..task(80) };
    made.paused = Some(add(&*store, vec![elsewhere]).await[0]);
    store.set_queue_paused(&name("closed"), true).await.unwrap();
    store.close().await.unwrap();
    drop(store);
    let file = rusqlite::Connection::open(folder.join("windlass.db")).unwrap();
    assert_eq!(file.execute("DELETE FROM history WHERE key = 'gone'", []).unwrap(), 1);
    file.close().unwrap();
    made
}
