use std::sync::Arc;

use super::*;
use crate::{
    gate::{JobRecord, JobState, OnFailure, WorkflowRecord},
    id::{LaneId, TaskId, WorkerId},
    payload::Payload,
    task::Lane,
};

const SECOND: Duration = Duration::from_secs(1);

fn id(raw: i64) -> TaskId {
    TaskId::from_raw(raw)
}

fn name(text: &str) -> Name {
    Name::new("name", text).unwrap()
}

fn now() -> Timestamp {
    Timestamp::from_ms(1_000_000)
}

fn task(state: State) -> TaskRecord {
    TaskRecord {
        id: id(7),
        state,
        lane: Arc::new(Lane { id: LaneId(1), queue: name("default"), kind: name("resize") }),
        priority: 0,
        payload: Payload::json(&1).unwrap(),
        job: None,
        workflow: None,
        key: None,
        lease: 0,
        attempt: 0,
        max_attempts: 10,
        crashes: 0,
        timeout: None,
        due_at: None,
        started_at: None,
        ended_at: None,
        worker: None,
        progress: None,
        output: None,
        error: None,
        cancel_requested: None,
        attempts: Vec::new(),
    }
}

/// A worker with free slots, no gate, nothing paused.
fn well() -> Surroundings {
    Surroundings {
        now: now(),
        queue_paused: false,
        live_workers: 2,
        free_slots: 5,
        held_back: String::new(),
        gates: GateView::default(),
        culprit_state: None,
    }
}

fn job(concurrency: Option<u32>, ready: u64, running: u64) -> JobRecord {
    JobRecord {
        name: name("example.com"),
        state: JobState::Active,
        concurrency,
        delay: None,
        created_at: now(),
        last_start: None,
        ready,
        running,
        held: 1,
    }
}

fn with_job(job: JobRecord, occupants: &[i64]) -> Surroundings {
    let gates = GateView {
        job: Some(job),
        occupants: occupants.iter().map(|raw| id(*raw)).collect(),
        workflow: None,
    };
    Surroundings { gates, ..well() }
}

fn workflow(head: Option<i64>, head_state: Option<State>, blocked_by: Option<i64>) -> WorkflowRecord {
    WorkflowRecord {
        name: name("order 42"),
        on_failure: OnFailure::Block,
        created_at: now(),
        head: head.map(id),
        head_state,
        blocked_by: blocked_by.map(id),
        steps: 3,
    }
}

fn with_workflow(workflow: WorkflowRecord, culprit_state: Option<State>) -> Surroundings {
    let gates = GateView { workflow: Some(workflow), ..GateView::default() };
    Surroundings { gates, culprit_state, ..well() }
}

#[track_caller]
fn says(task: &TaskRecord, around: &Surroundings, code: &str, sentence: &str, hint: &str) {
    let found = why(task, around);
    assert_eq!((found.code.as_str(), found.sentence.as_str()), (code, sentence));
    assert_eq!(found.hint.as_deref().unwrap_or_default(), hint);
}

