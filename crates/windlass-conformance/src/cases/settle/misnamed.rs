//! A settlement that names another job or workflow than its task has: the store's own record counts.
//!
//! The hazard: the names come over the wire, from clients in any language, and a client may send wrong ones.
//! Such a worker must not give away the room of a job that it does not work for, nor leave a workflow without
//! a turn.

use std::sync::Arc;

use windlass_core::{Claimed, Gate, Outcome, Payload, SettleItem, Settled, State};

use crate::{
    cases::rig::{Hand, MANY, Rig, name, of_job, step_of, task},
    harness::Harness,
};

/// The wrong names of a settlement: none, one that exists, and one that does not.
fn wrong_names() -> [Option<&'static str>; 3] {
    [None, Some("other"), Some("unknown")]
}

/// Outcomes that take different code paths through a store.
fn ends() -> [Outcome; 4] {
    [
        Outcome::Done(None),
        Outcome::Done(Some(Payload::bytes(*b"x"))),
        Outcome::cancel("not wanted"),
        Outcome::dead("broken"),
    ]
}

async fn settle_as(hand: &mut Hand<'_>, ends: Vec<(Claimed, Outcome)>, gate: &Gate) -> Settled {
    let mut batch = hand.batch(ends).await;
    let said = |item: SettleItem| SettleItem { gate: gate.clone(), ..item };
    batch.items = batch.items.into_iter().map(said).collect();
    let batch = Arc::new(batch);
    let settled = hand.store.settle(Arc::clone(&batch)).await.unwrap();
    let again = hand.store.settle(batch).await.unwrap();
    assert_eq!(
        (again.replayed, &again.fenced),
        (true, &settled.fenced),
        "the same batch gets the same answer"
    );
    settled
}

pub async fn a_settlement_naming_another_job_frees_the_room_of_its_own(harness: &dyn Harness) {
    for wrong in wrong_names() {
        for outcome in ends().into_iter().chain([Outcome::Release]) {
            let rig = Rig::open(harness).await;
            let mut worker = rig.worker().await;
            for job in ["own", "other"] {
                rig.limit(job, 1).await;
                rig.add_all(vec![of_job(job); 2]).await;
            }
            let claimed = worker.claim(MANY).await;
            let own = claimed.iter().find(|task| task.job == Some(name("own"))).unwrap().clone();
            assert_eq!(claimed.len(), 2, "one of each job");
            let gate = Gate { job: wrong.map(name), workflow: None };
            assert_eq!(settle_as(&mut worker, vec![(own, outcome)], &gate).await.fenced, []);
            assert_eq!(rig.figures("other").await, (0, 1, 1), "the other job's room is not given back");
            let next = worker.claim(MANY).await;
            assert_eq!(next.len(), 1, "its own room is given back, once");
            assert_eq!(next[0].job, Some(name("own")));
            rig.assert_sound().await;
        }
    }
}

pub async fn a_settlement_naming_another_workflow_advances_its_own(harness: &dyn Harness) {
    for wrong in wrong_names() {
        for outcome in ends() {
            let rig = Rig::open(harness).await;
            let mut worker = rig.worker().await;
            let steps = rig.add_all(vec![step_of("own"); 2]).await;
            let others = rig.add_all(vec![step_of("other"); 2]).await;
            let plain = rig.add(task("a")).await;
            let claimed = worker.claim(MANY).await;
            assert_eq!(claimed.len(), 3, "a step of each workflow, and one of none");
            let own = claimed.iter().find(|task| task.id == steps[0]).unwrap().clone();
            let beside = claimed.iter().find(|task| task.id == plain).unwrap().clone();
            let gate = Gate { job: None, workflow: wrong.map(name) };
            let ends = vec![(own, outcome.clone()), (beside, Outcome::Done(None))];
            assert_eq!(settle_as(&mut worker, ends, &gate).await.fenced, []);
            assert_eq!(rig.state(plain).await, State::Done);
            assert_eq!(
                rig.states(&others).await,
                [State::Running, State::Waiting],
                "the other workflow does not go on"
            );
            if rig.state(steps[0]).await == State::Done {
                assert_eq!(worker.claim_ids(MANY).await, [steps[1]], "its own workflow goes on");
            } else {
                assert!(
                    rig.workflow("own").await.unwrap().blocked_by.is_some(),
                    "a failed step blocks its own workflow"
                );
                assert_eq!(worker.claim_ids(MANY).await, []);
            }
            rig.assert_sound().await;
        }
    }
}

pub async fn a_lost_lease_stays_lost_beside_one_without_a_workflow(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    let steps = rig.add_all(vec![step_of("w"); 2]).await;
    let lost = rig.add(task("a")).await;
    let claimed = worker.claim(MANY).await;
    let mut ends: Vec<_> = claimed.into_iter().map(|task| (task, Outcome::Done(None))).collect();
    for (task, _) in ends.iter_mut().filter(|(task, _)| task.id == lost) {
        task.lease += 1;
    }
    let settled = settle_as(&mut worker, ends, &Gate::default()).await;
    assert_eq!(settled.fenced, [lost]);
    assert_eq!(rig.states(&steps).await, [State::Done, State::Ready]);
    assert_eq!(rig.state(lost).await, State::Running);
    rig.assert_sound().await;
}
