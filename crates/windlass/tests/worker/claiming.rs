//! How the coordinator claims, and how it waits.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::sync::{Notify, Semaphore};
use windlass::{
    Error, Name, NewTask, Outcome, Payload, TaskId, TaskState, WorkerConfig, WorkerError, store::Store as _,
    task::Start, worker::ClaimBatch,
};

use crate::{
    rig::{
        Act as Handler, Running, act, assert_no_leak, enqueue, gated, memory, quick, record, staged, start,
        until, until_state,
    },
    staged::{Act, On, Staged},
};

#[tokio::test]
async fn a_failed_claim_is_retried_with_growing_pauses() {
    let store = staged();
    store.next(On::Claim, vec![Act::Fail(Error::Unavailable("down".into())); 4]);
    let ids = enqueue(&*store, 3).await;
    let worker = start(store.clone(), act(async |_| Outcome::Done(None)), quick());
    until_state(&*store, &ids, TaskState::Done).await;
    assert_eq!(worker.status().claims_failed, 4);
    worker.stop().await;
}

#[tokio::test]
async fn a_forgotten_and_repeated_claim_is_started_once() {
    let (store, gate) = (staged(), Arc::new(Semaphore::new(0)));
    let ids = enqueue(&*store, 1).await;
    let handler = gated(&gate);
    let worker = start(store.clone(), handler.clone(), quick());
    until("it runs", async || handler.open.load(Ordering::SeqCst) == 1).await;
    store.next(On::Claim, [Act::Again, Act::Again]);
    let claims = store.calls(On::Claim);
    until("the same lease came again", async || store.calls(On::Claim) >= claims + 3).await;
    gate.add_permits(1);
    until_state(&*store, &ids, TaskState::Done).await;
    assert_eq!(handler.calls.load(Ordering::SeqCst), 1);
    worker.stop().await;
}

#[tokio::test]
async fn no_more_tasks_run_than_there_are_slots() {
    let store = memory();
    let handler = act(async |_| {
        tokio::task::yield_now().await;
        Outcome::Done(None)
    });
    let ids = enqueue(&*store, 500).await;
    let worker = start(store.clone(), handler.clone(), WorkerConfig { slots: 7, ..quick() });
    until_state(&*store, &ids, TaskState::Done).await;
    assert!(handler.most_open.load(Ordering::SeqCst) <= 7);
    assert_eq!(handler.calls.load(Ordering::SeqCst), 500);
    worker.stop().await;
}

