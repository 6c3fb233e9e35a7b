//! Settle: the six ends of an attempt and what the store keeps of each.

pub mod fence;
pub mod misnamed;
pub mod receipts;

use std::time::Duration;

use windlass_core::{NewTask, Outcome, Payload, Rules, State, task::AttemptResult};

use super::rig::{MANY, Rig, of_job, step_of, task};
use crate::harness::Harness;

pub async fn a_done_task_keeps_its_output_and_its_record(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let id = rig.add(task("a")).await;
    let mut worker = rig.worker().await;
    let claimed = worker.claim_one().await;
    rig.advance(Duration::from_secs(2)).await;
    let output = Payload::json(&serde_json::json!({"status": 200})).unwrap();
    worker.end(&claimed, Outcome::Done(Some(output.clone()))).await;
    let seen = rig.task(id).await;
    assert_eq!((seen.state, seen.output), (State::Done, Some(output)));
    assert_eq!((seen.attempt, seen.lease, seen.worker), (1, 1, Some(worker.id)));
    assert_eq!(seen.started_at, Some(claimed.claimed_at));
    assert!(seen.ended_at > seen.started_at && seen.error.is_none());
    assert_eq!(seen.attempts.len(), 1, "{:?}", seen.attempts);
    let attempt = &seen.attempts[0];
    assert_eq!((attempt.attempt, attempt.lease, attempt.worker), (1, 1, Some(worker.id)));
    assert_eq!((attempt.started_at, attempt.result), (seen.started_at, AttemptResult::Done));
    assert_eq!((Some(attempt.ended_at), attempt.error.clone()), (seen.ended_at, None));
    rig.advance(Duration::from_hours(1)).await;
    rig.sweep().await;
    rig.promote().await;
    assert_eq!(rig.worker().await.claim_ids(MANY).await, [], "it never runs again");
}

pub async fn a_failed_task_waits_for_its_next_attempt_with_the_error(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let id = rig.add(task("a")).await;
    let mut worker = rig.worker().await;
    let claimed = worker.claim_one().await;
    worker.end(&claimed, Outcome::retry_after(Duration::from_secs(5), "boom é")).await;
    let seen = rig.task(id).await;
    assert_eq!((seen.state, seen.attempt), (State::Scheduled, 1));
    assert_eq!(seen.error.as_deref(), Some("boom é"));
    assert!(seen.due_at.is_some_and(|due| due >= claimed.claimed_at.after(Duration::from_secs(5))));
    assert_eq!((seen.ended_at, seen.attempts[0].result), (None, AttemptResult::Retry));
    assert_eq!(seen.attempts[0].error.as_deref(), Some("boom é"));
    rig.advance(Duration::from_secs(6)).await;
    rig.promote().await;
    let again = worker.claim_one().await;
    assert_eq!((again.id, again.attempt, again.lease), (id, 2, 2));
}

pub async fn a_task_that_always_fails_starts_as_often_as_granted(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let id = rig.add(NewTask { max_attempts: Some(3), ..task("a") }).await;
    let mut starts = 0;
    // More rounds than attempts, to catch a store that gives back one attempt too many.
    for _ in 0..8 {
        let mut worker = rig.worker().await;
        for claimed in worker.claim(MANY).await {
            starts += 1;
            assert!(claimed.attempt <= claimed.max_attempts, "{claimed:?}");
            worker.end(&claimed, Outcome::retry("no")).await;
        }
        rig.advance(Duration::from_hours(1)).await;
        rig.promote().await;
    }
    let seen = rig.task(id).await;
    assert_eq!((starts, seen.state, seen.attempt), (3, State::Dead, 3));
    let results: Vec<_> = seen.attempts.iter().map(|attempt| attempt.result).collect();
    assert_eq!(results, [AttemptResult::Retry, AttemptResult::Retry, AttemptResult::Dead]);
    assert_eq!(seen.error.as_deref(), Some("attempt 3 of 3: no"));
}

pub async fn a_retry_after_the_last_attempt_is_the_end(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    let once = |task: NewTask| NewTask { max_attempts: Some(1), ..task };
    let mut ids = vec![rig.add(once(task("a"))).await];
    ids.push(rig.add(once(of_job("j"))).await);
    ids.push(rig.add(once(step_of("w"))).await);
    let next = rig.add(step_of("w")).await;
    for mut claimed in worker.claim(MANY).await {
        // The worker was given a wrong number, or lies.
        claimed.max_attempts = 1_000;
        worker.end(&claimed, Outcome::retry("no")).await;
    }
    for id in &ids {
        let seen = rig.task(*id).await;
        let end = (seen.state, seen.attempt, seen.due_at, seen.error.as_deref());
        assert_eq!(end, (State::Dead, 1, None, Some("no")), "{seen:?}");
        assert_eq!(seen.attempts[0].result, AttemptResult::Dead);
    }
    assert_eq!(rig.state(next).await, State::Waiting, "a dead step blocks its workflow");
    rig.advance(Duration::from_hours(1)).await;
    rig.promote().await;
    assert_eq!(worker_of(&rig).await, [], "none of them starts again");
    rig.assert_sound().await;
}

/// What a new worker claims.
async fn worker_of(rig: &Rig<'_>) -> Vec<windlass_core::TaskId> {
    rig.worker().await.claim_ids(MANY).await
}

