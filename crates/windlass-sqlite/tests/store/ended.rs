use std::time::Duration;

use windlass_core::{State, Store, TaskId};

use crate::rig::{DONE, Rig};

#[tokio::test]
async fn the_end_of_a_task_wakes_its_waiter() {
    let rig = Rig::new().await;
    let ids = rig.add(3).await;
    let store = rig.store.clone();
    let wanted = ids.clone();
    let waiter = tokio::spawn(async move { store.ended(&wanted, Duration::from_hours(1)).await });
    let worker = rig.worker().await;
    let claimed = rig.claim(worker, 1).await.tasks;
    assert!(!waiter.is_finished());
    rig.settle(worker, &claimed, &DONE).await;
    let ended = waiter.await.unwrap().unwrap();
    assert_eq!(ended.len(), 1);
    assert_eq!(ended[0].1.as_ref().map(|task| (task.id, task.state)), Some((ids[0], State::Done)));
}

#[tokio::test]
async fn cancelled_dead_and_unknown_tasks_have_ended() {
    let rig = Rig::new().await;
    let ids = rig.add(2).await;
    rig.store.cancel(&ids[1..], "no longer needed").await.unwrap();
    let worker = rig.worker().await;
    let claimed = rig.claim(worker, 1).await.tasks;
    rig.settle(worker, &claimed, &windlass_core::Settlement::Dead { error: "x".into() }).await;
    let unknown = TaskId::from_raw(7);
    let ended = rig.store.ended(&[ids[0], ids[1], unknown], Duration::ZERO).await.unwrap();
    let states: Vec<_> = ended.into_iter().map(|(id, task)| (id, task.map(|task| task.state))).collect();
    assert_eq!(states, [(ids[0], Some(State::Dead)), (ids[1], Some(State::Cancelled)), (unknown, None)]);
}

#[tokio::test]
async fn a_wait_without_an_end_returns_nothing() {
    let rig = Rig::new().await;
    let ids = rig.add(1).await;
    assert_eq!(rig.store.ended(&ids, Duration::ZERO).await.unwrap(), []);
    assert_eq!(rig.store.ended(&ids, Duration::from_millis(5)).await.unwrap(), []);
}
