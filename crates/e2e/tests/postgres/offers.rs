//! Idle workers that have offered to take the next task, and are then stopped or killed.

use e2e::{
    postgres::{Place, judge, until},
    process::{END_LIMIT, Process},
    target::Target,
};
use rustix::process::Signal;

use crate::{arrivals, enqueue, target, until_open};

const OFFERS: &str = "SELECT count(*) FROM windlass.doorbell WHERE worker IS NOT NULL AND offered <> '{}'";

/// A worker that has run one task and offers to take another; also returns the id of that task.
async fn offering(place: &Place, target: &Target) -> (Process, String) {
    let worker = place.worker(2).await.unwrap();
    let first = enqueue(place, target, 1).await.pop_first().unwrap();
    until("the first task is done", || Ok(place.done_by(worker.pid())? == 1)).await.unwrap();
    until("it offers", || Ok(place.count(OFFERS)? == 1)).await.unwrap();
    (worker, first)
}

/// It learns of its task after the store has given that task to another worker.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_a_stopped_worker_had_offered_to_take_runs_once() {
    let place = Place::shared().unwrap();
    let target = target().await;
    let (zombie, first) = offering(&place, &target).await;
    let registered = place.registration(zombie.pid()).unwrap().unwrap();
    zombie.signal(Signal::STOP).unwrap();
    target.hold();
    let ids = [enqueue(&place, &target, 1).await.pop_first().unwrap()];
    assert_eq!(place.held_by(zombie.pid()).unwrap(), ids, "leased in the commit that added it");

    let heir = place.worker(2).await.unwrap();
    until_open(&target, 1).await;
    assert_eq!(place.held_by(heir.pid()).unwrap(), ids);
    zombie.signal(Signal::CONT).unwrap();
    until("it is back under another number", || {
        Ok(place.registration(zombie.pid())?.is_some_and(|now| now != registered))
    })
    .await
    .unwrap();
    assert_eq!(arrivals(&target, &ids), [1], "the zombie did not start it");
    target.release();
    let [id] = ids;
    let judged = judge(&place, &[first, id].into(), &target).await.unwrap();
    assert_eq!(judged.crashes, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_leased_to_a_worker_that_was_killed() {
    let place = Place::shared().unwrap();
    let target = target().await;
    let (mut killed, first) = offering(&place, &target).await;
    killed.signal(Signal::KILL).unwrap();
    killed.wait(END_LIMIT).unwrap();
    let present = "SELECT count(*) FROM pg_locks AS l, windlass.doorbell AS d
        WHERE l.locktype = 'advisory' AND (l.classid::bigint << 32 | l.objid::bigint) = d.presence";
    until("its connection is gone", || Ok(place.count(present)? == 0)).await.unwrap();
    let id = enqueue(&place, &target, 1).await.pop_first().unwrap();
    assert_eq!(place.count("SELECT count(*) FROM windlass.task WHERE state = 1").unwrap(), 1);
    let _heir = place.worker(2).await.unwrap();
    let judged = judge(&place, &[first, id].into(), &target).await.unwrap();
    assert_eq!(judged.crashes, 0);
}
