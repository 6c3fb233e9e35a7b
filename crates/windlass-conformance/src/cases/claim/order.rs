//! The order of claims: priority, then order of entry into ready; and from which lanes a claim takes.

use std::time::Duration;

use windlass_core::{Demand, LaneId, NewTask, Outcome, Start};

use crate::{
    cases::rig::{MANY, Rig, in_queue, name, task},
    harness::Harness,
};

pub async fn higher_priority_goes_first_then_order_of_entry(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut ids = Vec::new();
    for priority in [0, 5, -5, 5, i32::MAX, i32::MIN, 0] {
        ids.push(rig.add(NewTask { priority, ..task("a") }).await);
    }
    let order: Vec<_> = [4, 1, 3, 0, 6, 2, 5].into_iter().map(|place| ids[place]).collect();
    let mut worker = rig.worker().await;
    let mut taken = worker.claim_ids(3).await;
    taken.extend(worker.claim_ids(MANY).await);
    assert_eq!(taken, order);
}

pub async fn lanes_share_one_line(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut ids = Vec::new();
    for (kind, queue, priority) in
        [("a", "q", 0), ("b", "q", 0), ("a", "r", 1), ("a", "q", 0), ("c", "r", 0), ("b", "q", 1)]
    {
        ids.push(rig.add(NewTask { priority, ..in_queue(kind, queue) }).await);
    }
    let order: Vec<_> = [2, 5, 0, 1, 3, 4].into_iter().map(|place| ids[place]).collect();
    let mut worker = rig.worker().await;
    let mut taken = worker.claim_ids(4).await;
    taken.extend(worker.claim_ids(MANY).await);
    assert_eq!(taken, order);
}

pub async fn a_task_that_comes_back_goes_to_the_end_of_the_line(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let ids = rig.add_many("a", 3).await;
    let mut worker = rig.worker().await;
    let first = worker.claim_one().await;
    worker.end(&first, Outcome::Release).await;
    assert_eq!(worker.claim_ids(MANY).await, [ids[1], ids[2], ids[0]]);
}

pub async fn a_task_that_becomes_due_goes_to_the_end_of_the_line(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let later = rig.add(NewTask { start: Start::In(Duration::from_secs(2)), ..task("a") }).await;
    let sooner = rig.add(NewTask { start: Start::In(Duration::from_secs(1)), ..task("a") }).await;
    let ready = rig.add(task("a")).await;
    rig.advance(Duration::from_secs(5)).await;
    rig.promote().await;
    assert_eq!(rig.worker().await.claim_ids(MANY).await, [ready, sooner, later]);
}

pub async fn a_claim_takes_from_its_lanes_only(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let foreign = rig.add(NewTask { priority: 9, ..task("unknown") }).await;
    let mine = rig.add(task("a")).await;
    let mut worker = rig.worker().await;
    assert_eq!(worker.claim_ids(MANY).await, [mine]);
    let demand = Demand { lanes: [LaneId(987_654)].into(), ..worker.demand(5).await };
    assert_eq!(rig.store.claim(&[demand]).await.unwrap().tasks, []);
    assert_eq!(rig.task(foreign).await.lease, 0);
}

pub async fn lanes_are_found_by_kind_and_queue(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    for (kind, queue) in [("a", "q"), ("a", "r"), ("b", "q"), ("a", "q")] {
        rig.add(in_queue(kind, queue)).await;
    }
    let found = async |kinds: &[&str], queues: &[&str]| {
        let kinds: Vec<_> = kinds.iter().map(|kind| name(kind)).collect();
        let queues: Vec<_> = queues.iter().map(|queue| name(queue)).collect();
        let lanes = rig.store.lanes(&kinds, &queues).await.unwrap();
        let mut pairs: Vec<_> = lanes.iter().map(|lane| format!("{}/{}", lane.queue, lane.kind)).collect();
        pairs.sort();
        pairs
    };
    assert_eq!(found(&["a"], &[]).await, ["q/a", "r/a"]);
    assert_eq!(found(&["a", "b"], &["q"]).await, ["q/a", "q/b"]);
    assert!(found(&["z"], &[]).await.is_empty());
    assert!(found(&["b"], &["r"]).await.is_empty());
}
