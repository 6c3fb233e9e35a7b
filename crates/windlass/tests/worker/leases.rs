//! Leases: kept by a live worker whatever its handlers do, given up by one that cannot renew.

use std::{
    sync::{Arc, Barrier, atomic::Ordering},
    time::{Duration, Instant},
};

use tokio::sync::{Notify, Semaphore};
use windlass::{CancelReason, Error, Outcome, Source as _, TaskState, WorkerConfig, task::AttemptResult};

use crate::{
    rig::{act, enqueue, gated, memory, quick, record, staged, start, until, until_state},
    staged::{Act, On, Staged},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handlers_that_block_every_thread_do_not_cost_the_lease() {
    let store = memory();
    let config = quick();
    let blocked_for = config.lease_ttl * 3;
    let ids = enqueue(&*store, 4).await;
    let handler = act(move |_| async move {
        // Blocks the runtime's thread on purpose: all of them at once.
        std::thread::sleep(blocked_for);
        Outcome::Done(None)
    });
    let worker = start(store.clone(), handler.clone(), config);
    until_state(&*store, &ids, TaskState::Done).await;
    assert_eq!(worker.status().self_fences, 0);
    for id in ids {
        let task = record(&*store, id).await;
        assert_eq!((task.attempt, task.crashes), (1, 0));
    }
    assert_eq!(handler.calls.load(Ordering::SeqCst), 4);
    worker.stop().await;
}

/// As in a process that was stopped: the answer is there before the heartbeat has had the time to give the lease up.
#[tokio::test]
async fn what_was_claimed_under_a_lease_that_is_over_does_not_start() {
    let (store, gate, asleep) = (staged(), Arc::new(Notify::new()), Arc::new(Barrier::new(2)));
    let (leases, mut seen) = tokio::sync::mpsc::unbounded_channel();
    store.next(On::Claim, [Act::Late(gate.clone())]);
    store.next(On::Renew, [Act::Block(asleep.clone())]);
    let ids = enqueue(&*store, 1).await;
    let handler = act(move |context| {
        let leases = leases.clone();
        async move {
            leases.send(context.lease()).unwrap();
            Outcome::Done(None)
        }
    });
    let worker = start(store.clone(), handler, quick());
    until("it has claimed, and renews", async || store.calls(On::Claim) == 1 && store.calls(On::Renew) == 1)
        .await;
    let since = Instant::now();
    until("its lease is over", async || since.elapsed() > quick().lease_ttl).await;
    gate.notify_one();
    until("the answer has come", async || worker.status().claimed == 1).await;
    tokio::task::spawn_blocking(move || asleep.wait()).await.unwrap();
    until_state(&*store, &ids, TaskState::Done).await;
    assert_ne!(seen.recv().await, Some(1), "it ran under the lease that was over");
    worker.stop().await;
}

#[tokio::test]
async fn a_worker_that_cannot_renew_cancels_its_handlers_and_registers_anew() {
    let store = staged();
    let (reasons, mut seen) = tokio::sync::mpsc::unbounded_channel();
    let ids = enqueue(&*store, 1).await;
    let handler = act(move |context| {
        let reasons = reasons.clone();
        async move {
            if context.lease() == 1 {
                // Dropped at the fence; what it started elsewhere learns of it from the context.
                let watched = context.clone();
                tokio::spawn(async move { reasons.send(watched.cancelled().await.clone()) });
                std::future::pending::<()>().await;
            }
            Outcome::Done(None)
        }
    });
    let worker = start(store.clone(), handler.clone(), quick());
    until("it runs", async || handler.open.load(Ordering::SeqCst) == 1).await;
    store.always(On::Renew, Some(Act::Fail(Error::Unavailable("down".into()))));
    assert_eq!(seen.recv().await, Some(CancelReason::LeaseLost));
    store.always(On::Renew, None);
    until_state(&*store, &ids, TaskState::Done).await;
    assert_eq!(worker.status().self_fences, 1);
    worker.stop().await;
}

#[tokio::test]
async fn a_comparison_of_leases_that_hangs_does_not_hold_up_the_renewals() {
    let store = staged();
    store.always(On::Reconcile, Some(Act::Hang(Arc::new(Notify::new()))));
    let config = WorkerConfig { lease_ttl: Duration::from_secs(20), ..quick() };
    let worker = start(store.clone(), gated(&Arc::new(Semaphore::new(0))), config);
    until("a comparison hangs", async || store.calls(On::Reconcile) >= 1).await;
    let before = store.calls(On::Renew);
    until("renewed all the same", async || store.calls(On::Renew) >= before + 5).await;
    assert_eq!(worker.status().self_fences, 0);
    worker.stop().await;
}

#[tokio::test]
async fn a_few_failed_renewals_cost_nothing() {
    let store = staged();
    let gate = Arc::new(Semaphore::new(0));
    let handler = gated(&gate);
    let ids = enqueue(&*store, 1).await;
    let worker =
        start(store.clone(), handler.clone(), WorkerConfig { lease_ttl: Duration::from_secs(20), ..quick() });
    until("it runs", async || handler.open.load(Ordering::SeqCst) == 1).await;
    let before = store.calls(On::Renew);
    store.next(On::Renew, vec![Act::Fail(Error::Unavailable("blip".into())); 3]);
    until("renewed after the blip", async || store.calls(On::Renew) >= before + 5).await;
    gate.add_permits(1);
    until_state(&*store, &ids, TaskState::Done).await;
    assert_eq!((worker.status().self_fences, handler.calls.load(Ordering::SeqCst)), (0, 1));
    worker.stop().await;
}

#[tokio::test]
async fn a_handler_that_ends_after_its_lease_was_lost_changes_nothing() {
    let store = staged();
    let gate = Arc::new(Semaphore::new(0));
    let handler = gated(&gate);
    let ids = enqueue(&*store, 1).await;
    let worker = start(store.clone(), handler.clone(), quick());
    until("it runs", async || handler.open.load(Ordering::SeqCst) == 1).await;
    // The store hands the task back behind the worker's back, as it would after an expiry.
    assert_eq!(store.reconcile(worker.status().worker, u64::MAX, &[]).await.unwrap(), 1);
    until("it runs again under a new lease", async || handler.open.load(Ordering::SeqCst) == 2).await;
    gate.add_permits(2);
    until_state(&*store, &ids, TaskState::Done).await;
    until("the old end was refused", async || worker.status().lease_losses == 1).await;
    assert_eq!(record(&*store, ids[0]).await.lease, 2);
    worker.stop().await;
}

#[tokio::test]
async fn settlements_that_wait_out_an_outage_are_written_once_and_the_tasks_do_not_run_again() {
    let store = staged();
    let handler = act(async |_| Outcome::Done(None));
    store.next(On::Settle, vec![Act::Fail(Error::Unavailable("down".into())); 5]);
    store.next(On::Settle, [Act::LoseAnswer, Act::LoseAnswer]);
    let ids = enqueue(&*store, 3).await;
    let worker = start(store.clone(), handler.clone(), quick());
    until_state(&*store, &ids, TaskState::Done).await;
    until("all acknowledged", async || worker.status().unsettled == 0).await;
    assert_eq!(handler.calls.load(Ordering::SeqCst), 3);
    assert_eq!(worker.status().lease_losses, 0, "a replayed batch was taken for a lost lease");
    worker.stop().await;
}

#[tokio::test]
async fn two_workers_sweep_at_once_and_each_task_of_the_dead_one_is_taken_once() {
    let store = memory();
    let ids = enqueue(&*store, 20).await;
    // A worker that dies with twenty tasks: its writes no longer arrive, and it is never heard of again.
    let cut_off = Arc::new(Staged::new(store.clone()));
    let stuck = act(async |_| std::future::pending().await);
    let dead = start(cut_off.clone(), stuck.clone(), WorkerConfig { slots: 20, ..quick() });
    until("it has all", async || stuck.open.load(Ordering::SeqCst) == 20).await;
    cut_off.always(On::Settle, Some(Act::Fail(Error::Unavailable("cut off".into()))));
    dead.abort();
    let handler = act(async |_| Outcome::Done(None));
    let (a, b) =
        (start(store.clone(), handler.clone(), quick()), start(store.clone(), handler.clone(), quick()));
    until_state(&*store, &ids, TaskState::Done).await;
    assert_eq!(handler.calls.load(Ordering::SeqCst), 20);
    for id in ids {
        let results: Vec<_> =
            record(&*store, id).await.attempts.iter().map(|attempt| attempt.result).collect();
        assert_eq!(
            results,
            [AttemptResult::Crashed, AttemptResult::Done],
            "taken from the dead once, and run once"
        );
    }
    a.stop().await;
    b.stop().await;
}

#[tokio::test]
async fn a_claim_that_is_answered_after_the_fence_starts_nothing_under_the_old_registration() {
    let store = staged();
    let gate = Arc::new(Notify::new());
    store.next(On::Claim, [Act::Late(gate.clone())]);
    let workers = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = workers.clone();
    let handler = act(move |context| {
        seen.lock().unwrap().push(context.worker());
        async { Outcome::Done(None) }
    });
    let ids = enqueue(&*store, 2).await;
    let worker = start(store.clone(), handler.clone(), quick());
    until("the claim is done and its answer late", async || {
        record(&*store, ids[0]).await.state == TaskState::Running
    })
    .await;
    let old = worker.status().worker;
    store.always(On::Renew, Some(Act::Fail(Error::Unavailable("down".into()))));
    until("the worker has given up its lease", async || worker.status().self_fences == 1).await;
    store.always(On::Renew, None);
    gate.notify_one();
    until_state(&*store, &ids, TaskState::Done).await;
    assert!(
        workers.lock().unwrap().iter().all(|worker| *worker != old),
        "a task ran under a lease that was given up"
    );
    worker.stop().await;
}
