//! How a worker follows admission control, and how its slots change while it runs.

use std::{
    fs,
    sync::{Arc, atomic::Ordering},
};

use tokio::sync::Semaphore;
use windlass::{
    Name, TaskState, Worker, WorkerConfig,
    admission::{AdmissionConfig, Controller},
    handler::Registry,
    store::{Store as _, WorkerRecord},
};
use windlass_conformance::MemoryStore;

use crate::rig::{Running, enqueue, gated, memory, quick, run, start, until, until_state};

async fn seen(store: &MemoryStore) -> WorkerRecord {
    store.workers().await.unwrap().remove(0)
}

/// A control group of a megabyte, as a folder: its memory is never ample.
struct Group(tempfile::TempDir);

impl Group {
    fn new() -> Self {
        let group = Self(tempfile::tempdir().unwrap());
        group.put("proc/self/cgroup", "0::/\n");
        group.put("sys/fs/cgroup/memory.max", "1000000\n");
        group.uses(100_000);
        group
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        // In one step: the sampler reads while the test writes.
        let new = path.with_extension("new");
        fs::write(&new, text).unwrap();
        fs::rename(new, path).unwrap();
    }

    fn uses(&self, bytes: u64) {
        self.put("sys/fs/cgroup/memory.current", &bytes.to_string());
    }

    fn start(&self, store: &Arc<MemoryStore>, gate: &Arc<Semaphore>, slots: u32) -> Running {
        let mut registry = Registry::new();
        registry.insert(Name::new("kind", "t").unwrap(), gated(gate)).unwrap();
        let controller = Controller::reading_below(AdmissionConfig::default(), self.0.path()).unwrap();
        let config = WorkerConfig { slots, ..quick() };
        run(Worker::with_controller(store.clone(), registry, config, controller).unwrap())
    }
}

#[tokio::test]
async fn a_new_worker_claims_a_tenth_and_more_after_each_round() {
    let (group, store, gate) = (Group::new(), memory(), Arc::new(Semaphore::new(0)));
    let ids = enqueue(&*store, 200).await;
    let worker = group.start(&store, &gate, 100);
    until("a tenth runs", async || worker.status().running == 10).await;
    let status = worker.status();
    assert_eq!((status.allowed, status.claimed, status.reasons.to_string().as_str()), (10, 10, "start"));
    gate.add_permits(10);
    until("the next round runs", async || worker.status().running == 20).await;
    assert_eq!(worker.status().claimed, 30, "nothing was claimed that could not start");
    gate.add_permits(1_000);
    until_state(&*store, &ids, TaskState::Done).await;
    worker.stop().await;
}

#[tokio::test]
async fn low_memory_is_reported_by_heartbeat_and_stops_claims() {
    let (group, store, gate) = (Group::new(), memory(), Arc::new(Semaphore::new(0)));
    group.uses(960_000);
    let ids = enqueue(&*store, 30).await;
    let worker = group.start(&store, &gate, 20);
    until("one runs", async || worker.status().running == 1).await;
    until("the store knows", async || seen(&store).await.reason == "memory_stop").await;
    let told = seen(&store).await;
    assert_eq!((told.memory_usage, told.available, told.slots), (0.96, 0, 20));
    assert!(told.factor < 0.11, "{told:?}");
    let claims = worker.status().claimed;
    worker.handle.wake();
    until("the coordinator looked again", async || worker.status().ticked_ago.as_millis() < 40).await;
    assert_eq!((worker.status().claimed, claims), (1, 1));
    gate.add_permits(1);
    until("the next one runs", async || worker.status().succeeded == 1 && worker.status().running == 1).await;
    group.uses(100_000);
    gate.add_permits(1_000);
    until_state(&*store, &ids, TaskState::Done).await;
    until("memory is told", async || seen(&store).await.memory_usage < 0.2).await;
    worker.stop().await;
}

#[tokio::test]
async fn slots_set_in_the_store_reach_the_worker() {
    let (store, gate) = (memory(), Arc::new(Semaphore::new(0)));
    let ids = enqueue(&*store, 20).await;
    let handler = gated(&gate);
    let worker = start(store.clone(), handler.clone(), WorkerConfig { slots: 4, ..quick() });
    until("it is full", async || handler.open.load(Ordering::SeqCst) == 4).await;
    let id = worker.status().worker;
    store.set_worker_slots(id, 8).await.unwrap();
    until("more run", async || handler.open.load(Ordering::SeqCst) == 8).await;
    assert_eq!((worker.status().slots, worker.status().allowed), (8, 8));
    store.set_worker_slots(id, 2).await.unwrap();
    until("it has heard", async || worker.status().slots == 2).await;
    assert_eq!(handler.open.load(Ordering::SeqCst), 8, "what runs goes on");
    gate.add_permits(6);
    until("they ended", async || worker.status().settled == 6).await;
    assert_eq!(
        (handler.open.load(Ordering::SeqCst), worker.status().claimed),
        (2, 8),
        "nothing in their place"
    );
    gate.add_permits(100);
    until_state(&*store, &ids, TaskState::Done).await;
    assert_eq!(handler.most_open.load(Ordering::SeqCst), 8);
    worker.stop().await;
}

#[tokio::test]
async fn a_worker_changes_its_own_slots_and_the_store_knows() {
    let (store, gate) = (memory(), Arc::new(Semaphore::new(0)));
    let worker = start(store.clone(), gated(&gate), WorkerConfig { slots: 4, ..quick() });
    worker.handle.started().await;
    worker.handle.set_slots(6).await.unwrap();
    assert_eq!((worker.status().slots, seen(&store).await.slots), (6, 6));
    assert_eq!(worker.handle.set_slots(0).await.unwrap_err().code(), "invalid");
    worker.stop().await;
}