#[test]
fn a_held_task_names_what_its_job_lacks() {
    let held = task(State::Held);
    let set = "windlass jobs set example.com --concurrency";
    let (a, b, c) = (id(1), id(2), id(3));
    for (around, code, sentence, hint) in [
        (
            with_job(job(Some(3), 1, 2), &[1, 2, 3]),
            "job_limit",
            format!("held: job example.com is at 3 of 3. Runs when one of {a}, {b}, {c} ends"),
            format!("{set} 4"),
        ),
        (
            with_job(job(Some(1), 0, 1), &[1]),
            "job_limit",
            format!("held: job example.com is at 1 of 1. Runs when {a} ends"),
            format!("{set} 2"),
        ),
        (
            with_job(job(Some(5), 1, 4), &[1, 2, 3, 4]),
            "job_limit",
            format!("held: job example.com is at 5 of 5. Runs when one of {a}, {b}, {c} or 2 others ends"),
            format!("{set} 6"),
        ),
        (
            with_job(job(Some(1), 0, 3), &[1, 2, 3]),
            "job_limit",
            "held: job example.com is at 3 of 1. Runs when 3 of its 3 tasks have ended".to_owned(),
            format!("{set} 4"),
        ),
        (
            with_job(job(Some(0), 0, 0), &[]),
            "job_limit",
            "held: job example.com has a concurrency of 0, so nothing of it starts".to_owned(),
            format!("{set} 1"),
        ),
        (
            with_job(job(None, 100, 0), &[1]),
            "job_window",
            format!(
                "held: job example.com has 100 tasks in line already; it follows when one of {a} or 99 others ends"
            ),
            "raise --slots or start another worker".to_owned(),
        ),
        (
            with_job(job(None, 0, 0), &[]),
            "admission",
            "held: job example.com has room; it is about to let it through".to_owned(),
            String::new(),
        ),
    ] {
        says(&held, &around, code, &sentence, &hint);
    }
}

#[test]
fn a_held_task_names_a_stopped_job_first() {
    let held = task(State::Held);
    for (state, code, sentence, hint) in [
        (
            JobState::Paused,
            "job_paused",
            "held: job example.com is paused",
            "windlass jobs resume example.com",
        ),
        (
            JobState::Cancelled,
            "job_cancelled",
            "held: job example.com is cancelled, and so will this task be",
            "windlass jobs resume example.com",
        ),
        (
            JobState::Removing,
            "job_removing",
            "held: job example.com is being removed; it starts anew when the last task that runs has ended",
            "",
        ),
    ] {
        let full = JobRecord { state, ..job(Some(3), 0, 3) };
        says(&held, &Surroundings { live_workers: 0, ..with_job(full, &[1]) }, code, sentence, hint);
    }
}

#[test]
fn a_jobs_delay_is_shown_with_the_remaining_time() {
    let held = task(State::Held);
    let hint = "windlass jobs set example.com --delay none";
    let delayed = JobRecord { delay: Some(10 * SECOND), ..job(Some(3), 0, 1) };
    let started = JobRecord { last_start: Some(now().before(4 * SECOND)), ..delayed.clone() };
    says(
        &held,
        &with_job(started, &[1]),
        "job_delay",
        "held: job example.com starts one task every 10.0 s; the next start is in 6.0 s",
        hint,
    );
    let next = JobRecord { ready: 1, running: 0, ..delayed.clone() };
    let sentence = format!("held: job example.com starts one task every 10.0 s; {} is next", id(1));
    says(&held, &with_job(next, &[1]), "job_delay", &sentence, hint);
    assert_eq!(why(&held, &with_job(delayed, &[1])).code, "admission", "its time has come");
}

#[test]
fn held_and_ready_tasks_name_a_paused_queue_or_no_worker() {
    for (state, begins, around) in [
        (State::Held, "held:", with_job(job(Some(3), 0, 3), &[1])),
        (State::Held, "held:", well()),
        (State::Ready, "ready, but", well()),
    ] {
        let paused = Surroundings { queue_paused: true, ..around.clone() };
        let sentence = format!("{begins} queue default is paused");
        says(&task(state), &paused, "queue_paused", &sentence, "windlass queues resume default");
        let alone = Surroundings { live_workers: 0, ..around };
        let sentence = format!("{begins} no live worker handles kind \"resize\" on queue default");
        let hint = "start a worker that has a handler for \"resize\"";
        says(&task(state), &alone, "no_worker", &sentence, hint);
    }
}

