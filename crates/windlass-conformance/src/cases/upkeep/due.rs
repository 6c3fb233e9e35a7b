//! Due times: never before, and soon after.

use std::time::Duration;

use windlass_core::{NewTask, Start, State, Timestamp};

use crate::{
    cases::rig::{MANY, Rig, task},
    harness::Harness,
};

fn starting(start: Start) -> NewTask {
    NewTask { start, ..task("a") }
}

pub async fn a_future_task_is_not_claimed_before_its_time(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let at = harness.now().await.after(Duration::from_mins(1));
    let ids =
        [rig.add(starting(Start::At(at))).await, rig.add(starting(Start::In(Duration::from_mins(1)))).await];
    assert_eq!(rig.task(ids[0]).await.due_at, Some(at));
    for _ in 0..5 {
        assert_eq!(rig.worker().await.claim_ids(MANY).await, []);
        assert_eq!(rig.state(ids[0]).await, State::Scheduled);
        rig.advance(Duration::from_secs(11)).await;
    }
    rig.advance(Duration::from_secs(6)).await;
    assert_eq!(rig.promote().await, 2);
    assert_eq!(rig.worker().await.claim_ids(MANY).await, ids);
}

pub async fn the_due_duty_promotes_nothing_before_its_time(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let ids = [
        rig.add(starting(Start::In(Duration::from_secs(10)))).await,
        rig.add(starting(Start::In(Duration::from_secs(20)))).await,
    ];
    let next = rig.task(ids[0]).await.due_at;
    let report = rig.store.promote_due(MANY).await.unwrap();
    assert_eq!((report.moved, report.lanes_ready, report.next_due), (0, vec![], next));
    rig.advance(Duration::from_secs(11)).await;
    let report = rig.store.promote_due(MANY).await.unwrap();
    assert_eq!((report.moved, report.lanes_ready.len()), (1, 1));
    assert_eq!(report.next_due, rig.task(ids[1]).await.due_at);
    assert_eq!(rig.task(ids[0]).await.due_at, None, "a ready task has no due time");
    assert_eq!(rig.worker().await.claim_ids(MANY).await, [ids[0]]);
}

pub async fn a_start_in_the_past_is_now(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let past = harness.now().await.before(Duration::from_secs(5));
    for start in [Start::At(past), Start::At(Timestamp::from_ms(0)), Start::In(Duration::ZERO)] {
        let id = rig.add(starting(start)).await;
        assert_eq!(rig.state(id).await, State::Ready);
    }
}

pub async fn a_start_in_the_far_future_is_accepted(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let century = rig.add(starting(Start::In(Duration::from_hours(24 * 36_500)))).await;
    let never = rig.add(starting(Start::In(Duration::MAX))).await;
    assert_eq!(rig.promote().await, 0);
    assert_eq!((rig.state(century).await, rig.state(never).await), (State::Scheduled, State::Scheduled));
}

pub async fn a_bounded_due_duty_says_that_there_is_more(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    rig.store.enqueue(vec![starting(Start::In(Duration::from_secs(1))); 5]).await.unwrap();
    rig.advance(Duration::from_secs(2)).await;
    let first = rig.store.promote_due(3).await.unwrap();
    assert_eq!((first.moved, first.more), (3, true));
    let mut moved = first.moved;
    loop {
        let report = rig.store.promote_due(3).await.unwrap();
        moved += report.moved;
        if !report.more {
            break;
        }
    }
    assert_eq!((moved, rig.worker().await.claim(MANY).await.len()), (5, 5));
}
