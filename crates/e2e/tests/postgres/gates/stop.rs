//! A worker that was suspended beyond its lease while it ran a step and a task of a job, and then continues.
//! Its requests to the target are outside; order and limit hold in the store.

use e2e::{
    postgres::{Place, attempts, check_workflow, most_running, until},
    process::START_LIMIT,
};
use rustix::process::Signal;

use super::{assert_at_rest, check_snapshot, enqueue, judge_gated, limit, of_job, step};
use crate::{target, until_open};

#[tokio::test(flavor = "multi_thread")]
async fn a_zombie_changes_neither_a_workflow_nor_a_job() {
    let place = Place::shared().unwrap();
    let target = target().await;
    target.hold();
    let mut zombie = place.worker(2).await.unwrap();
    limit(&place, "j", 1);
    let steps = enqueue(&place, (0..4).map(|_| step(&target, "w")).collect()).await;
    let of_it = enqueue(&place, (0..4).map(|_| of_job(&target, "j")).collect()).await;
    until_open(&target, 2).await;
    let held = place.held_by(zombie.pid()).unwrap();
    assert_eq!(held, [steps[0].clone(), of_it[0].clone()], "the first of each");
    let first = place.registration(zombie.pid()).unwrap().unwrap();

    let heir = place.worker(4).await.unwrap();
    zombie.signal(Signal::STOP).unwrap();
    // Its own requests are answered, so that it finds both done when it continues; the requests of other
    // workers are not.
    target.release();
    until("it is answered", || Ok(target.book().open == 0)).await.unwrap();
    target.hold();
    let ended = format!("SELECT count(ended_at) FROM windlass.worker WHERE id = {first}");
    until("the store takes it for dead", || {
        check_snapshot(&place)?;
        Ok(place.count(&ended)? == 1)
    })
    .await
    .unwrap();
    // After one crash a task runs again like any other.
    until_open(&target, 2).await;
    let taken_over = place.held_by(heir.pid()).unwrap();
    assert_eq!(taken_over.len(), 2);
    assert!(
        taken_over.iter().all(|id| held.contains(id)),
        "neither the next step nor the next of the job: {taken_over:?}"
    );

    zombie.signal(Signal::CONT).unwrap();
    for id in &held {
        let refused = |line: &str| {
            (line.contains("lease lost: the end of this attempt was refused") && line.contains(id.as_str()))
                .then_some(())
        };
        zombie.wait_for(START_LIMIT, refused).unwrap();
    }
    check_snapshot(&place).unwrap();
    assert_eq!(place.count("SELECT count(*) FROM windlass.history").unwrap(), 0, "the zombie settled a task");
    let passed_on = "SELECT count(*) FROM windlass.task WHERE state IN (1, 2)";
    assert!(place.count(passed_on).unwrap() <= 2, "the first of each, and nothing behind them");

    target.release();
    let ids = [steps.clone(), of_it].concat();
    let judged = judge_gated(&place, &ids, &target).await;
    assert_eq!(judged.crashes, 2);
    let by_first = format!("SELECT count(*) FROM windlass.history WHERE worker = {first}");
    assert_eq!(place.count(&by_first).unwrap(), 0, "it settled under its old number");
    let attempts = attempts(&place).unwrap();
    check_workflow(&attempts, "w", &steps).unwrap();
    assert_eq!(most_running(&attempts, "j"), 1);
    assert_eq!(attempts.len(), ids.len() + held.len(), "one more for each of the two");
    assert_at_rest(&place, "j");
}
