//! FENCED and SELF-FENCE: a worker that stood still beyond its lease and goes on.

use e2e::{
    postgres::{Place, judge, until},
    process::{END_LIMIT, START_LIMIT},
};
use rustix::process::Signal;

use crate::{arrivals, enqueue, target, until_open};

const TASKS: usize = 2;

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_stood_still_beyond_its_lease_settles_nothing_and_registers_anew() {
    let place = Place::shared().unwrap();
    let target = target().await;
    target.hold();
    let mut zombie = place.worker(TASKS as u32).await.unwrap();
    let mut ids = enqueue(&place, &target, TASKS).await;
    until_open(&target, TASKS as u32).await;
    let held = place.held_by(zombie.pid()).unwrap();
    assert_eq!(held.len(), TASKS);
    let first = place.registration(zombie.pid()).unwrap().unwrap();

    let mut heir = place.worker(TASKS as u32).await.unwrap();
    zombie.signal(Signal::STOP).unwrap();
    let ended = format!("SELECT count(ended_at) FROM windlass.worker WHERE id = {first}");
    until("the store takes it for dead", || Ok(place.count(&ended)? == 1)).await.unwrap();
    target.release();
    let done = || Ok(place.done_by(heir.pid())? == TASKS as u64);
    until("another worker has done its tasks", done).await.unwrap();

    zombie.signal(Signal::CONT).unwrap();
    for id in &held {
        let refused = |line: &str| {
            (line.contains("lease lost: the end of this attempt was refused") && line.contains(id.as_str()))
                .then_some(())
        };
        zombie.wait_for(START_LIMIT, refused).unwrap();
    }
    until("it is back under another number", || {
        Ok(place.registration(zombie.pid())?.is_some_and(|now| now != first))
    })
    .await
    .unwrap();

    // It works again: there is nobody else.
    heir.signal(Signal::TERM).unwrap();
    assert_eq!(heir.wait(END_LIMIT).unwrap().code(), Some(0), "{}", heir.transcript());
    ids.extend(enqueue(&place, &target, 1).await);
    let judged = judge(&place, &ids, &target).await.unwrap();
    assert_eq!(place.done_by(zombie.pid()).unwrap(), 1, "what came after it was back, and nothing of before");
    assert_eq!(judged.crashes, TASKS as u64);
    assert!(arrivals(&target, &held).iter().all(|times| *times == 2));
    let refusals = zombie.transcript().matches("the end of this attempt was refused").count();
    assert_eq!(refusals, TASKS, "one line for each");
}
