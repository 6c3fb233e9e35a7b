//! LIMIT, WF-ORDER and SLOT-BALANCED: the limit of a job holds and its room is returned, however its handlers
//! end.

use std::{
    sync::{Arc, Mutex, atomic::Ordering},
    time::Duration,
};

use tokio::sync::{Notify, Semaphore};
use windlass::{
    Name, NewTask, Outcome, Payload, TaskId, TaskRecord, TaskState, Worker, WorkerConfig,
    gate::{JobChange, OnFailure},
    store::Store,
    testing,
};

use crate::{
    rig::{act, memory, quick, record, staged, start, until, until_state},
    staged::{Act, On},
};

const LIMIT: u32 = 2;

fn job() -> Name {
    Name::new("job", "j").unwrap()
}

async fn limited(store: &dyn Store) {
    let change = JobChange { concurrency: Some(Some(LIMIT)), ..JobChange::default() };
    store.gates().set_job(&job(), &change).await.unwrap();
}

/// A task of the job with one attempt; the payload tells its handler what to do.
fn task(what: &str) -> NewTask {
    let mut task = NewTask::new("t", Payload::json(&what).unwrap()).unwrap();
    task.job = Some(job());
    task.max_attempts = Some(1);
    task
}

async fn enqueue(store: &dyn Store, tasks: Vec<NewTask>) -> Vec<TaskId> {
    store.enqueue(tasks).await.unwrap().into_iter().map(|enqueued| enqueued.id).collect()
}

/// The text of the payload.
fn told(payload: &Payload) -> String {
    payload.decode().unwrap()
}

/// The job has no used room and no waiting task, and the audit finds nothing.
async fn assert_at_rest(store: &dyn Store) {
    let job = store.gates().job(&job()).await.unwrap().unwrap();
    assert_eq!((job.ready, job.running, job.held), (0, 0, 0), "{job:?}");
    let findings = store.audit().await.unwrap();
    assert!(findings.is_empty(), "{findings:?}");
}

async fn until_ended(store: &dyn Store, ids: &[TaskId]) -> Vec<TaskRecord> {
    until("all ended", async || {
        for id in ids {
            if !record(store, *id).await.state.is_ended() {
                return false;
            }
        }
        true
    })
    .await;
    let mut records = Vec::new();
    for id in ids {
        records.push(record(store, *id).await);
    }
    records
}

#[tokio::test]
async fn the_limit_holds_and_every_end_frees_its_room() {
    const ENDS: [&str; 8] = ["done", "panic", "retry", "dead", "cancel", "timeout", "snooze", "release"];
    let store = memory();
    limited(&*store).await;
    let handler = act(async |context| {
        // Long enough for others to start, if the limit were broken.
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        match told(context.payload()).as_str() {
            "panic" => panic!("as it was told"),
            "retry" => Outcome::retry_after(Duration::ZERO, "again"),
            "dead" => Outcome::Dead("never".into()),
            "cancel" => Outcome::Cancel("not needed".into()),
            "timeout" => std::future::pending().await,
            "snooze" if context.lease() < 3 => Outcome::snooze(Duration::ZERO),
            "release" if context.lease() < 3 => Outcome::Release,
            _ => Outcome::Done(None),
        }
    });
    let tasks: Vec<NewTask> = ENDS
        .iter()
        .cycle()
        .take(ENDS.len() * 10)
        .map(|what| {
            let mut task = task(what);
            task.timeout = (*what == "timeout").then_some(Duration::from_millis(5));
            task.max_attempts = Some(if *what == "retry" { 3 } else { 1 });
            task
        })
        .collect();
    let ids = enqueue(&*store, tasks).await;
    let worker = start(store.clone(), handler.clone(), WorkerConfig { slots: 16, ..quick() });
    let records = until_ended(&*store, &ids).await;
    for (record, what) in records.iter().zip(ENDS.iter().cycle()) {
        let expected = match *what {
            "done" | "snooze" | "release" => TaskState::Done,
            "cancel" => TaskState::Cancelled,
            _ => TaskState::Dead,
        };
        assert_eq!(record.state, expected, "{what}: {record:?}");
    }
    assert_eq!(handler.most_open.load(Ordering::SeqCst), LIMIT as usize, "at most, and all of it was used");
    assert_eq!((worker.status().panicked, worker.status().timed_out), (10, 10));
    assert_at_rest(&*store).await;
    worker.stop().await;
}

#[tokio::test]
async fn a_cancelled_task_that_does_not_react_frees_its_room() {
    let store = memory();
    limited(&*store).await;
    let handler = act(async |context| match told(context.payload()).as_str() {
        "deaf" => std::future::pending().await,
        "listens" => {
            context.cancelled().await;
            Outcome::retry("gave up")
        }
        _ => Outcome::Done(None),
    });
    let ids = enqueue(&*store, vec![task("deaf"), task("listens"), task("done"), task("done")]).await;
    let config = WorkerConfig { cancel_grace: Duration::from_millis(20), ..quick() };
    let worker = start(store.clone(), handler.clone(), config);
    until("both run", async || handler.open.load(Ordering::SeqCst) == 2).await;
    assert_eq!(record(&*store, ids[2]).await.state, TaskState::Held);
    store.cancel(&ids[..2], "enough").await.unwrap();
    until_state(&*store, &ids[..2], TaskState::Cancelled).await;
    until_state(&*store, &ids[2..], TaskState::Done).await;
    assert_eq!(handler.most_open.load(Ordering::SeqCst), LIMIT as usize);
    assert_at_rest(&*store).await;
    worker.stop().await;
}

