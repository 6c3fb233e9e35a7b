//! Many processes at the gates at once: workers, a producer and an operator who changes limits all the time,
//! while a watcher reads the tables all the time.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use tokio_postgres::Client;
use windlass_conformance::{
    Harness,
    cases::rig::{Hand, Rig, name, of_job, step_of, task},
};
use windlass_core::{
    Claimed, Demand, JobChange, JobState, Name, NewTask, OnFailure, SettleBatch, SettleItem, Settlement,
    State, Store, TaskId, WorkerId, WorkerReport, store::Filter,
};

use crate::support::PostgresHarness;

const JOBS: usize = 3;
const WORKFLOWS: usize = 3;
const BATCHES: usize = 20;
/// Claims of one worker after which the test gives up waiting for the tasks that are left.
const CLAIMS_MAX: u64 = 20_000;

/// In every committed state: a job with a ready task has no more ready and running tasks than its limit
/// allows. (More may run after the limit fell.) A workflow has at most one step ready or running, and none
/// while it is blocked.
const LOOK: &str = "
SELECT 'job ' || j.name || ': ' || c.ready || ' ready and ' || c.running || ' running of ' || j.concurrency
FROM {s}.job AS j CROSS JOIN LATERAL (
  SELECT count(*) FILTER (WHERE t.state = 1) AS ready, count(*) FILTER (WHERE t.state = 2) AS running
  FROM {s}.task AS t WHERE t.job = j.name AND t.state IN (1, 2)
) AS c
WHERE c.ready > 0 AND c.ready + c.running > j.concurrency
UNION ALL
SELECT 'workflow ' || t.workflow || ': ' || count(*) || ' steps at once'
FROM {s}.task AS t WHERE t.workflow IS NOT NULL AND t.state IN (1, 2) GROUP BY t.workflow HAVING count(*) > 1
UNION ALL
SELECT 'workflow ' || w.name || ': passed while it was blocked'
FROM {s}.workflow AS w
WHERE w.blocked_by IS NOT NULL AND EXISTS (SELECT 1 FROM {s}.task AS t WHERE t.workflow = w.name AND t.state IN (1, 2))";

/// How many tasks of each job run.
const RUNNING: &str =
    "SELECT t.job, count(*) FROM {s}.task AS t WHERE t.state = 2 AND t.job IS NOT NULL GROUP BY t.job";

fn job(number: usize) -> Name {
    name(&format!("job-{}", number % JOBS))
}

/// Tasks of every sort; most workflows go on when a step fails.
fn batch(number: usize) -> Vec<NewTask> {
    let workflow = format!("flow-{}", number % WORKFLOWS);
    let step = NewTask { on_failure: Some(OnFailure::Skip), ..step_of(&workflow) };
    let both = NewTask { job: Some(job(number)), ..step.clone() };
    let later = NewTask { priority: (number % 3) as i32, ..of_job(job(number + 1).as_str()) };
    vec![of_job(job(number).as_str()), step, later, both, of_job(job(number).as_str()), task("a")]
}

/// How an attempt ends: many are retried once, some fail.
fn end(task: &Claimed) -> Settlement {
    match (task.lease, task.id.raw() % 7) {
        (1, 0 | 3) => Settlement::Release,
        (_, 1) => Settlement::Dead { error: "no".into() },
        _ => Settlement::Done { output: None, note: None },
    }
}

async fn work(store: Arc<dyn Store>, worker: WorkerId, left: Arc<AtomicUsize>) {
    for number in 1..CLAIMS_MAX {
        if left.load(Ordering::Acquire) == 0 {
            return;
        }
        store.renew(worker, WorkerReport::default()).await.unwrap();
        let lanes = store.lanes(&[name("a")], &[]).await.unwrap().iter().map(|lane| lane.id).collect();
        let tasks = store.claim(&[Demand::new(worker, number, lanes, 4)]).await.unwrap().tasks;
        let items: Vec<_> = tasks.iter().map(|task| SettleItem::new(task, end(task))).collect();
        let ended = items.iter().filter(|item| !matches!(item.settlement, Settlement::Release)).count();
        let batch = SettleBatch { worker, settler_no: 0, batch_no: number, items };
        assert_eq!(store.settle(Arc::new(batch)).await.unwrap().fenced, []);
        left.fetch_sub(ended, Ordering::AcqRel);
    }
    panic!("{} tasks never ended", left.load(Ordering::Acquire));
}

async fn produce(store: Arc<dyn Store>) {
    for number in 0..BATCHES {
        store.enqueue(batch(number)).await.unwrap();
    }
}

