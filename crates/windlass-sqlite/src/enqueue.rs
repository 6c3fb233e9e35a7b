//! Enqueue: a batch is checked whole, then appended whole (BATCH-ATOMIC).

pub(crate) mod for_worker;
pub(crate) mod keyed;

use std::{collections::BTreeSet, time::Duration};

use rusqlite::{CachedStatement, params};
use windlass_core::{Enqueued, JobState, LaneId, Name, NewTask, OnFailure, Start, State, TaskId, Timestamp};

use crate::{
    connection::tx::{Step, Tx},
    enqueue::keyed::Admitted,
    gates::{admit, held_line, job, workflow},
    memory::Waiting,
    sql,
    upkeep::lanes,
};

/// Approximate bytes of a task beside its payload.
pub(crate) const ROW_BYTES: u64 = 100;

/// Adds checked tasks, then gives their gates a turn.
pub(crate) fn enqueue(tx: &mut Tx<'_>, tasks: &[NewTask]) -> Step<Vec<Enqueued>> {
    let answers = append(tx, tasks)?;
    admit::give_turns(tx)?;
    Ok(answers)
}

fn append(tx: &mut Tx<'_>, tasks: &[NewTask]) -> Step<Vec<Enqueued>> {
    let bytes = tasks.iter().map(|task| task.payload.len() as u64 + ROW_BYTES).sum();
    tx.disk.reserve(bytes, tx.options)?;
    let keyed = tasks.iter().any(|task| task.key.is_some());
    let admitted = if keyed { keyed::admit(tx, tasks)? } else { Vec::new() };
    let lanes = lanes_of(tx, tasks)?;
    let mut answers: Vec<Enqueued> = Vec::with_capacity(tasks.len());
    let mut plain = tx.sql(sql::INSERT_PLAIN_TASK)?;
    for (place, (task, lane)) in tasks.iter().zip(lanes).enumerate() {
        let answer = match admitted.get(place) {
            Some(Admitted::Existing(id)) => Enqueued::existing(*id),
            Some(Admitted::SameAs(first)) => {
                Enqueued::existing(answers.get(*first).map_or(TaskId::from_raw(0), |answer| answer.id))
            }
            Some(Admitted::New(Some(digest))) => {
                let id = insert(tx, &mut plain, task, lane)?;
                keyed::put(tx, task, id, digest)?;
                added(tx, task, id)?
            }
            Some(Admitted::New(None)) | None => {
                let id = insert(tx, &mut plain, task, lane)?;
                added(tx, task, id)?
            }
        };
        answers.push(answer);
    }
    Ok(answers)
}

/// The answer for a new task; if its job is cancelled, the task is cancelled too.
fn added(tx: &mut Tx<'_>, task: &NewTask, id: TaskId) -> Step<Enqueued> {
    let job = task.job.as_ref().map(|job| job::recall(tx, job)).transpose()?.flatten();
    let cancelled = job.is_some_and(|job| job.state == JobState::Cancelled);
    Ok(Enqueued { cancelled, ..Enqueued::new(id) })
}

/// The lane of each task; new lanes are stored. Refuses before it writes.
fn lanes_of(tx: &mut Tx<'_>, tasks: &[NewTask]) -> Step<Vec<LaneId>> {
    let (counts, rules) = (tx.memory.lane_counts(), &tx.options.rules);
    // Far from the bound the names need not be looked up.
    if counts.check(rules, tasks.len()).is_err() {
        let is_new = |task: &&NewTask| tx.memory.lane_id(&task.queue, &task.kind).is_none();
        let new: BTreeSet<_> = tasks.iter().filter(is_new).map(|task| (&task.queue, &task.kind)).collect();
        counts.check(rules, new.len())?;
    }
    let mut lanes = Vec::with_capacity(tasks.len());
    let mut last: Option<(&Name, &Name, LaneId)> = None;
    for task in tasks {
        let lane = match last {
            Some((queue, kind, lane)) if *queue == task.queue && *kind == task.kind => lane,
            _ => lane_of(tx, task)?,
        };
        last = Some((&task.queue, &task.kind, lane));
        lanes.push(lane);
    }
    Ok(lanes)
}

