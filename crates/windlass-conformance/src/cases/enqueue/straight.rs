//! Enqueue for a worker that waits: added and leased in one step, if no task is ready before it.

use std::time::Duration;

use windlass_core::{NewTask, Outcome, Start, State};

use crate::{
    cases::rig::{MANY, Rig, in_queue, keyed, name, of_job, step_of, task},
    harness::Harness,
};

pub async fn a_task_for_a_waiting_worker_is_leased_at_once(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let (timeout, retry) = (Some(Duration::from_secs(7)), Some(windlass_core::RetryPolicy::default()));
    rig.add(task("a")).await;
    let mut worker = rig.worker().await;
    let first = worker.claim_one().await;
    let demand = worker.demand(1).await;
    let new = NewTask { timeout, retry, priority: 3, max_attempts: Some(4), ..task("a") };
    let (enqueued, claimed, _) = rig.store.enqueue_for(new.clone(), &demand).await.unwrap();
    assert!(!enqueued.existing);
    let stored = rig.task(enqueued.id).await;
    if !harness.enqueues_for_workers() {
        assert_eq!((claimed, stored.state), (None, State::Ready));
        return;
    }
    let claimed = claimed.unwrap();
    assert_eq!((stored.state, stored.worker), (State::Running, Some(worker.id)));
    assert_eq!((stored.lease, stored.attempt, stored.started_at), (1, 1, Some(claimed.claimed_at)));
    assert_eq!((claimed.id, claimed.worker, claimed.claim_no), (enqueued.id, worker.id, demand.claim_no));
    assert_eq!((claimed.lease, claimed.attempt, claimed.max_attempts, claimed.crashes), (1, 1, 4, 0));
    assert_eq!((&claimed.payload, claimed.priority), (&new.payload, 3));
    assert_eq!((claimed.timeout, claimed.retry), (timeout, retry));
    assert_eq!(claimed.lane, first.lane);
    assert_eq!(worker.claim(MANY).await, [], "no other worker gets it");
    let settled = worker.settle(vec![(claimed, Outcome::Done(None)), (first, Outcome::Done(None))]).await;
    assert_eq!(settled.fenced, []);
    rig.assert_sound().await;
}

pub async fn a_task_for_a_waiting_worker_does_not_overtake(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let before = rig.add(task("a")).await;
    let mut worker = rig.worker().await;
    let demand = worker.demand(1).await;
    let high = NewTask { priority: 5, ..task("a") };
    let (high, claimed, _) = rig.store.enqueue_for(high, &demand).await.unwrap();
    assert_eq!((claimed, rig.state(high.id).await), (None, State::Ready));
    assert_eq!(worker.claim_one().await.id, high.id, "the new task is ready behind it");
    let back = worker.claim_one().await;
    assert_eq!(back.id, before);
    worker.end(&back, Outcome::Release).await;
    let demand = worker.demand(1).await;
    let (after, claimed, _) = rig.store.enqueue_for(task("a"), &demand).await.unwrap();
    assert_eq!((claimed, rig.state(after.id).await), (None, State::Ready), "what was handed back goes first");
    assert_eq!(worker.claim_one().await.id, before);
    rig.assert_sound().await;
}

pub async fn only_a_plain_task_is_leased_at_enqueue(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    rig.add(task("a")).await;
    let mut worker = rig.worker().await;
    worker.claim_one().await;
    let later = NewTask { start: Start::In(Duration::from_mins(1)), ..task("a") };
    for new in [later, of_job("j"), step_of("w"), keyed("k")] {
        let demand = worker.demand(1).await;
        let (enqueued, claimed, _) = rig.store.enqueue_for(new.clone(), &demand).await.unwrap();
        assert_eq!(claimed, None, "{new:?}");
        assert_ne!(rig.state(enqueued.id).await, State::Running);
        worker.claim(MANY).await;
    }
    let demand = worker.demand(1).await;
    let again = rig.store.enqueue_for(keyed("k"), &demand).await.unwrap();
    assert!(again.0.existing, "the key counts on this path too");
    rig.assert_sound().await;
}

pub async fn a_task_for_a_worker_that_may_not_claim_is_still_added(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    rig.add(task("a")).await;
    rig.add(in_queue("a", "still")).await;
    rig.store.set_queue_paused(&name("still"), true).await.unwrap();
    let (mut gone, mut late, mut worker) = (rig.worker().await, rig.worker().await, rig.worker().await);
    worker.claim_one().await;
    let gone_demand = gone.demand(1).await;
    rig.store.retire(gone.id).await.unwrap();
    let late_demand = late.demand(1).await;
    rig.store.unclaim(late.id, late_demand.claim_no).await.unwrap();
    for demand in [gone_demand, late_demand] {
        let (enqueued, claimed, _) = rig.store.enqueue_for(task("a"), &demand).await.unwrap();
        assert_eq!((claimed, rig.state(enqueued.id).await), (None, State::Ready));
        assert_eq!(worker.claim_one().await.id, enqueued.id);
    }
    let demand = worker.demand(1).await;
    let paused = rig.store.enqueue_for(in_queue("a", "still"), &demand).await.unwrap();
    assert_eq!((paused.1, rig.state(paused.0.id).await), (None, State::Ready), "its queue is paused");
    let other = rig.store.enqueue_for(task("b"), &demand).await.unwrap();
    assert_eq!((other.1, rig.state(other.0.id).await), (None, State::Ready), "the worker does not serve it");
    rig.assert_sound().await;
}

pub async fn unclaim_hands_back_a_task_enqueued_for_a_worker(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    rig.add(task("a")).await;
    let mut worker = rig.worker().await;
    worker.claim_one().await;
    let demand = worker.demand(1).await;
    let (enqueued, claimed, _) = rig.store.enqueue_for(task("a"), &demand).await.unwrap();
    let back = rig.store.unclaim(worker.id, demand.claim_no).await.unwrap();
    assert_eq!(back, u64::from(claimed.is_some()));
    assert_eq!(rig.state(enqueued.id).await, State::Ready);
    assert_eq!(worker.claim_one().await.id, enqueued.id);
    rig.assert_sound().await;
}
