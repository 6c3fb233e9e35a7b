//! Workflows whose steps fail: block, skip, cancel, and what operators do then.

use std::time::Duration;

use windlass_core::{
    JobState, NewTask, OnFailure, Outcome, Result, State, TaskId, WorkflowAction,
    store::{Redrive, Retention},
};

use crate::{
    cases::rig::{Hand, MANY, Rig, lease_of, name, step_of},
    harness::Harness,
};

fn step_with(policy: OnFailure) -> NewTask {
    NewTask { on_failure: Some(policy), ..step_of("w") }
}

async fn change(rig: &Rig<'_>, action: WorkflowAction) -> Result<u64> {
    rig.store.gates().change_workflow(&name("w"), action).await
}

async fn fail_one(worker: &mut Hand<'_>) -> TaskId {
    let claimed = worker.claim_one().await;
    worker.end(&claimed, Outcome::dead("broken")).await;
    claimed.id
}

pub async fn a_failed_step_blocks_the_rest_until_an_operator_decides(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    let ids = rig.add_all(vec![step_of("w"); 3]).await;
    let culprit = fail_one(&mut worker).await;
    assert_eq!(worker.claim_ids(MANY).await, []);
    let late = rig.add(step_of("w")).await;
    assert_eq!(worker.claim_ids(MANY).await, [], "an append does not lift it");
    assert_eq!(rig.states(&[ids[1], ids[2], late]).await, [State::Waiting; 3]);
    let blocked = rig.store.gates().workflows(true, None, MANY).await.unwrap();
    assert_eq!(blocked, [rig.workflow("w").await.unwrap()]);
    assert_eq!((blocked[0].blocked_by, blocked[0].steps), (Some(culprit), 3));
    assert_eq!(blocked[0].on_failure, OnFailure::Block);
    rig.assert_sound().await;
}

pub async fn the_first_append_decides_the_policy(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    let ids = rig.add_all(vec![step_with(OnFailure::Skip), step_with(OnFailure::Cancel)]).await;
    assert_eq!(rig.workflow("w").await.unwrap().on_failure, OnFailure::Skip);
    fail_one(&mut worker).await;
    assert_eq!(worker.claim_ids(MANY).await, [ids[1]]);
}

pub async fn a_workflow_that_skips_goes_on_after_a_failure(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    let ids = rig.add_all(vec![step_with(OnFailure::Skip); 4]).await;
    assert_eq!(fail_one(&mut worker).await, ids[0]);
    let claimed = worker.claim_one().await;
    worker.end(&claimed, Outcome::cancel("x")).await;
    assert_eq!(rig.cancel(ids[2]).await, Ok(State::Cancelled), "also if an operator cancels the step");
    assert_eq!(worker.claim_ids(MANY).await, [ids[3]]);
    rig.assert_sound().await;
}

pub async fn a_workflow_that_cancels_ends_the_rest_after_a_failure(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    let ids = rig.add_all(vec![step_with(OnFailure::Cancel); 3]).await;
    let culprit = fail_one(&mut worker).await;
    assert_eq!(rig.states(&ids).await, [State::Dead, State::Cancelled, State::Cancelled]);
    let reason = format!("an earlier step failed: {culprit}");
    assert_eq!(rig.task(ids[2]).await.error, Some(reason));
    assert_eq!(rig.workflow("w").await, None);
    let late = rig.add(step_of("w")).await;
    assert_eq!(
        worker.claim_ids(MANY).await,
        [late],
        "a step that is appended later starts as in a new workflow"
    );
    assert_eq!(rig.workflow("w").await.unwrap().on_failure, OnFailure::Block);
    rig.assert_sound().await;
}

pub async fn a_head_that_crashed_too_often_blocks_too(harness: &dyn Harness) {
    let rules = windlass_core::Rules { max_crashes: 1, ..windlass_core::Rules::default() };
    let rig = Rig::with(harness, rules).await;
    let mut worker = rig.worker().await;
    let ids = rig.add_all(vec![step_of("w"); 2]).await;
    worker.claim_one().await;
    rig.let_die(worker).await;
    assert_eq!(rig.states(&ids).await, [State::Dead, State::Waiting]);
    assert_eq!(rig.workflow("w").await.unwrap().blocked_by, Some(ids[0]));
    rig.assert_sound().await;
}

pub async fn a_retry_of_a_workflow_redrives_the_step_that_blocks_it(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    let ids = rig.add_all(vec![step_of("w"); 2]).await;
    assert_eq!(change(&rig, WorkflowAction::Retry).await.unwrap_err().code(), "conflict");
    fail_one(&mut worker).await;
    assert_eq!(change(&rig, WorkflowAction::Retry).await, Ok(1));
    assert_eq!(rig.workflow("w").await.unwrap().blocked_by, None);
    assert_eq!(rig.states(&ids).await, [State::Scheduled, State::Waiting]);
    rig.promote().await;
    let claimed = worker.claim_one().await;
    assert_eq!((claimed.id, claimed.attempt), (ids[0], 1));
    worker.finish(&claimed).await;
    assert_eq!(worker.claim_ids(MANY).await, [ids[1]]);
    rig.assert_sound().await;
}