fn lane_of(tx: &mut Tx<'_>, task: &NewTask) -> Step<LaneId> {
    if let Some(lane) = tx.memory.lane_id(&task.queue, &task.kind) {
        lanes::take(tx, lane)?;
        return Ok(lane);
    }
    let id = LaneId(tx.memory.lanes().len() as i64 + 1);
    tx.sql(sql::INSERT_LANE)?.execute((id.0, task.queue.as_str(), task.kind.as_str()))?;
    tx.memory.add_lane(&task.queue, &task.kind, id);
    tx.effects.lanes = true;
    Ok(id)
}

fn insert(tx: &mut Tx<'_>, plain: &mut CachedStatement<'_>, task: &NewTask, lane: LaneId) -> Step<TaskId> {
    let id = tx.memory.next_id(tx.now);
    let max_attempts = task.max_attempts.unwrap_or(tx.options.rules.max_attempts);
    let start_at = due_at(task.start, tx.now);
    let state = entry(task, start_at);
    let ready_seq = (state == State::Ready).then(|| tx.memory.next_ready_seq());
    let encoding = task.payload.encoding().code();
    let is_plain = state == State::Ready
        && task.timeout.is_none()
        && task.retry.is_none()
        && task.key.is_none()
        && task.trace.is_none();
    if is_plain {
        plain.execute(params![
            id.raw(),
            lane.0,
            task.priority,
            ready_seq,
            max_attempts,
            encoding,
            task.payload.as_bytes()
        ])?;
    } else {
        let is_step = task.workflow.is_some();
        tx.sql(sql::INSERT_TASK)?.execute(params![
            id.raw(),
            lane.0,
            state.code(),
            task.priority,
            ready_seq,
            start_at.filter(|_| !is_step).map(Timestamp::as_ms),
            max_attempts,
            task.timeout.map(timeout_to_stored),
            task.retry.map(windlass_core::RetryPolicy::to_stored),
            task.job.as_ref().map(Name::as_str),
            task.workflow.as_ref().map(Name::as_str),
            is_step.then(|| tx.memory.next_step()),
            task.on_failure.map(OnFailure::code),
            start_at.filter(|_| is_step).map(Timestamp::as_ms),
            task.key.as_ref().map(|key| key.text.as_str()),
            encoding,
            task.payload.as_bytes(),
            task.trace.map(|trace| trace.to_string())
        ])?;
    }
    tx.memory.count(lane, state, 1);
    match (state, start_at) {
        (State::Ready, _) => tx.effects.ready = true,
        (State::Scheduled, Some(start_at)) => tx.effects.scheduled(start_at),
        _ => {}
    }
    touch_gates(tx, task, id, lane, state)?;
    Ok(id)
}

/// The state in which a new task starts: before its gates, if it has any.
fn entry(task: &NewTask, start_at: Option<Timestamp>) -> State {
    match start_at {
        _ if task.workflow.is_some() => State::Waiting,
        Some(_) => State::Scheduled,
        None if task.job.is_some() => State::Held,
        None => State::Ready,
    }
}

/// Marks the gates of a new task for a turn. A step concerns its job only once the step has its turn.
fn touch_gates(tx: &mut Tx<'_>, task: &NewTask, id: TaskId, lane: LaneId, state: State) -> Step<()> {
    if let (Some(job), Some(limit)) = (&task.job, task.job_concurrency) {
        job::make_limited(tx, job, limit)?;
    }
    match (&task.workflow, &task.job) {
        (Some(workflow), _) => {
            if !tx.touched.workflows.contains(workflow) {
                workflow::make(tx, workflow, task.on_failure)?;
                tx.touched.workflow(workflow);
            }
        }
        (None, Some(job)) => {
            if state == State::Held {
                held_line::enter(tx, job, lane, Waiting { id, priority: task.priority, crashes: 0 })?;
            }
            tx.touched.job(job);
        }
        (None, None) => {}
    }
    Ok(())
}

/// The due time of a task that may not start at once.
fn due_at(start: Start, now: Timestamp) -> Option<Timestamp> {
    match start {
        Start::Now => None,
        Start::In(delay) => Some(now.after(delay)).filter(|at| *at > now),
        Start::At(at) => Some(at).filter(|at| *at > now),
    }
}

/// A time limit in milliseconds, rounded up so that a short one does not become zero.
pub(crate) fn timeout_to_stored(timeout: Duration) -> i64 {
    i64::try_from(timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX)
}
