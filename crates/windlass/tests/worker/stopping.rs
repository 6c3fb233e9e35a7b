//! Stopping: finish, or hand back without spending an attempt; lose no task; never hang.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::sync::{Notify, Semaphore};
use windlass::{
    Error, Outcome, TaskState, WorkerConfig, WorkerError, store::Store as _, worker::DrainReport,
};

use crate::{
    rig::{act, assert_no_leak, enqueue, gated, memory, quick, record, staged, start, until, until_state},
    staged::{Act, On},
};

#[tokio::test]
async fn a_stop_waits_for_running_tasks_and_claims_no_more() {
    let store = memory();
    let gate = Arc::new(Semaphore::new(0));
    let handler = gated(&gate);
    let ids = enqueue(&*store, 10).await;
    let worker = start(store.clone(), handler.clone(), quick());
    until("slots are full", async || handler.open.load(Ordering::SeqCst) == 4).await;
    worker.handle.drain();
    assert!(worker.status().draining);
    gate.add_permits(100);
    let report = worker.stop().await;
    assert_eq!(report, DrainReport { finished: 4, handed_back: 0, aborted: 0 });
    until_state(&*store, &ids[..4], TaskState::Done).await;
    assert_eq!(record(&*store, ids[5]).await.state, TaskState::Ready);
    assert_eq!(handler.calls.load(Ordering::SeqCst), 4);
}

#[tokio::test]
async fn at_the_deadline_the_rest_is_handed_back_unspent() {
    let store = memory();
    let handler = act(async |_| std::future::pending().await);
    let ids = enqueue(&*store, 3).await;
    let config = WorkerConfig { drain_timeout: Duration::from_millis(50), ..quick() };
    let worker = start(store.clone(), handler.clone(), config);
    until("all run", async || handler.open.load(Ordering::SeqCst) == 3).await;
    let report = worker.stop().await;
    assert_eq!(report, DrainReport { finished: 0, handed_back: 3, aborted: 0 });
    for id in ids {
        let task = record(&*store, id).await;
        assert_eq!((task.state, task.attempt, task.crashes), (TaskState::Ready, 0, 0));
    }
}

