//! How an attempt ends, for every behaviour of its handler.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::sync::{Notify, Semaphore};
use windlass::{
    Name, NewTask, Outcome, Payload, TaskId, TaskState, WorkerConfig, admission::AdmissionConfig,
    handler::CancelReason, store::Store as _, task::AttemptResult, worker::ClaimBatch,
};

use crate::{
    rig::{Act as Handler, act, enqueue, memory, quick, record, staged, start, until, until_state},
    staged::{Act, On},
};

#[tokio::test]
async fn a_panic_hurts_only_its_own_task() {
    let store = memory();
    let ids = enqueue(&*store, 10).await;
    let bad = ids[3];
    let handler = act(move |context| async move {
        assert!(context.id() != bad, "this one panics");
        Outcome::Done(None)
    });
    let worker = start(store.clone(), handler, quick());
    let others: Vec<_> = ids.iter().copied().filter(|id| *id != bad).collect();
    until_state(&*store, &others, TaskState::Done).await;
    until_state(&*store, &[bad], TaskState::Scheduled).await;
    let task = record(&*store, bad).await;
    assert!(task.error.as_deref().unwrap_or_default().starts_with("panicked: "), "{:?}", task.error);
    assert_eq!(worker.status().panicked, 1);
    worker.stop().await;
}

#[tokio::test]
async fn an_attempt_over_its_time_limit_is_ended_and_counts_as_failed() {
    let store = memory();
    let mut task = NewTask::new("t", Payload::json(&0).unwrap()).unwrap();
    task.timeout = Some(Duration::from_millis(30));
    task.max_attempts = Some(1);
    let id = store.enqueue(vec![task]).await.unwrap()[0].id;
    let handler = act(async |_| std::future::pending().await);
    let worker = start(store.clone(), handler.clone(), quick());
    until_state(&*store, &[id], TaskState::Dead).await;
    let task = record(&*store, id).await;
    assert_eq!(task.error.as_deref(), Some("attempt 1 of 1: timed out after 30 ms"));
    assert_eq!((worker.status().timed_out, handler.open.load(Ordering::SeqCst)), (1, 0));
    worker.stop().await;
}

#[tokio::test]
async fn heartbeats_say_what_was_done_in_each_queue() {
    let store = memory();
    let task = |queue: &str, n: u32| {
        let mut task = NewTask::new("t", Payload::json(&n).unwrap()).unwrap();
        task.queue = Name::new("queue", queue).unwrap();
        task
    };
    let tasks = vec![task("mail", 0), task("mail", 0), task("mail", 1), task("slow", 2), task("slow", 3)];
    let ids: Vec<_> = store.enqueue(tasks).await.unwrap().iter().map(|added| added.id).collect();
    let handler = act(async |context| match context.payload().decode::<u32>().unwrap() {
        0 => Outcome::Done(None),
        1 => Outcome::dead("broken"),
        2 => Outcome::retry("again"),
        _ => Outcome::cancel("not needed"),
    });
    let worker = start(store.clone(), handler, quick());
    until_state(&*store, &ids[..2], TaskState::Done).await;
    let counts = async || store.workers().await.unwrap().remove(0).counts;
    until("the store knows of all five", async || counts().await.total().started == 5).await;
    until("and of their ends", async || counts().await.total().left() == 4).await;
    let counts = counts().await;
    let of = |queue: &str| {
        let counts = counts.queues[&Name::new("queue", queue).unwrap()];
        [counts.started, counts.done, counts.dead, counts.retried, counts.cancelled]
    };
    assert_eq!((of("mail"), of("slow")), ([3, 2, 1, 0, 0], [2, 0, 0, 1, 1]));
    worker.stop().await;
}

#[tokio::test]
async fn a_running_task_reacts_to_its_cancellation() {
    let store = memory();
    let ids = enqueue(&*store, 1).await;
    let handler = act(async |context| {
        let reason = context.cancelled().await.clone();
        assert_eq!(reason, CancelReason::Requested("not needed".into()));
        Outcome::retry("gave up")
    });
    let worker = start(store.clone(), handler.clone(), quick());
    until("it runs", async || handler.open.load(Ordering::SeqCst) == 1).await;
    store.cancel(&ids, "not needed").await.unwrap();
    until_state(&*store, &ids, TaskState::Cancelled).await;
    assert_eq!(worker.status().panicked, 0);
    worker.stop().await;
}

#[tokio::test]
async fn a_cancelled_handler_that_continues_is_dropped() {
    let store = memory();
    let ids = enqueue(&*store, 1).await;
    let handler = act(async |_| std::future::pending().await);
    let config = WorkerConfig { cancel_grace: Duration::from_millis(20), ..quick() };
    let worker = start(store.clone(), handler.clone(), config);
    until("it runs", async || handler.open.load(Ordering::SeqCst) == 1).await;
    store.cancel(&ids, "enough").await.unwrap();
    until_state(&*store, &ids, TaskState::Cancelled).await;
    assert_eq!(handler.open.load(Ordering::SeqCst), 0);
    worker.stop().await;
}

