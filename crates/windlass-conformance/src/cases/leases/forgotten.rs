//! A claim that the store forgets in a crash while its worker keeps running.

use windlass_core::{State, source::Reconciled};

use crate::{
    cases::rig::{Hand, Rig, lease_of, of_job},
    harness::Harness,
};

pub async fn the_lease_number_of_a_forgotten_claim_is_not_reused(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    rig.limit("site", 1).await;
    let id = rig.add(of_job("site")).await;
    let (mut first, second) = (rig.remote_worker().await, rig.remote_worker().await);
    let before = first.renew().await.unwrap().epoch;
    let task = first.claim_one().await;
    let Some(store) = harness.forget(rig.store, lease_of(&task)).await else { return };
    let rig = Rig { harness, store };
    let mut first = Hand { store: harness.connect(&rig.store).await, ..first };
    let mut second = Hand { store: harness.connect(&rig.store).await, ..second };
    assert_eq!(rig.state(id).await, State::Ready);

    // The worker learns of the crash from its next renewal, and then that its lease is gone.
    assert_ne!(first.renew().await.unwrap().epoch, before);
    let compared = first.store.reconcile(first.id, first.claim_no, &[lease_of(&task)]).await.unwrap();
    assert_eq!(compared, Reconciled { handed_back: 0, lost: vec![lease_of(&task)] });

    let again = second.claim_one().await;
    assert_eq!((again.id, again.attempt), (id, 1));
    assert!(again.lease > task.lease, "{} is not above {}", again.lease, task.lease);
    assert_eq!(first.settle(vec![(task, windlass_core::Outcome::Done(None))]).await.fenced, [id]);
    let compared = second.store.reconcile(second.id, second.claim_no, &[lease_of(&again)]).await.unwrap();
    assert_eq!(compared, Reconciled::default());
    second.finish(&again).await;
    assert_eq!(rig.state(id).await, State::Done);
    rig.assert_sound().await;
}

pub async fn lease_numbers_are_not_reused_after_very_many_claims(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    rig.add_many("a", 1).await;
    let mut worker = rig.remote_worker().await;
    let mut last = 0;
    // More claims than half of an epoch has numbers.
    for _ in 0..600 {
        let task = worker.claim_one().await;
        assert!(task.lease > last);
        last = task.lease;
        rig.store.unclaim(worker.id, worker.claim_no).await.unwrap();
    }
    let task = worker.claim_one().await;
    assert!(task.lease > last);
    let Some(store) = harness.forget(rig.store, lease_of(&task)).await else { return };
    let mut worker = Hand { store: harness.connect(&store).await, ..worker };
    worker.renew().await.unwrap();
    let again = worker.claim_one().await;
    assert!(again.lease > task.lease, "{} is not above {}", again.lease, task.lease);
}