#[tokio::test]
async fn a_hand_back_in_a_drain_frees_the_jobs_room() {
    let store = memory();
    limited(&*store).await;
    let gate = Arc::new(Semaphore::new(0));
    let handler = crate::rig::gated(&gate);
    let ids = enqueue(&*store, (0..6).map(|_| task("done")).collect()).await;
    let config = WorkerConfig { drain_timeout: Duration::from_millis(20), ..quick() };
    let first = start(store.clone(), handler.clone(), config);
    until("the job is full", async || handler.open.load(Ordering::SeqCst) == LIMIT as usize).await;
    first.stop().await;
    let shown = store.gates().job(&job()).await.unwrap().unwrap();
    assert_eq!(shown.running, 0, "{shown:?}");
    gate.add_permits(ids.len());
    let second = start(store.clone(), handler.clone(), quick());
    until_state(&*store, &ids, TaskState::Done).await;
    assert_eq!(handler.most_open.load(Ordering::SeqCst), LIMIT as usize);
    assert_at_rest(&*store).await;
    second.stop().await;
}

#[tokio::test]
async fn steps_run_in_order_despite_panics_and_retries() {
    let store = memory();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let handler = act(move |context| {
        noted.lock().unwrap().push(context.id());
        async move {
            tokio::task::yield_now().await;
            match told(context.payload()).as_str() {
                "panic" => panic!("as it was told"),
                "retry" if context.attempt() < 3 => Outcome::retry_after(Duration::ZERO, "again"),
                _ => Outcome::Done(None),
            }
        }
    });
    let steps = ["done", "panic", "retry", "done", "retry", "panic", "done"].map(|what| {
        let mut step = task(what);
        step.job = None;
        step.workflow = Some(Name::new("workflow", "w").unwrap());
        step.on_failure = Some(OnFailure::Skip);
        step.max_attempts = Some(if what == "retry" { 3 } else { 1 });
        step
    });
    let ids = enqueue(&*store, steps.to_vec()).await;
    let workers: Vec<_> = (0..3).map(|_| start(store.clone(), handler.clone(), quick())).collect();
    until_ended(&*store, &ids).await;
    let mut order = seen.lock().unwrap().clone();
    assert_eq!(order.len(), 11, "each as often as it was tried");
    order.dedup();
    assert_eq!(order, ids);
    assert_eq!(handler.most_open.load(Ordering::SeqCst), 1);
    let findings = store.audit().await.unwrap();
    assert!(findings.is_empty(), "{findings:?}");
    for worker in workers {
        worker.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn several_workers_share_a_limit_that_changes_while_they_work() {
    const HIGHEST: u32 = 6;
    let store = memory();
    limited(&*store).await;
    let handler = act(async |context| {
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        assert!(told(context.payload()) != "panic", "as it was told");
        Outcome::Done(None)
    });
    let tasks = (0..300).map(|n| task(if n % 7 == 0 { "panic" } else { "done" }));
    let ids = enqueue(&*store, tasks.collect()).await;
    let workers: Vec<_> = (0..3).map(|_| start(store.clone(), handler.clone(), quick())).collect();
    for (calls, limit) in [(50, HIGHEST), (150, 1), (200, 4)] {
        until("some have started", async || handler.calls.load(Ordering::SeqCst) >= calls).await;
        let change = JobChange { concurrency: Some(Some(limit)), ..JobChange::default() };
        store.gates().set_job(&job(), &change).await.unwrap();
    }
    until_ended(&*store, &ids).await;
    assert!(handler.most_open.load(Ordering::SeqCst) <= HIGHEST as usize);
    assert_at_rest(&*store).await;
    for worker in workers {
        worker.stop().await;
    }
}

#[tokio::test]
async fn a_worker_is_not_idle_before_it_is_registered() {
    let (store, gate) = (staged(), Arc::new(Notify::new()));
    store.next(On::Register, [Act::Hang(gate.clone())]);
    // Held, because no live worker serves it.
    let ids = enqueue(&*store, vec![task("fine")]).await;
    let worker =
        Worker::builder(store.clone()).raw("t", act(|_| async { Outcome::Done(None) })).config(quick());
    let running = tokio::spawn(testing::run_until_idle(worker));
    // A check that does not wait for the worker has run by now.
    until("it registers", async || store.calls(On::Register) == 1).await;
    assert_eq!(store.calls(On::PromoteDue), 0, "a look before the worker is there shows nothing");
    gate.notify_one();
    let ended = running.await.unwrap().unwrap();
    assert_eq!(ended.iter().map(|task| task.id).collect::<Vec<_>>(), ids);
}
