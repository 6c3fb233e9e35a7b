//! Leases: a live worker keeps its lease even if its handlers block; one that cannot renew gives it up.

use std::{
    sync::{Arc, Barrier, atomic::Ordering},
    time::{Duration, Instant},
};

use tokio::sync::{Notify, Semaphore};
use windlass::{
    Error, Outcome, TaskState, WorkerConfig,
    handler::CancelReason,
    store::{LeaseRef, Source as _, Store as _},
    task::AttemptResult,
};

use crate::{
    rig::{self, act, enqueue, gated, memory, quick, record, staged, start, until, until_state},
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

/// As in a process that was stopped: the answer arrives before the heartbeat could give the lease up.
#[tokio::test]
async fn tasks_claimed_under_an_expired_lease_do_not_start() {
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
async fn a_worker_that_cannot_renew_cancels_and_registers_anew() {
    let store = staged();
    let (reasons, mut seen) = tokio::sync::mpsc::unbounded_channel();
    let ids = enqueue(&*store, 1).await;
    let handler = act(move |context| {
        let reasons = reasons.clone();
        async move {
            if context.lease() == 1 {
                // Dropped at the fence; work that it started elsewhere learns of the fence from the context.
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
async fn a_hanging_comparison_of_leases_does_not_delay_renewals() {
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
    // The store hands the task back without telling the worker, as after an expiry.
    assert_eq!(store.reconcile(worker.status().worker, u64::MAX, &[]).await.unwrap().handed_back, 1);
    until("it runs again under a new lease", async || handler.calls.load(Ordering::SeqCst) == 2).await;
    gate.add_permits(1);
    until_state(&*store, &ids, TaskState::Done).await;
    until("the old end was refused", async || worker.status().lease_losses == 1).await;
    assert_eq!(record(&*store, ids[0]).await.lease, 2);
    worker.stop().await;
}

/// A handler that waits for the gate and reports why it was asked to end.
fn telling(gate: &Arc<Semaphore>) -> (Arc<rig::Act>, tokio::sync::mpsc::UnboundedReceiver<CancelReason>) {
    let (gate, (reasons, seen)) = (gate.clone(), tokio::sync::mpsc::unbounded_channel());
    let handler = act(move |context| {
        let (gate, reasons, watched) = (gate.clone(), reasons.clone(), context.clone());
        tokio::spawn(async move { reasons.send(watched.cancelled().await.clone()) });
        async move {
            gate.acquire().await.unwrap().forget();
            Outcome::Done(None)
        }
    });
    (handler, seen)
}

#[tokio::test]
async fn an_attempt_that_the_store_has_forgotten_is_cancelled() {
    let (store, gate) = (staged(), Arc::new(Semaphore::new(0)));
    let ids = enqueue(&*store, 2).await;
    let (handler, mut reasons) = telling(&gate);
    let worker =
        start(store.clone(), handler.clone(), WorkerConfig { lease_ttl: Duration::from_mins(5), ..quick() });
    until("both run", async || handler.open.load(Ordering::SeqCst) == 2).await;
    // Only its own comparison tells the worker that it lost one of them.
    let queue = record(&*store, ids[0]).await.lane.queue.clone();
    store.set_queue_paused(&queue, true).await.unwrap();
    let kept = LeaseRef { id: ids[1], lease: 1 };
    let id = worker.status().worker;
    assert_eq!(store.reconcile(id, u64::MAX, &[kept]).await.unwrap().handed_back, 1);
    assert_eq!(reasons.recv().await, Some(CancelReason::LeaseLost));
    until("its end is refused", async || worker.status().lease_losses == 1).await;
    until("its slot is free", async || worker.status().running == 1).await;
    let forgotten = record(&*store, ids[0]).await;
    assert_eq!((forgotten.state, forgotten.attempt, forgotten.lease), (TaskState::Ready, 0, 1));
    gate.add_permits(1);
    until_state(&*store, &ids[1..], TaskState::Done).await;
    assert_eq!((worker.status().self_fences, worker.status().worker), (0, id), "it kept its registration");
    store.set_queue_paused(&queue, false).await.unwrap();
    gate.add_permits(1);
    until_state(&*store, &ids, TaskState::Done).await;
    worker.stop().await;
}

#[tokio::test]
async fn leases_are_compared_at_once_after_a_crash_of_the_store() {
    let store = staged();
    store.crash_again_and_again();
    let worker = start(store.clone(), act(async |_| Outcome::Done(None)), quick());
    until("it has renewed often", async || store.calls(On::Renew) >= 12).await;
    // The last one may still be running.
    let (compared, renewed) = (store.calls(On::Reconcile), store.calls(On::Renew));
    assert!(compared + 2 >= renewed, "{compared} comparisons after {renewed} renewals");
    worker.stop().await;
}

#[tokio::test]
async fn a_comparison_after_a_crash_is_retried_until_answered() {
    let store = staged();
    let config = WorkerConfig { lease_ttl: Duration::from_mins(5), ..quick() };
    store.next(On::Reconcile, vec![Act::Fail(Error::Unavailable("not yet".into())); 3]);
    let worker = start(store.clone(), act(async |_| Outcome::Done(None)), config);
    until("it has been answered", async || store.calls(On::Reconcile) >= 4).await;
    // One after each renewal: five times as often as without a crash.
    let renewed = store.calls(On::Renew);
    assert!(renewed < 15, "{renewed} renewals");
    worker.stop().await;
}

/// The store has written the end, and its answer is late: the lease is gone, and nothing is lost.
#[tokio::test]
async fn a_late_answer_to_a_settlement_is_no_lost_lease() {
    let (store, gate) = (staged(), Arc::new(Notify::new()));
    store.crash_again_and_again();
    store.next(On::Settle, [Act::Late(gate.clone())]);
    let (handler, mut reasons) = telling(&Arc::new(Semaphore::new(1)));
    let ids = enqueue(&*store, 1).await;
    let worker = start(store.clone(), handler, quick());
    until_state(&*store, &ids, TaskState::Done).await;
    let before = store.calls(On::Reconcile);
    until("leases were compared", async || store.calls(On::Reconcile) >= before + 2).await;
    gate.notify_one();
    until("it is acknowledged", async || worker.status().unsettled == 0).await;
    assert_eq!((worker.status().lease_losses, worker.status().succeeded), (0, 1));
    assert!(reasons.try_recv().is_err(), "it was asked to end");
    worker.stop().await;
}

#[tokio::test]
async fn settlements_that_wait_out_an_outage_are_written_once() {
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
async fn two_sweeps_at_once_take_each_task_of_the_dead_once() {
    let store = memory();
    let ids = enqueue(&*store, 20).await;
    // A worker that dies with twenty tasks: its writes no longer arrive.
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
async fn a_claim_that_is_answered_after_the_fence_starts_nothing() {
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
