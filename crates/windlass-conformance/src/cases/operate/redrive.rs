//! Redrive: an operator gives a dead task new attempts.

use std::time::Duration;

use windlass_core::{NewTask, Outcome, Rules, State, TaskId, store::Redrive, task::AttemptResult};

use crate::{
    cases::rig::{MANY, Rig, keyed, task},
    harness::Harness,
};

/// A task that died of its only attempt.
async fn dead(rig: &Rig<'_>) -> TaskId {
    let id = rig.add(NewTask { max_attempts: Some(2), ..task("a") }).await;
    let mut worker = rig.worker().await;
    let claimed = worker.claim_one().await;
    assert_eq!(claimed.id, id);
    worker.end(&claimed, Outcome::dead("gone")).await;
    id
}

pub async fn a_redriven_task_has_its_attempts_again_and_a_record_of_it(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let id = dead(&rig).await;
    assert_eq!(rig.redrive(id).await, Ok(State::Scheduled));
    let seen = rig.task(id).await;
    assert_eq!((seen.state, seen.attempt, seen.max_attempts), (State::Scheduled, 0, 2));
    assert_eq!((seen.ended_at, seen.due_at.is_some()), (None, true));
    let results: Vec<_> = seen.attempts.iter().map(|attempt| attempt.result).collect();
    assert_eq!(results, [AttemptResult::Dead, AttemptResult::Redriven]);
    rig.promote().await;
    for attempt in 1..=2 {
        let mut worker = rig.worker().await;
        let claimed = worker.claim_one().await;
        assert_eq!(claimed.attempt, attempt);
        worker.end(&claimed, Outcome::retry("again")).await;
        rig.advance(Duration::from_hours(1)).await;
        rig.promote().await;
    }
    assert_eq!(rig.state(id).await, State::Dead);
}

pub async fn a_redrive_never_lowers_the_lease(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let id = dead(&rig).await;
    rig.redrive(id).await.unwrap();
    assert_eq!(rig.task(id).await.lease, 1);
    rig.promote().await;
    assert_eq!(rig.worker().await.claim_one().await.lease, 2);
}

pub async fn a_redrive_may_wait(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let id = dead(&rig).await;
    let redrive = Redrive { id, delay: Duration::from_secs(30) };
    rig.store.redrive(&[redrive]).await.unwrap();
    rig.advance(Duration::from_secs(20)).await;
    assert_eq!(rig.promote().await, 0);
    rig.advance(Duration::from_secs(11)).await;
    assert_eq!(rig.promote().await, 1);
    assert_eq!(rig.worker().await.claim_ids(MANY).await, [id]);
}

pub async fn only_a_dead_task_can_be_redriven(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let ids = rig.add_many("a", 4).await;
    let mut worker = rig.worker().await;
    let tasks = worker.claim(3).await;
    worker.end(&tasks[0], Outcome::Done(None)).await;
    worker.end(&tasks[1], Outcome::cancel("x")).await;
    let before = rig.all().await;
    for id in ids {
        assert_eq!(rig.redrive(id).await.unwrap_err().code(), "conflict");
    }
    assert_eq!(rig.redrive(TaskId::from_raw(1)).await.unwrap_err().code(), "not_found");
    assert_eq!(rig.all().await, before);
}

pub async fn a_task_dead_of_crashes_can_be_redriven(harness: &dyn Harness) {
    let rig = Rig::with(harness, Rules { max_crashes: 1, ..Rules::default() }).await;
    let id = rig.add(keyed("k")).await;
    let mut worker = rig.worker().await;
    worker.claim_one().await;
    rig.let_die(worker).await;
    assert_eq!(rig.state(id).await, State::Dead);
    rig.redrive(id).await.unwrap();
    rig.promote().await;
    let mut worker = rig.worker().await;
    let claimed = worker.claim_one().await;
    worker.end(&claimed, Outcome::Done(None)).await;
    assert_eq!(rig.state(id).await, State::Done);
    assert_eq!(rig.add(keyed("k")).await, id, "its key was never free");
}