/// Raises and lowers limits, pauses and resumes, until all tasks have ended. After a limit has fallen to 0,
/// running tasks end and none starts: each look from then on finds no more running tasks than the one before.
async fn operate(store: Arc<dyn Store>, watcher: Client, running: String, left: Arc<AtomicUsize>) {
    let set = async |job: &Name, change: JobChange| store.gates().set_job(job, &change).await.unwrap();
    let limit = |n| JobChange { concurrency: Some(Some(n)), ..JobChange::default() };
    let state = |state| JobChange { state: Some(state), ..JobChange::default() };
    let mut round = 0;
    while left.load(Ordering::Acquire) > 0 {
        let job = job(round);
        match round % 4 {
            0 => {
                let found = set(&job, limit(0)).await;
                assert_eq!((found.concurrency, found.ready), (Some(0), 0), "{job} after a limit of nothing");
            }
            1 => {
                let found = set(&job, state(JobState::Paused)).await;
                assert_eq!(found.ready, 0, "{job} is paused");
            }
            2 => drop(set(&job, limit(3)).await),
            _ => drop(set(&job, limit(1)).await),
        }
        if round % 4 < 2 {
            let mut most = i64::MAX;
            for _ in 0..3 {
                let rows = watcher.query(&running, &[]).await.unwrap();
                let of_job = rows.iter().find(|row| row.get::<_, &str>(0) == job.as_str());
                let now = of_job.map_or(0, |row| row.get(1));
                assert!(now <= most, "{job}: {most} ran, then {now}, and nothing may start");
                most = now;
            }
        }
        // The limit rises again before the next job's turn, so that all tasks end.
        set(&job, JobChange { state: Some(JobState::Active), ..limit(1 + round as u32 % 3) }).await;
        round += 1;
    }
}

async fn watch(client: Client, look: String, is_over: Arc<AtomicBool>) -> usize {
    let mut looks = 0;
    while !is_over.load(Ordering::Acquire) {
        let rows = client.query(&look, &[]).await.unwrap();
        let found: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        assert!(found.is_empty(), "{found:?}");
        looks += 1;
    }
    looks
}

async fn a_fleet_keeps_its_gates(workers: usize) {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    for number in 0..JOBS {
        rig.limit(job(number).as_str(), 2).await;
    }
    let text = |sql: &str| sql.replace("{s}", &format!("\"{}\"", harness.schema()));
    let left = Arc::new(AtomicUsize::new((0..BATCHES).map(|number| batch(number).len()).sum()));
    let is_over = Arc::new(AtomicBool::new(false));
    let watching = tokio::spawn(watch(harness.client().await, text(LOOK), Arc::clone(&is_over)));
    let mut parts = Vec::new();
    for _ in 0..workers {
        let Hand { store, id, .. } = rig.worker().await;
        parts.push(tokio::spawn(work(store, id, Arc::clone(&left))));
    }
    parts.push(tokio::spawn(produce(harness.connect(&rig.store).await)));
    let operator = harness.connect(&rig.store).await;
    parts.push(tokio::spawn(operate(operator, harness.client().await, text(RUNNING), Arc::clone(&left))));
    for part in parts {
        part.await.unwrap();
    }
    is_over.store(true, Ordering::Release);
    assert!(watching.await.unwrap() > 0, "the watcher looked");
    let mut ends = BTreeMap::<State, usize>::new();
    for task in rig.all().await {
        *ends.entry(task.state).or_default() += 1;
    }
    assert!(ends.keys().all(|state| [State::Done, State::Dead].contains(state)), "{ends:?}");
    let none = Filter { state: Some(State::Held), ..Filter::default() };
    assert_eq!(rig.store.tasks(&none, None, 1).await.unwrap().tasks, []);
    assert_eq!(rig.store.gates().workflows(false, None, 10).await.unwrap(), []);
    assert_eq!(
        harness.number("SELECT count(*) FROM {s}.gate_todo WHERE at = 0").await,
        0,
        "gate_todo is empty"
    );
    rig.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_workers_and_an_operator_keep_every_gate() {
    a_fleet_keeps_its_gates(2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_workers_and_an_operator_keep_every_gate() {
    a_fleet_keeps_its_gates(8).await;
}

#[tokio::test]
async fn the_watcher_sees_what_it_looks_for() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    let mut worker = rig.worker().await;
    rig.limit("j", 1).await;
    let held = rig.add_all(vec![of_job("j"); 2]).await;
    let steps = rig.add_all(vec![step_of("w"); 2]).await;
    worker.claim(10).await;
    let text = LOOK.replace("{s}", &format!("\"{}\"", harness.schema()));
    let client = harness.client().await;
    let look = async || client.query(&text, &[]).await.unwrap().len();
    assert_eq!(look().await, 0);
    let pass = async |id: TaskId| {
        let text = format!("UPDATE {{s}}.task SET state = 1, ready_seq = 1 WHERE id = {}", id.raw());
        harness.execute(&text).await;
    };
    pass(held[1]).await;
    assert_eq!(look().await, 1);
    pass(steps[1]).await;
    assert_eq!(look().await, 2);
    harness.execute("UPDATE {s}.workflow SET blocked_by = 1").await;
    assert_eq!(look().await, 3);
}
