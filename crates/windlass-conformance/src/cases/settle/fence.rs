//! The fence: only the current (task, lease, worker) may write.

use std::{sync::Arc, time::Duration};

use windlass_core::{Error, Outcome, State, TaskId, WorkerId};

use crate::{
    cases::rig::{Rig, SWEPT_AFTER, lease_of, task},
    harness::Harness,
};

fn every_outcome() -> [Outcome; 6] {
    [
        Outcome::Done(None),
        Outcome::retry("late"),
        Outcome::snooze(Duration::from_secs(1)),
        Outcome::cancel("late"),
        Outcome::dead("late"),
        Outcome::Release,
    ]
}

pub async fn a_settlement_under_an_old_lease_changes_nothing(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let id = rig.add(task("a")).await;
    let mut worker = rig.worker().await;
    let old = worker.claim_one().await;
    worker.end(&old, Outcome::Release).await;
    let current = worker.claim_one().await;
    let before = rig.task(id).await;
    for outcome in every_outcome() {
        let settled = worker.settle(vec![(old.clone(), outcome)]).await;
        assert_eq!(settled.fenced, [id]);
        assert_eq!(rig.task(id).await, before);
    }
    worker.end(&current, Outcome::Done(None)).await;
    let done = rig.task(id).await;
    for outcome in every_outcome() {
        assert_eq!(worker.settle(vec![(current.clone(), outcome)]).await.fenced, [id]);
        assert_eq!(rig.task(id).await, done, "nor after the end");
    }
}

pub async fn a_settlement_of_another_worker_changes_nothing(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let id = rig.add(task("a")).await;
    let (mut owner, mut other) = (rig.worker().await, rig.worker().await);
    let claimed = owner.claim_one().await;
    let before = rig.task(id).await;
    for outcome in every_outcome() {
        assert_eq!(other.settle(vec![(claimed.clone(), outcome)]).await.fenced, [id]);
        assert_eq!(rig.task(id).await, before);
    }
    owner.end(&claimed, Outcome::Done(None)).await;
}

pub async fn a_swept_worker_cannot_settle_a_task_that_another_took(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let id = rig.add(task("a")).await;
    let mut zombie = rig.worker().await;
    let lost = zombie.claim_one().await;
    rig.advance(SWEPT_AFTER).await;
    assert_eq!(rig.sweep().await, 1);
    let mut heir = rig.worker().await;
    let taken = heir.claim_one().await;
    assert_eq!(zombie.settle(vec![(lost.clone(), Outcome::dead("late"))]).await.fenced, [id]);
    let progress = rig.store.progress(zombie.id, lease_of(&lost), "late".into()).await;
    assert_eq!(progress, Err(Error::LeaseLost(id)));
    assert_eq!(rig.state(id).await, State::Running);
    heir.end(&taken, Outcome::Done(None)).await;
}

pub async fn fenced_items_do_not_hinder_their_neighbours(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let ids = rig.add_many("a", 3).await;
    let mut worker = rig.worker().await;
    let mut tasks = worker.claim(3).await;
    tasks[1].lease += 1;
    let mut unknown = tasks[0].clone();
    unknown.id = TaskId::from_raw(1);
    tasks.insert(0, unknown);
    let done = tasks.into_iter().map(|task| (task, Outcome::Done(None))).collect();
    assert_eq!(worker.settle(done).await.fenced, [TaskId::from_raw(1), ids[1]]);
    assert_eq!(rig.state(ids[0]).await, State::Done);
    assert_eq!(rig.state(ids[1]).await, State::Running);
    assert_eq!(rig.state(ids[2]).await, State::Done);
}

pub async fn progress_is_kept_while_the_lease_is_held(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let id = rig.add(task("a")).await;
    let mut worker = rig.worker().await;
    let claimed = worker.claim_one().await;
    for text in ["10 of 20", "20 of 20"] {
        rig.store.progress(worker.id, lease_of(&claimed), text.to_owned()).await.unwrap();
        assert_eq!(rig.task(id).await.progress.as_deref(), Some(text));
    }
}

pub async fn progress_under_an_old_lease_is_refused(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let id = rig.add(task("a")).await;
    let mut worker = rig.worker().await;
    let old = lease_of(&worker.claim_one().await);
    rig.store.unclaim(worker.id, worker.claim_no).await.unwrap();
    let current = lease_of(&worker.claim_one().await);
    let lost = Err(Error::LeaseLost(id));
    assert_eq!(rig.store.progress(worker.id, old, "x".into()).await, lost);
    assert_eq!(rig.store.progress(WorkerId(worker.id.0 + 1), current, "x".into()).await, lost);
    assert_eq!(rig.task(id).await.progress, None);
}

pub async fn a_result_after_the_lease_counts_if_the_task_was_not_taken(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let id = rig.add(task("a")).await;
    let mut worker = rig.worker().await;
    let claimed = worker.claim_one().await;
    rig.advance(Duration::from_hours(1)).await;
    rig.store.progress(worker.id, lease_of(&claimed), "slow".into()).await.unwrap();
    worker.end(&claimed, Outcome::Done(None)).await;
    assert_eq!(rig.state(id).await, State::Done);
    assert_eq!(rig.sweep().await, 0);
    assert_eq!(rig.state(id).await, State::Done);
}

pub async fn racing_settlements_of_one_attempt_have_one_winner(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let id = rig.add(task("a")).await;
    let mut worker = rig.worker().await;
    let claimed = worker.claim_one().await;
    let mut racers = Vec::new();
    for settler_no in 0..8 {
        let mut batch = worker.batch(vec![(claimed.clone(), Outcome::Release)]).await;
        batch.settler_no = settler_no;
        let store = Arc::clone(&worker.store);
        racers.push(tokio::spawn(async move { store.settle(Arc::new(batch)).await.unwrap() }));
    }
    let mut winners = 0;
    for racer in racers {
        winners += usize::from(racer.await.unwrap().fenced.is_empty());
    }
    assert_eq!((winners, rig.task(id).await.attempt), (1, 0));
}