#[tokio::test]
async fn with_all_slots_taken_a_woken_worker_does_not_claim() {
    let store = staged();
    let gate = Arc::new(Semaphore::new(0));
    let handler = gated(&gate);
    let ids = enqueue(&*store, 20).await;
    let worker = start(store.clone(), handler.clone(), quick());
    until("slots are full", async || handler.open.load(Ordering::SeqCst) == 4).await;
    let claims = store.calls(On::Claim);
    for _ in 0..100 {
        for _ in 0..100 {
            worker.handle.wake();
        }
        enqueue(&*store, 1).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(store.calls(On::Claim), claims, "a claim was sent without a free slot");
    gate.add_permits(100_000);
    until_state(&*store, &ids, TaskState::Done).await;
    worker.stop().await;
}

#[tokio::test]
async fn a_flood_of_wake_ups_leads_to_one_more_claim() {
    let store = staged();
    enqueue(&*store, 1).await;
    let config = WorkerConfig {
        poll_interval_max: Duration::from_mins(1),
        poll_interval: Duration::from_mins(1),
        ..quick()
    };
    let worker = start(store.clone(), act(async |_| Outcome::Done(None)), config);
    until("the first look is over", async || worker.status().claims_empty >= 1).await;
    let before = store.calls(On::Claim);
    let gate = Arc::new(Notify::new());
    store.next(On::Claim, [Act::Hang(gate.clone())]);
    worker.handle.wake();
    until("a look is on its way", async || store.calls(On::Claim) == before + 1).await;
    for _ in 0..100_000 {
        worker.handle.wake();
    }
    gate.notify_one();
    // All wake-ups during the first round lead to one more round.
    until("the second look", async || store.calls(On::Claim) >= before + 2).await;
    worker.stop().await;
    assert_eq!(store.calls(On::Claim), before + 2);
}

#[tokio::test]
async fn with_all_hints_dropped_a_ready_task_still_starts() {
    let store = Arc::new(Staged::without_hints(memory()));
    let worker = start(store.clone(), act(async |_| Outcome::Done(None)), quick());
    until("the worker is registered", async || worker.status().worker.0 != 0).await;
    let ids = enqueue(&*store, 2).await;
    until_state(&*store, &ids, TaskState::Done).await;
    worker.stop().await;
}

#[tokio::test]
async fn a_lost_claim_answer_strands_nothing() {
    let store = staged();
    store.next(On::Claim, [Act::LoseAnswer, Act::LoseAnswer]);
    store.next(On::Unclaim, [Act::Fail(Error::Unavailable("down".into()))]);
    let ids = enqueue(&*store, 6).await;
    let worker = start(store.clone(), act(async |_| Outcome::Done(None)), quick());
    until_state(&*store, &ids, TaskState::Done).await;
    for id in &ids {
        let task = record(&*store, *id).await;
        assert_eq!(task.attempt, 1, "an attempt was spent on a lost answer");
    }
    assert!(store.audit().await.unwrap().is_empty());
    worker.stop().await;
}

#[tokio::test]
async fn a_dead_coordinator_is_restarted_and_its_claim_handed_back() {
    let store = staged();
    store.next(On::Claim, [Act::Panic]);
    let ids = enqueue(&*store, 5).await;
    let worker = start(store.clone(), act(async |_| Outcome::Done(None)), quick());
    until_state(&*store, &ids, TaskState::Done).await;
    assert_eq!(worker.status().coordinator_deaths, 1);
    worker.stop().await;
}

/// Claims of two on four slots; the test stages the second.
async fn two_claims_of_two(second: Act) -> (Arc<Staged>, Vec<TaskId>, Arc<Semaphore>, Arc<Handler>, Running) {
    let (store, gate, at_once) = (staged(), Arc::new(Semaphore::new(0)), Arc::new(Notify::new()));
    at_once.notify_one();
    store.next(On::Claim, [Act::Late(at_once), second]);
    let ids = enqueue(&*store, 4).await;
    let handler = gated(&gate);
    let config = WorkerConfig { claim_batch: ClaimBatch::AtMost(2), ..quick() };
    let worker = start(store.clone(), handler.clone(), config);
    (store, ids, gate, handler, worker)
}

#[tokio::test]
async fn tasks_start_while_the_next_claim_is_on_its_way() {
    let hanging = Arc::new(Notify::new());
    let (store, ids, gate, handler, worker) = two_claims_of_two(Act::Hang(hanging.clone())).await;
    until("the first two run", async || handler.open.load(Ordering::SeqCst) == 2).await;
    until("the next claim is on its way", async || store.calls(On::Claim) == 2).await;
    hanging.notify_one();
    gate.add_permits(4);
    until_state(&*store, &ids, TaskState::Done).await;
    worker.stop().await;
}

#[tokio::test]
async fn unstarted_tasks_of_a_dead_coordinator_are_handed_back() {
    let (store, ids, gate, handler, worker) = two_claims_of_two(Act::Panic).await;
    gate.add_permits(4);
    until_state(&*store, &ids, TaskState::Done).await;
    assert_eq!(worker.status().coordinator_deaths, 1);
    assert_eq!(handler.calls.load(Ordering::SeqCst), 4, "nothing ran twice");
    for id in &ids {
        assert_eq!(record(&*store, *id).await.attempt, 1, "an attempt was spent on it");
    }
    worker.stop().await;
}

#[tokio::test]
async fn five_deaths_of_the_coordinator_end_the_worker() {
    let store = staged();
    let gate = Arc::new(Semaphore::new(0));
    let handler = gated(&gate);
    let ids = enqueue(&*store, 1).await;
    let worker = start(store.clone(), handler.clone(), quick());
    until("the task runs", async || handler.open.load(Ordering::SeqCst) == 1).await;
    store.always(On::Claim, Some(Act::Panic));
    let handle = worker.handle.clone();
    let error = worker.ended().await.unwrap_err();
    assert!(matches!(error, WorkerError::CoordinatorDied { deaths: 5, .. }), "{error}");
    assert!(error.to_string().contains("staged panic"), "{error}");
    let task = record(&*store, ids[0]).await;
    assert_eq!((task.state, task.attempt), (TaskState::Ready, 0), "not handed back");
    assert_no_leak(&handle);
}

#[tokio::test]
async fn a_blocked_queue_is_left_alone_until_it_is_resumed() {
    let store = staged();
    let queue = Name::new("queue", "default").unwrap();
    store.set_queue_paused(&queue, true).await.unwrap();
    let ids = enqueue(&*store, 2).await;
    let worker = start(store.clone(), act(async |_| Outcome::Done(None)), quick());
    until("it has looked", async || store.calls(On::Claim) >= 2).await;
    assert_eq!(record(&*store, ids[0]).await.state, TaskState::Ready);
    store.set_queue_paused(&queue, false).await.unwrap();
    until_state(&*store, &ids, TaskState::Done).await;
    worker.stop().await;
}

#[tokio::test]
async fn an_explicit_claim_size_is_a_ceiling() {
    let store = memory();
    let gate = Arc::new(Semaphore::new(0));
    let handler = gated(&gate);
    enqueue(&*store, 10).await;
    let config = WorkerConfig { claim_batch: ClaimBatch::AtMost(2), slots: 10, ..quick() };
    let worker = start(store.clone(), handler.clone(), config);
    until("all run", async || handler.open.load(Ordering::SeqCst) == 10).await;
    assert!(worker.status().claims >= 5);
    gate.add_permits(10);
    worker.stop().await;
}

#[tokio::test]
async fn claims_stop_while_too_many_ends_are_unsettled() {
    let store = staged();
    let gate = Arc::new(Notify::new());
    store.next(On::Settle, [Act::Hang(gate.clone())]);
    let handler = act(async |_| Outcome::Done(None));
    let ids = enqueue(&*store, 50).await;
    let worker = start(store.clone(), handler.clone(), quick());
    until("as many wait as there are slots", async || worker.status().unsettled >= 4).await;
    until("the coordinator has gone round", async || worker.status().ticked_ago < Duration::from_millis(40))
        .await;
    assert!(worker.status().unsettled <= 8, "{:?}", worker.status());
    assert!(handler.calls.load(Ordering::SeqCst) <= 8);
    gate.notify_one();
    until_state(&*store, &ids, TaskState::Done).await;
    worker.stop().await;
}

#[tokio::test]
async fn a_due_task_of_a_foreign_kind_does_not_keep_a_worker_busy() {
    let store = staged();
    let worker = start(store.clone(), act(async |_| Outcome::Done(None)), quick());
    until("the worker is registered", async || worker.status().worker.0 != 0).await;
    let mut task = NewTask::new("foreign", Payload::json(&0).unwrap()).unwrap();
    task.start = Start::In(Duration::from_hours(1));
    store.enqueue(vec![task]).await.unwrap();
    let before = store.calls(On::Renew);
    until("ten renewals", async || store.calls(On::Renew) >= before + 10).await;
    // A loop without a pause makes tens of thousands of rounds in that time, one with its poll a few dozen.
    assert!(store.calls(On::PromoteDue) < 500, "{} looks", store.calls(On::PromoteDue));
    worker.stop().await;
}