#[tokio::test]
async fn failures_are_retried_and_every_attempt_is_recorded() {
    let store = memory();
    let mut new = NewTask::new("t", Payload::json(&0).unwrap()).unwrap();
    new.max_attempts = Some(3);
    let id = store.enqueue(vec![new]).await.unwrap()[0].id;
    let handler =
        act(async |context| Outcome::retry_after(Duration::ZERO, format!("no {}", context.attempt())));
    let worker = start(store.clone(), handler.clone(), quick());
    until_state(&*store, &[id], TaskState::Dead).await;
    let record = record(&*store, id).await;
    let results: Vec<_> = record.attempts.iter().map(|attempt| attempt.result).collect();
    assert_eq!(results, [AttemptResult::Retry, AttemptResult::Retry, AttemptResult::Dead]);
    assert_eq!(handler.calls.load(Ordering::SeqCst), 3);
    worker.stop().await;
}

#[tokio::test]
async fn a_snoozed_task_spends_no_attempt() {
    let store = memory();
    let ids = enqueue(&*store, 1).await;
    let handler =
        act(
            async |context| {
                if context.lease() < 5 { Outcome::snooze(Duration::ZERO) } else { Outcome::Done(None) }
            },
        );
    let worker = start(store.clone(), handler.clone(), quick());
    until_state(&*store, &ids, TaskState::Done).await;
    let task = record(&*store, ids[0]).await;
    assert_eq!((task.attempt, task.lease), (1, 5));
    worker.stop().await;
}

#[tokio::test]
async fn ten_thousand_tasks_end_and_leave_nothing_behind() {
    let store = memory();
    let open = Arc::new(Semaphore::new(0));
    let handler = act(async |_| Outcome::Done(None));
    let ids = enqueue(&*store, 10_000).await;
    let worker = start(store.clone(), handler.clone(), WorkerConfig { slots: 100, ..quick() });
    until("all settled", async || worker.status().settled == 10_000).await;
    assert_eq!(handler.calls.load(Ordering::SeqCst), ids.len());
    assert!(handler.most_open.load(Ordering::SeqCst) <= 100);
    drop(open);
    worker.stop().await;
}

/// A handler that blocks its thread with one task until the test lets it go, and ends the others at once.
fn blocking_at(stuck: TaskId) -> (std::sync::mpsc::Sender<()>, Arc<Handler>) {
    let (release, blocked) = std::sync::mpsc::channel::<()>();
    let blocked = Arc::new(std::sync::Mutex::new(blocked));
    let handler = act(move |context| {
        let blocked = blocked.clone();
        async move {
            if context.id() == stuck {
                let _ = blocked.lock().unwrap().recv();
            }
            Outcome::Done(None)
        }
    });
    (release, handler)
}

/// The coordinator waits for the next claim, so it does not start the tasks that wait for a thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_blocking_handler_delays_no_other_while_a_claim_hangs() {
    for _ in 0..4 {
        let (store, hanging) = (staged(), Arc::new(Notify::new()));
        let at_once = || {
            let gate = Arc::new(Notify::new());
            gate.notify_one();
            Act::Late(gate)
        };
        store.next(On::Claim, [at_once(), at_once(), at_once(), Act::Hang(hanging.clone())]);
        let ids = enqueue(&*store, 600).await;
        let stuck = ids[400];
        let (release, handler) = blocking_at(stuck);
        let config = WorkerConfig {
            slots: 1_000,
            claim_batch: ClaimBatch::AtMost(200),
            admission: AdmissionConfig::off(),
            ..quick()
        };
        let worker = start(store.clone(), handler, config);
        let others: Vec<_> = ids.iter().copied().filter(|id| *id != stuck).collect();
        until_state(&*store, &others, TaskState::Done).await;
        drop(release);
        until_state(&*store, &[stuck], TaskState::Done).await;
        hanging.notify_one();
        worker.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_blocking_handler_delays_no_task_of_the_same_claim() {
    let store = memory();
    // Many very short tasks first, so that the pool takes its tasks for short ones; then one that blocks, and
    // more behind it.
    let ids = enqueue(&*store, 600).await;
    let stuck = ids[400];
    let (release, handler) = blocking_at(stuck);
    let worker = start(store.clone(), handler, WorkerConfig { slots: 1_000, ..quick() });
    let others: Vec<_> = ids.iter().copied().filter(|id| *id != stuck).collect();
    until_state(&*store, &others, TaskState::Done).await;
    drop(release);
    until_state(&*store, &[stuck], TaskState::Done).await;
    worker.stop().await;
}

#[tokio::test]
async fn a_panicking_destructor_at_the_time_limit_is_caught() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            assert!(std::thread::panicking(), "the destructor of a handler panics");
        }
    }
    let store = memory();
    let mut task = NewTask::new("t", Payload::json(&0).unwrap()).unwrap();
    task.timeout = Some(Duration::from_millis(20));
    task.max_attempts = Some(1);
    let id = store.enqueue(vec![task]).await.unwrap()[0].id;
    let handler = act(async |_| {
        let _bomb = Bomb;
        std::future::pending().await
    });
    let worker = start(store.clone(), handler, quick());
    until_state(&*store, &[id], TaskState::Dead).await;
    worker.stop().await;
}
