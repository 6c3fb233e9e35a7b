//! Durability: acknowledged writes are there after the process ended.

use std::{sync::Arc, time::Duration};

use windlass_core::{NewTask, Outcome, Payload, Start, State, WorkerReport};

use super::rig::{MANY, Rig, TTL, keyed, name, task};
use crate::harness::Harness;

pub async fn an_acknowledged_task_is_there_after_a_restart(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    rig.add_many("a", 3).await;
    rig.add(NewTask { start: Start::In(Duration::from_secs(9)), ..task("b") }).await;
    let key = rig.add(keyed("k")).await;
    rig.store.set_queue_paused(&name("p"), true).await.unwrap();
    let before = rig.all().await;
    let Some(rig) = rig.reopen().await else { return };
    assert_eq!(rig.all().await, before);
    assert_eq!(rig.add(keyed("k")).await, key);
    assert_eq!(rig.store.paused_queues().await.unwrap(), [name("p")]);
    assert_eq!(rig.worker().await.claim(MANY).await.len(), 4);
    let newest = rig.add(task("a")).await;
    assert!(before.iter().all(|task| task.id < newest), "ids rise over a restart");
}

pub async fn a_settled_task_does_not_run_again_after_a_restart(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let ids = rig.add_many("a", 4).await;
    let mut worker = rig.worker().await;
    let tasks = worker.claim(MANY).await;
    let output = Payload::json(&"kept").unwrap();
    worker.end(&tasks[0], Outcome::Done(Some(output))).await;
    worker.end(&tasks[1], Outcome::dead("x")).await;
    worker.end(&tasks[2], Outcome::retry_after(Duration::from_hours(9), "y")).await;
    let batch = Arc::new(worker.batch(vec![(tasks[3].clone(), Outcome::Done(None))]).await);
    rig.store.settle(Arc::clone(&batch)).await.unwrap();
    let before = rig.all().await;
    let Some(rig) = rig.reopen().await else { return };
    assert_eq!(rig.all().await, before);
    rig.advance(Duration::from_mins(5)).await;
    rig.sweep().await;
    rig.promote().await;
    assert_eq!(rig.worker().await.claim_ids(MANY).await, []);
    let again = rig.store.settle(batch).await.unwrap();
    assert!(again.replayed && again.fenced.is_empty(), "its receipt is there too: {again:?}");
    assert_eq!(rig.state(ids[3]).await, State::Done);
}

pub async fn a_running_task_is_recovered_after_a_restart(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let ids = rig.add_many("a", 2).await;
    let mut worker = rig.worker().await;
    let lost = worker.claim_one().await;
    let Some(rig) = rig.reopen().await else { return };
    // A store that several processes share waits for the lease, and for one lease time after its own start.
    rig.advance(Duration::from_mins(1)).await;
    rig.sweep().await;
    let seen = rig.task(lost.id).await;
    assert_eq!((seen.state, seen.crashes, seen.attempt, seen.lease), (State::Ready, 1, 0, 1));
    let mut taken = rig.worker().await.claim(MANY).await;
    taken.sort_by_key(|task| task.id);
    assert_eq!(taken.iter().map(|task| task.id).collect::<Vec<_>>(), ids);
    assert!(taken[0].lease > lost.lease);
    let worker = rig.worker().await;
    assert!(worker.id > lost.worker, "ids of workers rise over a restart");
    rig.assert_sound().await;
}

pub async fn a_worker_of_another_process_keeps_its_leases_over_a_restart(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    rig.add_many("a", 3).await;
    let mut worker = rig.remote_worker().await;
    let kept = worker.claim_one().await;
    let asked = worker.claim_one().await;
    rig.store.cancel(&[asked.id], "no longer wanted").await.unwrap();
    let batch = Arc::new(worker.batch(vec![(kept.clone(), Outcome::Done(None))]).await);
    let Some(rig) = rig.reopen().await else { return };
    rig.advance(TTL * 2 / 3).await;
    rig.sweep().await;
    let renewed = rig.store.renew(worker.id, WorkerReport::of_new(100)).await.unwrap();
    assert_eq!(renewed.cancels.len(), 1, "the request to end is sent again: {renewed:?}");
    rig.advance(TTL * 2 / 3).await;
    rig.sweep().await;
    let seen = rig.task(kept.id).await;
    assert_eq!((seen.state, seen.crashes, seen.lease), (State::Running, 0, kept.lease));
    assert_eq!(rig.worker().await.claim(MANY).await.len(), 1, "no other worker gets its task");
    let settled = rig.store.settle(batch).await.unwrap();
    assert_eq!(settled.fenced, [], "the same lease");
    assert_eq!(rig.state(kept.id).await, State::Done);
    rig.assert_sound().await;
}

pub async fn a_lost_worker_of_another_process_loses_its_leases(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    rig.add_many("a", 1).await;
    let lost = rig.remote_worker().await.claim_one().await;
    let Some(rig) = rig.reopen().await else { return };
    rig.advance(Duration::from_mins(1)).await;
    rig.sweep().await;
    let seen = rig.task(lost.id).await;
    assert_eq!((seen.state, seen.crashes, seen.attempt, seen.lease), (State::Ready, 1, 0, 1));
    let late = rig.store.renew(lost.worker, WorkerReport::of_new(100)).await;
    assert_eq!(late.unwrap_err(), windlass_core::Error::WorkerExpired);
    rig.assert_sound().await;
}
