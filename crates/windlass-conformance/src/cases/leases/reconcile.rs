//! Reconcile: compares the leases that the store gives a worker with those that the worker has.

use windlass_core::{LeaseRef, State, source::Reconciled};

use crate::{
    cases::rig::{MANY, Rig, lease_of},
    harness::Harness,
};

pub async fn a_task_that_the_worker_does_not_name_is_handed_back(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let ids = rig.add_many("a", 3).await;
    let mut worker = rig.worker().await;
    let tasks = worker.claim(MANY).await;
    let in_flight = [lease_of(&tasks[0]), lease_of(&tasks[2])];
    assert_eq!(rig.store.reconcile(worker.id, 1, &in_flight).await.unwrap().handed_back, 1);
    let seen = rig.task(ids[1]).await;
    assert_eq!((seen.state, seen.attempt), (State::Ready, 0));
    assert_eq!(rig.state(ids[0]).await, State::Running);
    assert_eq!(rig.store.reconcile(worker.id, 1, &in_flight).await.unwrap().handed_back, 0);
    rig.assert_sound().await;
}

pub async fn a_claim_that_may_be_on_its_way_is_left_alone(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let ids = rig.add_many("a", 2).await;
    let mut worker = rig.worker().await;
    worker.claim(1).await;
    worker.claim(1).await;
    assert_eq!(rig.store.reconcile(worker.id, 1, &[]).await.unwrap().handed_back, 1);
    assert_eq!((rig.state(ids[0]).await, rig.state(ids[1]).await), (State::Ready, State::Running));
}

pub async fn naming_an_old_lease_does_not_keep_the_task(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let ids = rig.add_many("a", 1).await;
    let mut worker = rig.worker().await;
    let old = lease_of(&worker.claim_one().await);
    rig.store.unclaim(worker.id, 1).await.unwrap();
    worker.claim_one().await;
    assert_eq!(rig.store.reconcile(worker.id, 2, &[old]).await.unwrap().handed_back, 1);
    assert_eq!(rig.state(ids[0]).await, State::Ready);
}

pub async fn a_lease_that_the_store_does_not_give_the_worker_is_lost(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let ids = rig.add_many("a", 6).await;
    let (mut worker, mut other) = (rig.worker().await, rig.worker().await);
    let theirs = lease_of(&other.claim_one().await);
    let returned = lease_of(&worker.claim_one().await);
    rig.store.unclaim(worker.id, worker.claim_no).await.unwrap();
    let settled = worker.claim_one().await;
    worker.finish(&settled).await;
    let (early, late) = (lease_of(&worker.claim_one().await), lease_of(&worker.claim_one().await));
    let never = LeaseRef { id: ids[5], lease: 1 };
    // A claim above the number belongs to the worker too: a lease that the worker names has arrived.
    let named = [late, never, lease_of(&settled), theirs, early, returned];
    let compared = worker.store.reconcile(worker.id, worker.claim_no - 1, &named).await.unwrap();
    assert_eq!((compared.handed_back, compared.lost), (0, vec![theirs, returned, lease_of(&settled), never]));
    let compared = worker.store.reconcile(worker.id, worker.claim_no, &[early, late]).await.unwrap();
    assert_eq!(compared, Reconciled::default());
    rig.assert_sound().await;
}