pub async fn a_snoozed_task_waits_with_its_attempt_given_back(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let id = rig.add(NewTask { max_attempts: Some(2), ..task("a") }).await;
    for lease in 1..=5 {
        let mut worker = rig.worker().await;
        let claimed = worker.claim_one().await;
        assert_eq!((claimed.attempt, claimed.lease), (1, lease));
        worker.end(&claimed, Outcome::snooze(Duration::from_secs(3))).await;
        let seen = rig.task(id).await;
        assert_eq!((seen.state, seen.attempt), (State::Scheduled, 0));
        assert_eq!(seen.attempts.last().unwrap().result, AttemptResult::Snoozed);
        rig.advance(Duration::from_secs(4)).await;
        rig.promote().await;
    }
}

pub async fn a_released_task_is_ready_with_its_attempt_given_back(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let id = rig.add(NewTask { max_attempts: Some(1), ..task("a") }).await;
    for lease in 1..=5 {
        let mut worker = rig.worker().await;
        let claimed = worker.claim_one().await;
        assert_eq!((claimed.attempt, claimed.lease), (1, lease));
        let lane = claimed.lane.id;
        let settled = worker.settle(vec![(claimed, Outcome::Release)]).await;
        assert_eq!((settled.fenced, settled.lanes_ready), (vec![], vec![lane]));
        let seen = rig.task(id).await;
        assert_eq!((seen.state, seen.attempt, seen.due_at), (State::Ready, 0, None));
        assert_eq!(seen.attempts.last().unwrap().result, AttemptResult::Released);
    }
}

pub async fn released_tasks_are_ready_in_the_order_of_their_ids(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let ids = rig.add_all(vec![task("a"), step_of("w"), task("a")]).await;
    let mut worker = rig.worker().await;
    let mut claimed = worker.claim(MANY).await;
    claimed.sort_by_key(|task| std::cmp::Reverse(task.id));
    worker.settle(claimed.into_iter().map(|task| (task, Outcome::Release)).collect()).await;
    assert_eq!(worker.claim_ids(MANY).await, ids);
}

pub async fn a_dead_task_stays_with_its_reason(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let id = rig.add(task("a")).await;
    let mut worker = rig.worker().await;
    let claimed = worker.claim_one().await;
    worker.end(&claimed, Outcome::dead("404")).await;
    let seen = rig.task(id).await;
    assert_eq!((seen.state, seen.error.as_deref(), seen.attempt), (State::Dead, Some("404"), 1));
    assert!(seen.ended_at.is_some());
    assert_eq!(seen.attempts[0].result, AttemptResult::Dead);
    let lanes = rig.store.lane_records().await.unwrap();
    assert_eq!((lanes[0].depth.dead, lanes[0].depth.running), (1, 0));
    assert_eq!(worker.claim_ids(MANY).await, []);
}

pub async fn a_handler_may_cancel_its_task(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let id = rig.add(task("a")).await;
    let mut worker = rig.worker().await;
    let claimed = worker.claim_one().await;
    worker.end(&claimed, Outcome::cancel("obsolete")).await;
    let seen = rig.task(id).await;
    assert_eq!((seen.state, seen.error.as_deref()), (State::Cancelled, Some("obsolete")));
    assert_eq!(seen.attempts[0].result, AttemptResult::Cancelled);
}

pub async fn a_batch_is_settled_whole_with_lanes_and_next_due(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    rig.add_many("a", 3).await;
    rig.add_many("b", 2).await;
    let mut worker = rig.worker().await;
    let tasks = worker.claim(MANY).await;
    let lane_b = tasks[3].lane.id;
    let outcomes = [
        Outcome::Done(None),
        Outcome::retry_after(Duration::from_secs(9), "x"),
        Outcome::snooze(Duration::from_secs(4)),
        Outcome::Release,
        Outcome::dead("y"),
    ];
    let settled = worker.settle(tasks.iter().cloned().zip(outcomes).collect()).await;
    assert!(settled.fenced.is_empty() && !settled.replayed);
    assert_eq!(settled.lanes_ready, [lane_b]);
    assert_eq!(settled.next_due, rig.task(tasks[2].id).await.due_at);
    let mut states = Vec::new();
    for task in &tasks {
        states.push(rig.state(task.id).await);
    }
    assert_eq!(states, [State::Done, State::Scheduled, State::Scheduled, State::Ready, State::Dead]);
}

pub async fn an_empty_settlement_is_no_error(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let settled = rig.worker().await.settle(Vec::new()).await;
    assert!(settled.fenced.is_empty() && settled.lanes_ready.is_empty());
}

pub async fn error_text_of_any_sort_is_kept(harness: &dyn Harness) {
    let rig = Rig::with(harness, Rules { error_max_bytes: 64, ..Rules::default() }).await;
    let mut worker = rig.worker().await;
    for error in ["", "a\u{0}b", "line\nbreak", "'; DROP TABLE tasks; --", &"é".repeat(200)] {
        let id = rig.add(task("a")).await;
        let claimed = worker.claim_one().await;
        worker.end(&claimed, Outcome::dead(error)).await;
        let seen = rig.task(id).await;
        assert_eq!(seen.state, State::Dead);
        assert_eq!(seen.error, Some(rig.store.rules().clip_error(error)));
    }
}

pub async fn an_attempts_record_is_bounded(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let id = rig.add(task("a")).await;
    let rounds = windlass_core::task::ATTEMPT_RECORDS_MAX as u32 + 5;
    let mut worker = rig.worker().await;
    for _ in 0..rounds {
        let claimed = worker.claim_one().await;
        worker.end(&claimed, Outcome::snooze(Duration::ZERO)).await;
        rig.promote().await;
    }
    let attempts = rig.task(id).await.attempts;
    assert_eq!(attempts.len(), windlass_core::task::ATTEMPT_RECORDS_MAX);
    assert_eq!(attempts.last().unwrap().lease, rounds, "the oldest go first");
    assert!(attempts.is_sorted_by_key(|attempt| attempt.lease));
}
