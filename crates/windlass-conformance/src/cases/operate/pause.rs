//! Paused queues: no task is claimed from them; all other calls work.

use windlass_core::{Outcome, State, source::Rest};

use crate::{
    cases::rig::{MANY, Rig, in_queue, name},
    harness::Harness,
};

pub async fn nothing_is_claimed_from_a_paused_queue(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let (held, free) = (rig.add(in_queue("a", "p")).await, rig.add(in_queue("a", "q")).await);
    assert_eq!(rig.store.set_queue_paused(&name("p"), true).await, Ok(true));
    assert_eq!(rig.store.paused_queues().await.unwrap(), [name("p")]);
    let mut worker = rig.worker().await;
    let answer = worker.try_claim(MANY).await.unwrap();
    assert_eq!((answer.tasks[0].id, answer.tasks.len(), answer.rest), (free, 1, Rest::Blocked));
    let lanes = rig.store.lane_records().await.unwrap();
    assert!(lanes.iter().all(|lane| lane.paused == (lane.queue == name("p"))), "{lanes:?}");
    assert_eq!(rig.store.set_queue_paused(&name("p"), false).await, Ok(true));
    assert_eq!(worker.claim_ids(MANY).await, [held]);
}

pub async fn a_pause_changes_nothing_the_second_time(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    assert_eq!(rig.store.set_queue_paused(&name("p"), false).await, Ok(false));
    assert_eq!(rig.store.set_queue_paused(&name("p"), true).await, Ok(true));
    assert_eq!(rig.store.set_queue_paused(&name("p"), true).await, Ok(false));
}

pub async fn a_queue_can_be_paused_before_its_first_task(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    rig.store.set_queue_paused(&name("p"), true).await.unwrap();
    let id = rig.add(in_queue("a", "p")).await;
    assert_eq!(rig.worker().await.claim_ids(MANY).await, []);
    assert_eq!(rig.state(id).await, State::Ready);
}

pub async fn running_tasks_of_a_paused_queue_can_be_settled(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let ids = rig.store.enqueue(vec![in_queue("a", "p"); 2]).await.unwrap();
    let mut worker = rig.worker().await;
    let tasks = worker.claim(2).await;
    rig.store.set_queue_paused(&name("p"), true).await.unwrap();
    worker.end(&tasks[0], Outcome::Done(None)).await;
    worker.end(&tasks[1], Outcome::Release).await;
    assert_eq!(rig.state(ids[0].id).await, State::Done);
    assert_eq!(worker.claim_ids(MANY).await, [], "a task that becomes ready again waits");
}