pub async fn a_redrive_of_the_blocking_step_unblocks_the_workflow(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    let ids = rig.add_all(vec![step_of("w"); 2]).await;
    fail_one(&mut worker).await;
    rig.redrive(ids[0]).await.unwrap();
    rig.promote().await;
    assert_eq!(worker.claim_ids(MANY).await, [ids[0]]);
    assert_eq!(rig.state(ids[1]).await, State::Waiting);
    rig.assert_sound().await;
}

pub async fn a_skip_goes_on_with_the_next_step(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    let ids = rig.add_all(vec![step_of("w"); 2]).await;
    assert_eq!(change(&rig, WorkflowAction::Skip).await.unwrap_err().code(), "conflict");
    fail_one(&mut worker).await;
    change(&rig, WorkflowAction::Skip).await.unwrap();
    assert_eq!(worker.claim_ids(MANY).await, [ids[1]]);
    assert_eq!(rig.state(ids[0]).await, State::Dead);
    rig.assert_sound().await;
}

pub async fn a_skip_of_the_last_step_ends_the_workflow(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    rig.add(step_of("w")).await;
    fail_one(&mut worker).await;
    assert_eq!(rig.workflow("w").await.unwrap().steps, 0, "blocked, so it is still there");
    change(&rig, WorkflowAction::Skip).await.unwrap();
    assert_eq!(rig.workflow("w").await, None);
    for action in [WorkflowAction::Retry, WorkflowAction::Skip, WorkflowAction::Cancel] {
        assert_eq!(change(&rig, action).await.unwrap_err().code(), "not_found");
    }
}

pub async fn a_redriven_step_that_was_passed_goes_to_the_end(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    let ids = rig.add_all(vec![step_with(OnFailure::Skip); 3]).await;
    fail_one(&mut worker).await;
    let redrive = Redrive { id: ids[0], delay: Duration::from_secs(4) };
    rig.store.redrive(&[redrive]).await.unwrap().remove(0).result.unwrap();
    assert_eq!(rig.states(&ids).await, [State::Waiting, State::Ready, State::Waiting]);
    for id in &ids[1..] {
        let claimed = worker.claim_one().await;
        assert_eq!(claimed.id, *id);
        worker.finish(&claimed).await;
    }
    assert_eq!(rig.state(ids[0]).await, State::Scheduled, "its delay is kept");
    rig.advance(Duration::from_secs(5)).await;
    rig.promote().await;
    assert_eq!(worker.claim_ids(MANY).await, [ids[0]]);
    rig.assert_sound().await;
}

pub async fn a_redriven_step_makes_its_removed_workflow_again(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    let id = rig.add(step_with(OnFailure::Skip)).await;
    fail_one(&mut worker).await;
    assert_eq!(rig.workflow("w").await, None);
    rig.redrive(id).await.unwrap();
    let next = rig.add(step_of("w")).await;
    rig.promote().await;
    assert_eq!(worker.claim_ids(MANY).await, [id]);
    assert_eq!(rig.state(next).await, State::Waiting);
}

pub async fn a_cancelled_workflow_ends_its_steps_and_starts_anew(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    let ids = rig.add_all(vec![step_of("w"); 3]).await;
    assert_eq!(change(&rig, WorkflowAction::Cancel).await, Ok(3));
    assert_eq!(rig.states(&ids).await, [State::Cancelled; 3]);
    assert_eq!(rig.task(ids[0]).await.error.as_deref(), Some("workflow w was cancelled"));
    assert_eq!(rig.workflow("w").await, None, "and nothing blocks it");
    let late = rig.add(step_with(OnFailure::Skip)).await;
    assert_eq!(rig.workflow("w").await.unwrap().on_failure, OnFailure::Skip);
    assert_eq!(worker.claim_ids(MANY).await, [late]);
    rig.assert_sound().await;
}

pub async fn a_cancelled_workflow_asks_its_running_step_to_end(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    let ids = rig.add_all(vec![step_of("w"); 2]).await;
    let running = worker.claim_one().await;
    change(&rig, WorkflowAction::Cancel).await.unwrap();
    assert_eq!(rig.states(&ids).await, [State::Running, State::Cancelled]);
    let asked = worker.renew().await.unwrap().cancels;
    assert_eq!(asked, [(lease_of(&running), "workflow w was cancelled".to_owned())]);
    let late = rig.add(step_of("w")).await;
    assert_eq!(rig.state(late).await, State::Waiting, "still one step at a time");
    worker.end(&running, Outcome::dead("x")).await;
    assert_eq!(rig.state(ids[0]).await, State::Cancelled);
    assert_eq!(worker.claim_ids(MANY).await, [late], "its end blocks nothing");
    rig.assert_sound().await;
}

