//! FENCED and SELF-FENCE: a worker that was suspended beyond its lease, and continues.

use e2e::{
    postgres::{Place, judge, until},
    process::{END_LIMIT, START_LIMIT},
};
use rustix::process::Signal;

use crate::{arrivals, enqueue, target, until_open};

const TASKS: usize = 2;

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_suspended_beyond_its_lease_settles_nothing() {
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
    // Its own requests are answered, so that it finds its tasks done when it continues; the requests of other
    // workers are not.
    target.release();
    until("it is answered", || Ok(target.book().open == 0)).await.unwrap();
    target.hold();
    let ended = format!("SELECT count(ended_at) FROM windlass.worker WHERE id = {first}");
    until("the store takes it for dead", || Ok(place.count(&ended)? == 1)).await.unwrap();
    // After one crash a task runs again like any other.
    until_open(&target, TASKS as u32).await;
    let taken_over = place.held_by(heir.pid()).unwrap();
    assert_eq!(taken_over.len(), TASKS);

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

    assert_eq!(place.held_by(heir.pid()).unwrap(), taken_over, "the zombie took a task away");
    assert_eq!(place.count("SELECT count(*) FROM windlass.history").unwrap(), 0, "the zombie settled a task");
    target.release();
    let done = || Ok(place.done_by(heir.pid())? + place.done_by(zombie.pid())? == TASKS as u64);
    until("the tasks are done", done).await.unwrap();

    // It works again: there is no other worker.
    heir.signal(Signal::TERM).unwrap();
    assert_eq!(heir.wait(END_LIMIT).unwrap().code(), Some(0), "{}", heir.transcript());
    ids.extend(enqueue(&place, &target, 1).await);
    let judged = judge(&place, &ids, &target).await.unwrap();
    let by_first = format!("SELECT count(*) FROM windlass.history WHERE worker = {first}");
    assert_eq!(place.count(&by_first).unwrap(), 0, "it settled under its old number");
    assert!(place.done_by(zombie.pid()).unwrap() >= 1, "it works again");
    assert_eq!(judged.crashes, TASKS as u64);
    assert!(arrivals(&target, &held).iter().all(|times| *times == 2));
    let refusals = zombie.transcript().matches("the end of this attempt was refused").count();
    assert_eq!(refusals, TASKS, "one line for each");
}