#[test]
fn a_waiting_step_names_what_is_before_it() {
    let waiting = task(State::Waiting);
    let (head, retry, skip, cancel) = (
        id(3),
        "windlass workflows retry 'order 42'",
        "windlass workflows skip 'order 42'",
        "windlass workflows cancel 'order 42'",
    );
    says(
        &waiting,
        &with_workflow(workflow(Some(3), Some(State::Running), None), None),
        "workflow",
        &format!("waiting: behind task {head} of its workflow order 42, which is running"),
        &format!("windlass tasks why {head}"),
    );
    for (culprit_state, end, hint) in [
        (Some(State::Dead), "dead", format!("{retry}, or go on without it: {skip}")),
        (Some(State::Cancelled), "cancelled", format!("go on without it: {skip}, or {cancel}")),
    ] {
        says(
            &waiting,
            &with_workflow(workflow(Some(7), Some(State::Waiting), Some(3)), culprit_state),
            "workflow_blocked",
            &format!("waiting: its workflow order 42 is blocked by {head}, which is {end}"),
            &hint,
        );
    }
    let its_turn = with_workflow(workflow(Some(7), Some(State::Waiting), None), None);
    assert_eq!(why(&waiting, &its_turn).code, "admission");
    assert_eq!(why(&waiting, &well()).code, "workflow", "a workflow that is not known");
}

#[test]
fn a_scheduled_task_says_when_and_after_what() {
    let later = TaskRecord { due_at: Some(now().after(90 * SECOND)), ..task(State::Scheduled) };
    says(&later, &well(), "not_due", "scheduled: due in 1 min 30 s", "");
    let again = TaskRecord { attempt: 2, error: Some("it rained".into()), ..later };
    let sentence = "scheduled: attempt 2 of 10 failed (it rained); the next is due in 1 min 30 s";
    says(&again, &well(), "retry_wait", sentence, "");
}

#[test]
fn a_ready_task_needs_a_slot() {
    let ready = task(State::Ready);
    says(&ready, &well(), "about_to_start", "ready: it is about to be claimed", "");
    let full = Surroundings { free_slots: 0, ..well() };
    let sentence = "ready, but all slots of the 2 live worker(s) for it are taken";
    says(&ready, &full, "no_free_slot", sentence, "raise --slots or start another worker");
    let short = Surroundings { held_back: "memory".to_owned(), ..full.clone() };
    let sentence = "ready, but the 2 live worker(s) for it may not use all of their slots: memory";
    says(&ready, &short, "held_back", sentence, "`windlass workers ls` shows memory and factors");
    let crashed = TaskRecord { crashes: 1, ..ready.clone() };
    assert_eq!(why(&crashed, &full).code, "no_free_slot", "one crash does not make a suspect");
    let suspect = TaskRecord { crashes: 2, ..ready };
    assert_eq!(why(&suspect, &full).code, "suspect");
}

#[test]
fn a_running_task_says_where_and_an_ended_one_how() {
    let started_at = Some(now().before(2 * SECOND));
    let running = TaskRecord { started_at, worker: Some(WorkerId(4)), attempt: 1, ..task(State::Running) };
    says(&running, &well(), "running", "running on w4 for 2.0 s (attempt 1)", "");
    let asked = TaskRecord { cancel_requested: Some("enough".into()), ..running };
    says(&asked, &well(), "cancelling", "running on w4, asked to end: enough", "");
    says(&task(State::Done), &well(), "done", "done: it has ended in success", "");
    says(&task(State::Cancelled), &well(), "cancelled", "cancelled: by request", "");
    let retry = format!("windlass tasks retry {}", id(7));
    says(&task(State::Dead), &well(), "dead", "dead: no reason kept", &retry);
    let culprit = with_workflow(workflow(Some(8), Some(State::Waiting), Some(7)), Some(State::Dead));
    let sentence = "dead: no reason kept; its workflow order 42 is blocked by that";
    says(&task(State::Dead), &culprit, "dead", sentence, &retry);
}

#[test]
fn names_with_shell_characters_are_quoted() {
    for (text, typed) in
        [("example.com", "example.com"), ("a b", "'a b'"), ("it's", r"'it'\''s'"), ("$x", "'$x'")]
    {
        assert_eq!(word(&name(text)), typed);
    }
}