pub async fn a_cancel_lifts_a_block(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    let ids = rig.add_all(vec![step_of("w"); 3]).await;
    fail_one(&mut worker).await;
    assert_eq!(change(&rig, WorkflowAction::Cancel).await, Ok(2));
    assert_eq!(rig.states(&ids).await, [State::Dead, State::Cancelled, State::Cancelled]);
    assert_eq!(rig.workflow("w").await, None);
}

pub async fn a_cancelled_head_blocks_and_can_be_skipped_but_not_retried(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    let ids = rig.add_all(vec![step_of("w"); 2]).await;
    assert_eq!(rig.cancel(ids[0]).await, Ok(State::Cancelled));
    assert_eq!(rig.workflow("w").await.unwrap().blocked_by, Some(ids[0]));
    assert_eq!(worker.claim_ids(MANY).await, []);
    assert_eq!(change(&rig, WorkflowAction::Retry).await.unwrap_err().code(), "conflict");
    rig.assert_sound().await;
    change(&rig, WorkflowAction::Skip).await.unwrap();
    assert_eq!(worker.claim_ids(MANY).await, [ids[1]]);
}

pub async fn a_cancelled_step_that_waited_is_left_out(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    let ids = rig.add_all(vec![step_with(OnFailure::Cancel); 3]).await;
    assert_eq!(rig.cancel(ids[1]).await, Ok(State::Cancelled));
    assert_eq!(rig.workflow("w").await.unwrap().steps, 2);
    let claimed = worker.claim_one().await;
    worker.finish(&claimed).await;
    assert_eq!(worker.claim_ids(MANY).await, [ids[2]]);
    rig.assert_sound().await;
}

pub async fn cancelling_a_waiting_step_does_not_unblock_its_workflow(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    let ids = rig.add_all(vec![step_of("w"); 3]).await;
    let culprit = fail_one(&mut worker).await;
    rig.cancel(ids[1]).await.unwrap();
    assert_eq!(rig.workflow("w").await.unwrap().blocked_by, Some(culprit));
    change(&rig, WorkflowAction::Skip).await.unwrap();
    assert_eq!(worker.claim_ids(MANY).await, [ids[2]]);
}

pub async fn a_cancelled_job_blocks_the_workflow_of_its_step(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    let with_job = NewTask { job: Some(name("j")), ..step_of("w") };
    let ids = rig.add_all(vec![with_job, step_of("w")]).await;
    rig.set_job_state("j", JobState::Cancelled).await;
    assert_eq!(rig.states(&ids).await, [State::Cancelled, State::Waiting]);
    assert_eq!(rig.workflow("w").await.unwrap().blocked_by, Some(ids[0]));
    assert_eq!(worker.claim_ids(MANY).await, []);
    rig.assert_sound().await;
}

pub async fn retention_keeps_the_step_that_blocks_a_workflow(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    let ids = rig.add_all(vec![step_of("w"); 2]).await;
    assert_eq!(fail_one(&mut worker).await, ids[0]);
    rig.advance(Duration::from_hours(9_000)).await;
    let nothing = Retention { history_age: Duration::ZERO, history_max_bytes: 0, dead_age: Duration::ZERO };
    while rig.store.retain(&nothing).await.unwrap().more {}
    assert_eq!(rig.state(ids[0]).await, State::Dead);
    rig.assert_sound().await;
    change(&rig, WorkflowAction::Retry).await.unwrap();
    assert_eq!(rig.state(ids[0]).await, State::Scheduled);
}

/// It cannot be retried, but it says why the workflow waits.
pub async fn retention_leaves_a_cancelled_step_that_blocks(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let ids = rig.add_all(vec![step_of("w"); 2]).await;
    assert_eq!(rig.cancel(ids[0]).await, Ok(State::Cancelled));
    rig.advance(Duration::from_hours(9_000)).await;
    let nothing = Retention { history_age: Duration::ZERO, history_max_bytes: 0, dead_age: Duration::ZERO };
    while rig.store.retain(&nothing).await.unwrap().more {}
    assert_eq!(rig.state(ids[0]).await, State::Cancelled);
    rig.assert_sound().await;
    change(&rig, WorkflowAction::Skip).await.unwrap();
    while rig.store.retain(&nothing).await.unwrap().more {}
    assert_eq!(rig.store.task(ids[0]).await, Ok(None), "what blocks nothing goes");
    assert_eq!(rig.workflow("w").await.unwrap().head, Some(ids[1]));
}
