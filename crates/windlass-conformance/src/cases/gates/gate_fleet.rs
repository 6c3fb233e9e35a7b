//! Many workers behind gates: appends, claims and ends at the same time.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use windlass_core::{
    Claimed, Demand, Name, NewTask, Rules, SettleBatch, SettleItem, Settlement, Store, TaskId, WorkerId,
    WorkerReport,
};

use crate::{
    cases::rig::{Rig, name, of_job, step_of},
    harness::Harness,
};

const WORKERS: usize = 5;
const PRODUCERS: usize = 4;
const BATCHES: usize = 6;
const LIMIT: usize = 2;
/// After this many claims of one worker, an unfinished task counts as stuck.
const CLAIMS_MAX: u64 = 20_000;

/// Which tasks the workers run, and which are done.
#[derive(Default)]
struct Seen {
    running: BTreeMap<Name, usize>,
    most: usize,
    ends: Vec<(Option<Name>, TaskId)>,
}

impl Seen {
    fn start(&mut self, task: &Claimed) {
        let Some(job) = &task.job else { return };
        let running = self.running.entry(job.clone()).or_default();
        *running += 1;
        self.most = self.most.max(*running);
    }

    fn stop(&mut self, task: &Claimed) {
        if let Some(running) = task.job.as_ref().and_then(|job| self.running.get_mut(job)) {
            *running -= 1;
        }
        if !comes_back(task) {
            self.ends.push((task.workflow.clone(), task.id));
        }
    }
}

/// Some attempts are handed back the first time.
fn comes_back(task: &Claimed) -> bool {
    task.lease == 1 && task.id.raw() % 3 == 0
}

/// Two jobs that every producer uses, a workflow of each producer, and one task with both.
fn batch(producer: usize) -> Vec<NewTask> {
    let workflow = format!("flow-{producer}");
    let both = NewTask { workflow: Some(name(&workflow)), ..of_job("one") };
    vec![of_job("one"), step_of(&workflow), both, of_job("two")]
}

pub async fn a_fleet_keeps_every_limit_and_every_order(harness: &dyn Harness) {
    let rules = Rules { job_default_concurrency: Some(LIMIT as u32), ..Rules::default() };
    let rig = Rig::with(harness, rules).await;
    let seen = Arc::new(Mutex::new(Seen::default()));
    let left = Arc::new(AtomicUsize::new(PRODUCERS * BATCHES * batch(0).len()));
    let mut workers = Vec::new();
    for _ in 0..WORKERS {
        let worker = rig.worker().await;
        workers.push(tokio::spawn(work(worker.store, worker.id, Arc::clone(&seen), Arc::clone(&left))));
    }
    let mut producers = Vec::new();
    for producer in 0..PRODUCERS {
        let store = harness.connect(&rig.store).await;
        producers.push(tokio::spawn(async move {
            for _ in 0..BATCHES {
                store.enqueue(batch(producer)).await.unwrap();
            }
        }));
    }
    for part in producers.into_iter().chain(workers) {
        part.await.unwrap();
    }
    assert_eq!(left.load(Ordering::Acquire), 0, "everything ended");
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    assert!(seen.most <= LIMIT, "{} of a job ran at once", seen.most);
    let mut steps = BTreeMap::<Name, Vec<TaskId>>::new();
    for (workflow, id) in seen.ends {
        if let Some(workflow) = workflow {
            steps.entry(workflow).or_default().push(id);
        }
    }
    assert_eq!(steps.len(), PRODUCERS);
    assert!(steps.values().all(|ids| ids.is_sorted()), "{steps:?}");
    rig.assert_sound().await;
}

async fn work(store: Arc<dyn Store>, worker: WorkerId, seen: Arc<Mutex<Seen>>, left: Arc<AtomicUsize>) {
    for number in 1..CLAIMS_MAX {
        if left.load(Ordering::Acquire) == 0 {
            return;
        }
        store.renew(worker, WorkerReport::default()).await.unwrap();
        let lanes = store.lanes(&[name("a")], &[]).await.unwrap().iter().map(|lane| lane.id).collect();
        let demand = Demand::new(worker, number, lanes, 3);
        let tasks = store.claim(&[demand]).await.unwrap().tasks;
        for task in &tasks {
            seen.lock().unwrap().start(task);
        }
        tokio::task::yield_now().await;
        for task in &tasks {
            seen.lock().unwrap().stop(task);
        }
        let done = Settlement::Done { output: None, note: None };
        let settlement = |task: &Claimed| if comes_back(task) { Settlement::Release } else { done.clone() };
        let ended = tasks.iter().filter(|task| !comes_back(task)).count();
        let items = tasks.iter().map(|task| SettleItem::new(task, settlement(task))).collect();
        let batch = SettleBatch { worker, settler_no: 0, batch_no: number, items };
        assert_eq!(store.settle(Arc::new(batch)).await.unwrap().fenced, []);
        left.fetch_sub(ended, Ordering::AcqRel);
    }
}
