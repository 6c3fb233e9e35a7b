//! Retention: ended tasks are kept for their time; unfinished tasks are never removed.

use std::time::Duration;

use windlass_core::{NewTask, Outcome, Payload, Start, TaskId, WorkflowAction, store::Retention};

use crate::{
    cases::rig::{Rig, name, task},
    harness::Harness,
};

const HOUR: Duration = Duration::from_hours(1);

async fn retain(rig: &Rig<'_>, retention: Retention) -> u64 {
    let mut moved = 0;
    loop {
        let report = rig.store.retain(&retention).await.unwrap();
        moved += report.moved;
        if !report.more {
            return moved;
        }
    }
}

async fn ids(rig: &Rig<'_>) -> Vec<TaskId> {
    rig.all().await.iter().map(|task| task.id).collect()
}

pub async fn ended_tasks_are_removed_after_their_time(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let all = rig.add_many("a", 4).await;
    let mut worker = rig.worker().await;
    let tasks = worker.claim(3).await;
    worker.end(&tasks[0], Outcome::Done(None)).await;
    worker.end(&tasks[1], Outcome::cancel("x")).await;
    worker.end(&tasks[2], Outcome::dead("x")).await;
    let retention = Retention { history_age: 2 * HOUR, dead_age: 5 * HOUR, ..Retention::default() };
    rig.advance(HOUR).await;
    assert_eq!((retain(&rig, retention).await, ids(&rig).await.len()), (0, 4));
    rig.advance(2 * HOUR).await;
    assert_eq!(retain(&rig, retention).await, 2);
    assert_eq!(ids(&rig).await, [all[3], all[2]], "the dead one has its own time");
    assert_eq!(rig.store.task(all[0]).await, Ok(None));
    rig.advance(3 * HOUR).await;
    assert_eq!(retain(&rig, retention).await, 1);
    assert_eq!(ids(&rig).await, [all[3]]);
    assert_eq!(rig.store.lane_records().await.unwrap()[0].depth.dead, 0);
}

/// Retention goes through ended tasks by their time, and it may have passed this one while it still blocked.
pub async fn a_cancelled_blocker_is_removed_once_it_blocks_nothing(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let step = |workflow| NewTask { workflow: Some(name(workflow)), ..task("a") };
    let ids_of_heads = rig.add_all(vec![step("w1"), step("w2")]).await;
    for id in &ids_of_heads {
        rig.cancel(*id).await.unwrap();
    }
    let retention = Retention { history_age: HOUR, ..Retention::default() };
    rig.advance(2 * HOUR).await;
    assert_eq!((retain(&rig, retention).await, ids(&rig).await.len()), (0, 2));
    for (workflow, action) in [("w1", WorkflowAction::Skip), ("w2", WorkflowAction::Cancel)] {
        rig.store.gates().change_workflow(&name(workflow), action).await.unwrap();
        assert_eq!(retain(&rig, retention).await, 1, "after {action:?}");
    }
    assert_eq!(ids(&rig).await, []);
}

/// Retention that goes through the ids in order must come back to a task that it passed.
pub async fn a_task_that_ended_after_younger_ones_is_removed_in_time(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let all = rig.add_many("a", 2).await;
    rig.cancel(all[1]).await.unwrap();
    let retention = Retention { history_age: HOUR, ..Retention::default() };
    rig.advance(2 * HOUR).await;
    assert_eq!(retain(&rig, retention).await, 1);
    rig.cancel(all[0]).await.unwrap();
    assert_eq!(retain(&rig, retention).await, 0);
    rig.advance(2 * HOUR).await;
    assert_eq!((retain(&rig, retention).await, ids(&rig).await), (1, vec![]));
}

pub async fn an_unfinished_task_is_never_removed(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut all = rig.add_many("a", 2).await;
    all.push(rig.add(NewTask { start: Start::In(Duration::from_hours(10_000)), ..task("a") }).await);
    rig.worker().await.claim_one().await;
    rig.advance(Duration::from_hours(9_000)).await;
    let nothing = Retention { history_age: Duration::ZERO, history_max_bytes: 0, dead_age: Duration::ZERO };
    assert_eq!(retain(&rig, nothing).await, 0);
    all.reverse();
    assert_eq!(ids(&rig).await, all);
}

/// Bytes that no store can compress.
fn noise(len: usize) -> Payload {
    let mut state = len as u64;
    let mut byte = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    Payload::bytes((0..len).map(|_| byte()).collect::<Vec<_>>())
}

pub async fn history_over_its_size_loses_the_oldest_first(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    let mut all = Vec::new();
    for _ in 0..40 {
        all.push(rig.add(NewTask { payload: noise(10_000), ..task("a") }).await);
        let claimed = worker.claim_one().await;
        worker.end(&claimed, Outcome::Done(None)).await;
        rig.advance(Duration::from_millis(10)).await;
    }
    retain(&rig, Retention { history_max_bytes: 200_000, ..Retention::default() }).await;
    let mut left = ids(&rig).await;
    left.reverse();
    assert!((1..40).contains(&left.len()), "{} are left", left.len());
    assert_eq!(left, all[40 - left.len()..], "the newest stay");
}
