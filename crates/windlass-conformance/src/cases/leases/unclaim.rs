//! Unclaim: what a worker calls when the answer to a claim was lost.

use windlass_core::{Error, State};

use crate::{
    cases::rig::{MANY, Rig},
    harness::Harness,
};

pub async fn an_unclaimed_claim_gives_its_tasks_back(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let ids = rig.add_many("a", 5).await;
    let mut worker = rig.worker().await;
    worker.claim(2).await;
    worker.claim(2).await;
    assert_eq!(rig.store.unclaim(worker.id, 2).await.unwrap(), 2);
    for id in &ids[2..4] {
        let seen = rig.task(*id).await;
        assert_eq!((seen.state, seen.attempt, seen.crashes, seen.lease), (State::Ready, 0, 0, 1));
    }
    assert_eq!(rig.state(ids[0]).await, State::Running, "an earlier claim is not touched");
    assert_eq!(rig.worker().await.claim_ids(MANY).await, [ids[4], ids[2], ids[3]]);
    rig.assert_sound().await;
}

pub async fn a_claim_that_arrives_after_its_unclaim_is_refused(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let ids = rig.add_many("a", 2).await;
    let mut worker = rig.worker().await;
    worker.claim(1).await;
    let late = worker.demand(1).await;
    assert_eq!(rig.store.unclaim(worker.id, late.claim_no).await.unwrap(), 0);
    assert_eq!(rig.store.claim(std::slice::from_ref(&late)).await, Err(Error::WorkerExpired));
    let earlier = windlass_core::Demand { claim_no: late.claim_no - 1, ..late };
    assert_eq!(rig.store.claim(&[earlier]).await, Err(Error::WorkerExpired));
    assert_eq!(rig.state(ids[1]).await, State::Ready, "the worker would not know of the task");
    assert_eq!(worker.claim_ids(1).await, [ids[1]], "the next claim is accepted");
}

pub async fn a_second_unclaim_changes_nothing(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    rig.add_many("a", 1).await;
    let mut worker = rig.worker().await;
    worker.claim(1).await;
    assert_eq!(rig.store.unclaim(worker.id, 1).await.unwrap(), 1);
    assert_eq!(rig.store.unclaim(worker.id, 1).await.unwrap(), 0);
    worker.claim_one().await;
    assert_eq!(rig.store.unclaim(worker.id, 1).await.unwrap(), 0, "another claim has taken the task since");
}

pub async fn an_unclaim_does_not_touch_another_worker(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    rig.add_many("a", 2).await;
    let (mut first, mut second) = (rig.worker().await, rig.worker().await);
    let mine = first.claim_one().await;
    second.claim_one().await;
    assert_eq!(rig.store.unclaim(second.id, 1).await.unwrap(), 1);
    assert_eq!(rig.state(mine.id).await, State::Running);
}