#[tokio::test]
async fn a_second_signal_hands_back_at_once() {
    let store = memory();
    let handler = act(async |_| std::future::pending().await);
    enqueue(&*store, 2).await;
    let worker = start(
        store.clone(),
        handler.clone(),
        WorkerConfig { drain_timeout: Duration::from_hours(1), ..quick() },
    );
    until("all run", async || handler.open.load(Ordering::SeqCst) == 2).await;
    worker.handle.drain();
    worker.handle.hand_back_now();
    let report = worker.ended().await.unwrap();
    assert_eq!(report.handed_back, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn the_task_of_a_blocking_handler_is_handed_back() {
    let store = memory();
    let (release, blocked) = std::sync::mpsc::channel::<()>();
    let blocked = Arc::new(std::sync::Mutex::new(blocked));
    let handler = act(move |_| {
        let blocked = blocked.clone();
        async move {
            let _ = blocked.lock().unwrap().recv();
            Outcome::Done(None)
        }
    });
    let ids = enqueue(&*store, 1).await;
    let worker =
        start(store.clone(), handler.clone(), WorkerConfig { drain_timeout: Duration::ZERO, ..quick() });
    until("it runs", async || handler.open.load(Ordering::SeqCst) == 1).await;
    worker.handle.drain();
    let report = worker.ended().await.unwrap();
    assert_eq!(report, DrainReport { finished: 0, handed_back: 0, aborted: 1 });
    assert_eq!(record(&*store, ids[0]).await.state, TaskState::Ready);
    drop(release);
}

#[tokio::test]
async fn a_stop_while_a_claim_is_on_its_way_loses_nothing() {
    let store = staged();
    let gate = Arc::new(Notify::new());
    store.next(On::Claim, [Act::Hang(gate.clone())]);
    let ids = enqueue(&*store, 2).await;
    let handler = act(async |_| Outcome::Done(None));
    let worker = start(store.clone(), handler.clone(), quick());
    until("the claim is on its way", async || store.calls(On::Claim) == 1).await;
    worker.handle.drain();
    gate.notify_one();
    worker.stop().await;
    for id in ids {
        let task = record(&*store, id).await;
        assert_eq!((task.state, task.attempt), (TaskState::Ready, 0));
    }
}

#[tokio::test]
async fn a_claim_that_hangs_does_not_hang_the_stop() {
    let store = staged();
    store.always(On::Claim, Some(Act::Hang(Arc::new(Notify::new()))));
    let ids = enqueue(&*store, 1).await;
    let worker = start(
        store.clone(),
        act(async |_| Outcome::Done(None)),
        WorkerConfig { drain_timeout: Duration::ZERO, ..quick() },
    );
    until("the claim hangs", async || store.calls(On::Claim) == 1).await;
    worker.stop().await;
    assert_eq!(record(&*store, ids[0]).await.state, TaskState::Ready);
}

#[tokio::test]
async fn any_number_of_stops_is_one_stop() {
    let store = memory();
    let gate = Arc::new(Semaphore::new(0));
    let handler = gated(&gate);
    enqueue(&*store, 1).await;
    let worker = start(store.clone(), handler.clone(), quick());
    until("it runs", async || handler.open.load(Ordering::SeqCst) == 1).await;
    let stops: Vec<_> = (0..8)
        .map(|_| {
            let handle = worker.handle.clone();
            tokio::spawn(async move { handle.drain() })
        })
        .collect();
    for stop in stops {
        stop.await.unwrap();
    }
    gate.add_permits(1);
    assert_eq!(worker.stop().await.finished, 1);
}

#[tokio::test]
async fn the_lease_is_renewed_while_the_worker_drains() {
    let store = staged();
    let gate = Arc::new(Semaphore::new(0));
    let handler = gated(&gate);
    let ids = enqueue(&*store, 1).await;
    let worker = start(store.clone(), handler.clone(), quick());
    until("it runs", async || handler.open.load(Ordering::SeqCst) == 1).await;
    worker.handle.drain();
    let before = store.calls(On::Renew);
    // Longer than a lease: without renewals this worker would lose the task.
    until("renewals go on", async || store.calls(On::Renew) >= before + 8).await;
    gate.add_permits(1);
    assert_eq!(worker.stop().await.finished, 1);
    assert_eq!(record(&*store, ids[0]).await.state, TaskState::Done);
}

#[tokio::test]
async fn a_store_that_fails_permanently_ends_the_worker() {
    let store = staged();
    store.always(On::Settle, Some(Act::Fail(Error::Fatal("fsync failed".into()))));
    enqueue(&*store, 1).await;
    let worker = start(store.clone(), act(async |_| Outcome::Done(None)), quick());
    let error = worker.ended().await.unwrap_err();
    assert!(matches!(error, WorkerError::Store(Error::Fatal(_))), "{error}");
}

#[tokio::test]
async fn a_stopped_worker_has_signed_off() {
    let store = memory();
    let worker = start(store.clone(), act(async |_| Outcome::Done(None)), quick());
    until("it is registered", async || store.workers().await.unwrap().iter().any(|worker| worker.live)).await;
    let handle = worker.handle.clone();
    worker.stop().await;
    assert_no_leak(&handle);
    assert!(store.workers().await.unwrap().iter().all(|worker| !worker.live));
}

#[tokio::test]
async fn a_worker_whose_future_is_dropped_leaves_nothing_running() {
    let store = memory();
    let handler = act(async |_| std::future::pending().await);
    enqueue(&*store, 2).await;
    let worker = start(store.clone(), handler.clone(), quick());
    until("it runs", async || handler.open.load(Ordering::SeqCst) == 2).await;
    worker.abort();
    // Its threads hold the store; after their end only this test does.
    until("all its threads have ended", async || Arc::strong_count(&store) == 1).await;
    assert_eq!(handler.open.load(Ordering::SeqCst), 0);
}
