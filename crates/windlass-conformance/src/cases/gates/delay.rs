//! A delay between two starts of a job, by the store's clock.

use std::time::Duration;

use windlass_core::{JobChange, NewTask, Outcome, Timestamp};

use crate::{
    cases::rig::{MANY, Rig, of_job, task},
    harness::Harness,
};

const DELAY: Duration = Duration::from_secs(3);

async fn delayed(rig: &Rig<'_>, concurrency: u32) {
    let change =
        JobChange { delay: Some(Some(DELAY)), concurrency: Some(Some(concurrency)), ..JobChange::default() };
    assert_eq!(rig.set_job("j", change).await.delay, Some(DELAY));
}

/// A claim is enough: it looks for jobs whose delay has passed before it takes tasks.
pub async fn starts_of_a_job_are_at_least_its_delay_apart(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    delayed(&rig, 5).await;
    let ids = rig.add_all(vec![of_job("j"); 4]).await;
    assert_eq!(rig.figures("j").await, (1, 0, 3), "one at a time is ready");
    let mut starts: Vec<Timestamp> = Vec::new();
    for _ in 0..40 {
        let claimed = worker.claim(MANY).await;
        assert!(claimed.len() <= 1, "one at a time starts");
        starts.extend(claimed.iter().map(|task| task.claimed_at));
        rig.advance(Duration::from_millis(500)).await;
        worker.renew().await.unwrap();
    }
    assert_eq!(starts.len(), ids.len(), "all have started, and none has ended");
    for pair in starts.windows(2) {
        let apart = pair[1].since(pair[0]);
        assert!(apart >= DELAY && apart < 2 * DELAY, "{apart:?}");
    }
    rig.assert_sound().await;
}

pub async fn the_answer_names_the_time_of_the_next_start(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    delayed(&rig, 5).await;
    rig.add_all(vec![of_job("j"); 2]).await;
    let answer = worker.try_claim(MANY).await.unwrap();
    let last_start = rig.job("j").await.last_start.expect("a start was recorded");
    assert_eq!((answer.tasks.len(), answer.next_due), (1, Some(last_start.after(DELAY))));
    assert!(last_start >= answer.tasks[0].claimed_at, "recorded after the claim");
    let settled = worker.settle(vec![(answer.tasks[0].clone(), Outcome::retry("x"))]).await;
    assert!(settled.next_due.is_some_and(|at| at <= last_start.after(DELAY)));
}

pub async fn admit_gives_a_delayed_job_its_turn_when_its_time_has_come(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    delayed(&rig, 5).await;
    rig.add_all(vec![of_job("j"); 2]).await;
    let first = worker.claim_one().await;
    rig.store.admit(MANY).await.unwrap();
    assert_eq!(rig.figures("j").await, (0, 1, 1), "not yet");
    rig.advance(DELAY + Duration::from_millis(100)).await;
    let report = rig.store.admit(MANY).await.unwrap();
    assert_eq!((report.moved, report.lanes_ready), (1, vec![first.lane.id]));
    assert_eq!(rig.figures("j").await, (1, 1, 0));
}

pub async fn a_delay_does_not_lift_the_limit(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    delayed(&rig, 1).await;
    rig.add_all(vec![of_job("j"); 2]).await;
    let first = worker.claim_one().await;
    rig.advance(2 * DELAY).await;
    assert_eq!(worker.claim_ids(MANY).await, [], "one runs");
    worker.finish(&first).await;
    assert_eq!(worker.claim(MANY).await.len(), 1, "the delay is long over");
}

pub async fn an_end_before_the_delay_starts_nothing(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    delayed(&rig, 1).await;
    rig.add_all(vec![of_job("j"); 2]).await;
    let first = worker.claim_one().await;
    worker.finish(&first).await;
    assert_eq!(worker.claim_ids(MANY).await, []);
    rig.advance(DELAY + Duration::from_millis(100)).await;
    assert_eq!(worker.claim(MANY).await.len(), 1);
}

pub async fn a_delay_can_be_set_and_taken_away(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    rig.limit("j", 4).await;
    rig.add_all(vec![of_job("j"); 6]).await;
    assert_eq!(rig.figures("j").await, (4, 0, 2));
    delayed(&rig, 4).await;
    assert_eq!(rig.figures("j").await, (1, 0, 5), "one stays ready");
    worker.claim_one().await;
    assert_eq!(worker.claim_ids(MANY).await, []);
    let none = JobChange { delay: Some(None), ..JobChange::default() };
    assert_eq!(rig.set_job("j", none).await.delay, None);
    assert_eq!(worker.claim(MANY).await.len(), 3);
}

pub async fn a_delay_holds_up_its_own_job_only(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    delayed(&rig, 5).await;
    rig.add_all(vec![of_job("j"), of_job("j"), of_job("k"), of_job("k"), task("a")]).await;
    assert_eq!(worker.claim(MANY).await.len(), 4);
    let later = NewTask { priority: 9, ..of_job("j") };
    rig.add(later).await;
    assert_eq!(worker.claim_ids(MANY).await, [], "priority does not lift a delay");
}

/// A task that runs when its job gets a delay counts as started then, once, also if the job had a delay
/// before.
pub async fn a_new_delay_counts_from_the_start_of_the_running_task(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    let none = || JobChange { delay: Some(None), ..JobChange::default() };
    rig.limit("j", 5).await;
    rig.add(of_job("j")).await;
    worker.claim_one().await;
    delayed(&rig, 5).await;
    let first = rig.job("j").await.last_start.expect("the start of what runs");
    rig.advance(DELAY / 2).await;
    rig.set_job("j", none()).await;
    delayed(&rig, 5).await;
    assert_eq!(rig.job("j").await.last_start, Some(first), "it has started once");
    rig.add(of_job("j")).await;
    assert_eq!(worker.claim_ids(MANY).await, [], "one started a moment ago");
    rig.advance(DELAY).await;
    rig.store.admit(MANY).await.unwrap();
    assert_eq!(rig.figures("j").await, (1, 1, 0));
    // This task became ready under the delay, and starts without it.
    rig.set_job("j", none()).await;
    worker.claim_one().await;
    delayed(&rig, 5).await;
    assert!(rig.job("j").await.last_start > Some(first), "the second has started");
    rig.assert_sound().await;
}
