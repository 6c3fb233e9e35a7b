//! Expiry: when the tasks of a dead worker become ready again, and when not.

use std::{collections::BTreeSet, time::Duration};

use windlass_core::{Outcome, State};

use crate::{
    cases::rig::{MANY, Rig, SWEPT_AFTER},
    harness::Harness,
};

pub async fn tasks_of_a_dead_worker_are_ready_one_second_after_its_lease(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let ids = rig.add_many("a", 3).await;
    let mut worker = rig.worker().await;
    let lane = worker.claim(MANY).await[0].lane.id;
    rig.advance(SWEPT_AFTER).await;
    let report = rig.store.expire_workers(MANY).await.unwrap();
    assert_eq!((report.moved, report.workers, report.more), (3, vec![worker.id], false));
    assert_eq!(report.lanes_ready, [lane]);
    for id in ids {
        assert_eq!(rig.state(id).await, State::Ready);
    }
    rig.assert_sound().await;
}

pub async fn a_sweep_before_the_grace_second_takes_nothing(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let ids = rig.add_many("a", 2).await;
    let mut worker = rig.worker().await;
    worker.claim(MANY).await;
    for step in [Duration::from_secs(6), Duration::from_secs(4), Duration::from_millis(500)] {
        rig.advance(step).await;
        let report = rig.store.expire_workers(MANY).await.unwrap();
        assert_eq!((report.moved, report.workers), (0, vec![]));
        assert_eq!(rig.state(ids[0]).await, State::Running);
    }
}

pub async fn a_sweep_takes_only_what_the_dead_worker_held(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let ids = rig.add_many("a", 3).await;
    let (mut dead, mut live) = (rig.worker().await, rig.worker().await);
    dead.claim(1).await;
    live.claim(1).await;
    rig.advance(Duration::from_secs(8)).await;
    live.renew().await.unwrap();
    rig.advance(Duration::from_secs(4)).await;
    assert_eq!(rig.sweep().await, 1);
    let mut states = Vec::new();
    for id in ids {
        states.push(rig.state(id).await);
    }
    assert_eq!(states, [State::Ready, State::Running, State::Ready]);
    assert_eq!(rig.sweep().await, 0);
}

pub async fn a_bounded_sweep_says_that_there_is_more(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    rig.add_many("a", 10).await;
    let mut worker = rig.worker().await;
    worker.claim(MANY).await;
    rig.advance(SWEPT_AFTER).await;
    let (mut moved, mut rounds) = (0, 0);
    loop {
        let report = rig.store.expire_workers(3).await.unwrap();
        assert!(report.moved <= 3);
        moved += report.moved;
        rounds += 1;
        if !report.more {
            break;
        }
    }
    assert_eq!(moved, 10);
    assert!(rounds >= 4);
    rig.assert_sound().await;
}

pub async fn two_sweeps_at_once_take_each_task_once(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let ids = rig.add_many("a", 40).await;
    for _ in 0..4 {
        rig.worker().await.claim(10).await;
    }
    rig.advance(SWEPT_AFTER).await;
    let mut sweeps = Vec::new();
    for _ in 0..4 {
        let store = harness.connect(&rig.store).await;
        sweeps.push(tokio::spawn(async move { store.expire_workers(MANY).await.unwrap() }));
    }
    let (mut moved, mut workers) = (0, Vec::new());
    for sweep in sweeps {
        let report = sweep.await.unwrap();
        moved += report.moved;
        workers.extend(report.workers);
    }
    moved += rig.sweep().await;
    assert_eq!((moved, workers.iter().collect::<BTreeSet<_>>().len()), (40, 4));
    for id in ids {
        assert_eq!(rig.task(id).await.crashes, 1);
    }
}

pub async fn a_recovered_task_runs_again_and_finishes(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let ids = rig.add_many("a", 1).await;
    let mut dead = rig.worker().await;
    dead.claim_one().await;
    rig.let_die(dead).await;
    let mut heir = rig.worker().await;
    let claimed = heir.claim_one().await;
    assert_eq!((claimed.id, claimed.lease, claimed.attempt, claimed.crashes), (ids[0], 2, 1, 1));
    heir.end(&claimed, Outcome::Done(None)).await;
    let seen = rig.task(ids[0]).await;
    assert_eq!((seen.state, seen.crashes, seen.attempts.len()), (State::Done, 0, 2));
}
