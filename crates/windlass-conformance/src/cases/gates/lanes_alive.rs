//! Only tasks that a live worker can take use a job's room. A kind without a worker and a paused queue do not
//! hold up other tasks.

use std::time::Duration;

use windlass_core::{NewTask, Outcome, State, source::Rest};

use crate::{
    cases::rig::{MANY, Rig, name, of_job, task},
    harness::Harness,
};

fn of_kind(kind: &str, job: &str) -> NewTask {
    NewTask { kind: name(kind), ..of_job(job) }
}

fn of_queue(queue: &str, job: &str) -> NewTask {
    NewTask { queue: name(queue), ..of_job(job) }
}

pub async fn tasks_of_a_kind_without_a_worker_take_no_room(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker_of(&["a"], &[], 10).await;
    rig.limit("j", 1).await;
    let foreign = rig.add_all(vec![of_kind("b", "j"); 3]).await;
    let served = rig.add(of_kind("a", "j")).await;
    assert_eq!(rig.states(&foreign).await, [State::Held; 3]);
    assert_eq!(worker.claim_ids(MANY).await, [served]);
    rig.assert_sound().await;
}

pub async fn a_task_without_a_worker_outranks_no_ready_one(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker_of(&["a"], &[], 10).await;
    rig.limit("j", 1).await;
    let ready = rig.add(of_job("j")).await;
    let behind = rig.add(task("a")).await;
    let foreign = rig.add(NewTask { priority: 1, ..of_kind("b", "j") }).await;
    assert_eq!(rig.states(&[ready, foreign]).await, [State::Ready, State::Held]);
    assert_eq!(worker.claim_ids(MANY).await, [ready, behind], "it keeps its place in the line");
    rig.assert_sound().await;
}

pub async fn a_new_worker_makes_the_tasks_of_its_lanes_ready(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    rig.limit("j", 2).await;
    let ids = rig.add_all(vec![of_job("j"); 3]).await;
    assert_eq!(rig.states(&ids).await, [State::Held; 3]);
    rig.assert_sound().await;
    let mut worker = rig.worker().await;
    assert_eq!(worker.claim_ids(MANY).await, ids[..2]);
    rig.assert_sound().await;
}

pub async fn a_worker_of_other_queues_makes_no_task_ready(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    rig.limit("j", 1).await;
    let _elsewhere = rig.worker_of(&["a"], &["r"], 10).await;
    let here = rig.add(of_queue("q", "j")).await;
    let there = rig.add(of_queue("r", "j")).await;
    assert_eq!(rig.states(&[here, there]).await, [State::Held, State::Ready]);
}

pub async fn tasks_of_a_paused_queue_give_their_room_to_others(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    rig.limit("j", 1).await;
    let ids = rig.add_all(vec![of_queue("q", "j"), of_queue("r", "j")]).await;
    assert_eq!(rig.states(&ids).await, [State::Ready, State::Held]);
    rig.store.set_queue_paused(&name("q"), true).await.unwrap();
    assert_eq!(rig.states(&ids).await, [State::Held, State::Ready]);
    let answer = worker.try_claim(MANY).await.unwrap();
    assert_eq!((answer.tasks.len(), answer.rest), (1, Rest::Nothing));
    worker.finish(&answer.tasks[0]).await;
    assert_eq!(rig.state(ids[0]).await, State::Held);
    rig.assert_sound().await;
    rig.store.set_queue_paused(&name("q"), false).await.unwrap();
    assert_eq!(worker.claim_ids(MANY).await, [ids[0]]);
}

pub async fn a_task_handed_back_to_a_paused_queue_gives_up_its_room(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    rig.limit("j", 1).await;
    let ids = rig.add_all(vec![of_queue("q", "j"), of_queue("r", "j")]).await;
    let claimed = worker.claim_one().await;
    rig.store.set_queue_paused(&name("q"), true).await.unwrap();
    worker.end(&claimed, Outcome::Release).await;
    assert_eq!(rig.states(&ids).await, [State::Held, State::Ready]);
    rig.assert_sound().await;
}

pub async fn a_lane_loses_its_room_with_its_last_worker(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    rig.limit("j", 1).await;
    let retiring = rig.worker_of(&["a"], &[], 10).await;
    let dying = rig.worker_of(&["b"], &[], 10).await;
    let ids = rig.add_all(vec![of_kind("a", "j"), of_kind("b", "j"), of_kind("c", "j")]).await;
    assert_eq!(rig.states(&ids).await, [State::Ready, State::Held, State::Held]);
    rig.store.retire(retiring.id).await.unwrap();
    assert_eq!(rig.states(&ids).await, [State::Held, State::Ready, State::Held]);
    rig.advance(Duration::from_secs(5)).await;
    let mut last = rig.worker_of(&["c"], &[], 10).await;
    rig.advance(Duration::from_secs(7)).await;
    last.renew().await.unwrap();
    let report = rig.store.expire_workers(MANY).await.unwrap();
    assert_eq!((report.workers, report.moved), (vec![dying.id], 0));
    assert_eq!(rig.states(&ids).await, [State::Held, State::Held, State::Ready]);
    assert_eq!(last.claim_ids(MANY).await, [ids[2]]);
    rig.assert_sound().await;
}

pub async fn a_plain_task_is_ready_without_any_worker(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let plain = rig.add(NewTask { job: None, ..of_job("j") }).await;
    let step = rig.add(NewTask { job: None, workflow: Some(name("w")), ..of_job("j") }).await;
    assert_eq!(rig.states(&[plain, step]).await, [State::Ready; 2]);
}
