//! Calls of clients and operators on tasks and queues: cancel, redrive, pause.

pub(crate) mod awaited;
pub(crate) mod info;
pub(crate) mod inspect;
pub(crate) mod list;
pub(crate) mod record;

use rusqlite::{OptionalExtension, params};
use windlass_core::{
    AttemptRecord, Error, LaneId, LeaseRef, Name, OnFailure, Result, State, TaskId, Timestamp, WorkerId,
    attempt_log as log,
    crash::is_suspect,
    store::{Changed, Redrive},
    task::AttemptResult,
};

use crate::{
    connection::tx::{Failure, Step, Tx, disagree},
    enqueue::keyed,
    gates::{admit, held_line, job::optional_name, workflow},
    memory::Waiting,
    settle::ends::{count_kept, must_keep},
    sql,
    upkeep::retention,
};

/// What cancel and redrive need of a task.
struct Found {
    state: State,
    lane: LaneId,
    lease: u32,
    worker: Option<WorkerId>,
    crashes: u32,
    attempt: u32,
    keyed: bool,
    log: Option<String>,
    payload_bytes: u64,
    cancel: Option<String>,
    job: Option<Name>,
    workflow: Option<Name>,
    step: i64,
    on_failure: Option<OnFailure>,
    priority: i32,
    aside: bool,
}

fn find(tx: &Tx<'_>, id: TaskId) -> Step<Option<Found>> {
    let found = tx.sql(sql::FIND_TASK)?.query_row([id.raw()], |row| {
        Ok(Found {
            state: State::from_code(row.get(0)?).unwrap_or(State::Dead),
            lane: LaneId(row.get(1)?),
            lease: row.get(2)?,
            worker: row.get::<_, Option<i64>>(3)?.map(WorkerId),
            crashes: row.get(4)?,
            attempt: row.get(5)?,
            keyed: row.get(6)?,
            log: row.get(7)?,
            payload_bytes: row.get::<_, i64>(8)? as u64,
            cancel: row.get(9)?,
            job: optional_name(row, 10)?,
            workflow: optional_name(row, 11)?,
            step: row.get::<_, Option<i64>>(12)?.unwrap_or(0),
            on_failure: row.get::<_, Option<i64>>(13)?.and_then(OnFailure::from_code),
            priority: row.get(14)?,
            aside: row.get(15)?,
        })
    });
    Ok(found.optional()?)
}

/// The error for a task that is not in the hot table.
fn absent(tx: &Tx<'_>, id: TaskId) -> Step<Error> {
    let kept: Option<i64> = tx.sql(sql::FIND_ENDED)?.query_row([id.raw()], |row| row.get(0)).optional()?;
    Ok(match kept.and_then(State::from_code) {
        Some(state) => Error::Conflict(format!("task {id} has already ended: {state}")),
        None => Error::NotFound(format!("task {id}")),
    })
}

/// Ends tasks that have not started, and asks running ones to end.
pub(crate) fn cancel(tx: &mut Tx<'_>, ids: &[TaskId], reason: &str) -> Step<Vec<Changed>> {
    let changed = each(ids.iter().copied(), |id| cancel_one(tx, id, reason))?;
    admit::give_turns(tx)?;
    Ok(changed)
}

/// Ends a task that has not started, or asks a running one to end; refuses one that has ended.
pub(crate) fn cancel_one(tx: &mut Tx<'_>, id: TaskId, reason: &str) -> Step<State> {
    let Some(found) = find(tx, id)? else { return Err(absent(tx, id)?.into()) };
    match found.state {
        State::Running => ask_cancel(tx, id, &found, reason),
        State::Scheduled | State::Waiting | State::Held | State::Ready => {
            cancel_unstarted(tx, id, &found, reason)
        }
        State::Dead | State::Done | State::Cancelled => {
            Err(Error::Conflict(format!("task {id} has already ended: {}", found.state)).into())
        }
    }
}

/// Ends a task that does not run.
pub(crate) fn end_unstarted(tx: &mut Tx<'_>, id: TaskId, reason: &str) -> Step<()> {
    let found = find(tx, id)?.ok_or_else(|| disagree("a task that was to be cancelled"))?;
    cancel_unstarted(tx, id, &found, reason).map(|_| ())
}

fn ask_cancel(tx: &mut Tx<'_>, id: TaskId, found: &Found, reason: &str) -> Step<State> {
    let worker = found.worker.ok_or_else(|| disagree("a running task"))?;
    // The first reason stays; a second request changes nothing.
    if found.cancel.is_none() {
        tx.sql(sql::ASK_CANCEL)?.execute((reason, id.raw()))?;
        tx.memory.ask_cancel(worker, id, reason);
        tx.effects.cancels.push((worker, LeaseRef { id, lease: found.lease }, reason.to_owned()));
    }
    Ok(State::Running)
}

fn cancel_unstarted(tx: &mut Tx<'_>, id: TaskId, found: &Found, reason: &str) -> Step<State> {
    if found.keyed {
        keyed::expire(tx, id)?;
    }
    if must_keep(tx, id, false) || found.workflow.is_some() {
        tx.sql(sql::KEEP_CANCELLED)?.execute((tx.now.as_ms(), reason, id.raw()))?;
        count_kept(tx, id, 1, found.payload_bytes);
    }
    tx.effects.figures = true;
    if tx.sql(sql::DELETE_UNSTARTED)?.execute([id.raw()])? != 1 {
        return Err(disagree("a task that was cancelled"));
    }
    tx.memory.count(found.lane, found.state, -1);
    if found.state == State::Ready && is_suspect(found.crashes) {
        tx.memory.count_suspects(found.lane, -1);
    }
    tx.effects.ended.push(id);
    if let Some(job) = &found.job {
        match found.state {
            State::Ready => tx.memory.rooms.leave(job, found.lane, id),
            State::Held if found.aside => held_line::leave_aside(tx, job, found.lane, id)?,
            State::Held => {
                let task = Waiting { id, priority: found.priority, crashes: found.crashes };
                held_line::leave(tx, job, found.lane, &task)?;
            }
            _ => {}
        }
        tx.touched.job(job);
    }
    match &found.workflow {
        // The step had no turn yet: the workflow is as if it had never been appended.
        Some(workflow) if found.state == State::Waiting => tx.touched.workflow(workflow),
        Some(workflow) => workflow::step_failed(tx, workflow, id, found.step)?,
        None => {}
    }
    Ok(State::Cancelled)
}

/// Gives dead tasks a fresh budget of attempts.
pub(crate) fn redrive(tx: &mut Tx<'_>, tasks: &[Redrive]) -> Step<Vec<Changed>> {
    let delays: std::collections::HashMap<TaskId, Timestamp> =
        tasks.iter().map(|task| (task.id, tx.now.after(task.delay))).collect();
    let changed = each(tasks.iter().map(|task| task.id), |id| {
        redrive_one(tx, id, delays.get(&id).copied().unwrap_or(tx.now))
    })?;
    admit::give_turns(tx)?;
    Ok(changed)
}

/// Gives one dead task a fresh budget. The step that blocks its workflow becomes its head again; one that its
/// workflow has passed is appended again.
pub(crate) fn redrive_one(tx: &mut Tx<'_>, id: TaskId, due_at: Timestamp) -> Step<State> {
    let Some(found) = find(tx, id)? else { return Err(absent(tx, id)?.into()) };
    if found.state != State::Dead {
        return Err(Error::Conflict(format!(
            "task {id} is {}; only a dead task can be retried",
            found.state
        ))
        .into());
    }
    let record = AttemptRecord {
        attempt: found.attempt,
        lease: found.lease,
        worker: None,
        started_at: None,
        ended_at: tx.now,
        result: AttemptResult::Redriven,
        error: None,
    };
    let log = log::append(found.log.as_deref(), record);
    let is_passed = match &found.workflow {
        Some(workflow) => !unblock(tx, workflow, id)?,
        None => false,
    };
    if let (true, Some(workflow)) = (is_passed, &found.workflow) {
        let step = tx.memory.next_step();
        let changed = tx.sql(sql::REDRIVE_STEP)?.execute(params![due_at.as_ms(), log, id.raw(), step])?;
        check(changed)?;
        workflow::make(tx, workflow, found.on_failure)?;
        tx.memory.count_move(found.lane, State::Dead, State::Waiting, 1);
        tx.touched.workflow(workflow);
        return Ok(State::Waiting);
    }
    check(tx.sql(sql::REDRIVE)?.execute(params![due_at.as_ms(), log, id.raw()])?)?;
    tx.memory.count_move(found.lane, State::Dead, State::Scheduled, 1);
    tx.effects.scheduled(due_at);
    if let Some(job) = &found.job {
        tx.touched.job(job);
    }
    Ok(State::Scheduled)
}

/// Removes dead tasks that block no workflow.
pub(crate) fn remove(tx: &mut Tx<'_>, ids: &[TaskId]) -> Step<Vec<Changed>> {
    each(ids.iter().copied(), |id| remove_one(tx, id))
}

fn remove_one(tx: &mut Tx<'_>, id: TaskId) -> Step<State> {
    let Some(found) = find(tx, id)? else { return Err(absent(tx, id)?.into()) };
    if found.state != State::Dead {
        let state = found.state;
        return Err(Error::Conflict(format!("task {id} is {state}; only a dead task can be removed")).into());
    }
    let workflow = found.workflow.as_ref().map(|name| workflow::find(tx, name)).transpose()?.flatten();
    if workflow.is_some_and(|workflow| workflow.blocked_by == Some(id)) {
        let message = format!("task {id} blocks its workflow; skip or cancel that first");
        return Err(Error::Conflict(message).into());
    }
    retention::remove_dead(tx, id, found.lane)?;
    Ok(State::Dead)
}

/// Unblocks a workflow that this task blocks; false if it does not.
fn unblock(tx: &Tx<'_>, workflow: &Name, by: TaskId) -> Step<bool> {
    let found = workflow::find(tx, workflow)?.filter(|found| found.blocked_by == Some(by));
    let Some(found) = found else { return Ok(false) };
    workflow::Workflow { blocked_by: None, ..found }.save(tx)?;
    Ok(true)
}

fn check(changed: usize) -> Step<()> {
    if changed == 1 { Ok(()) } else { Err(disagree("a dead task")) }
}

/// Applies a change to each task; a refusal is the answer for that task alone.
fn each(
    ids: impl Iterator<Item = TaskId>,
    mut change: impl FnMut(TaskId) -> Step<State>,
) -> Step<Vec<Changed>> {
    ids.map(|id| {
        let result: Result<State> = match change(id) {
            Ok(state) => Ok(state),
            Err(Failure::Refused(error)) => Err(error),
            Err(broken) => return Err(broken),
        };
        Ok(Changed { id, result })
    })
    .collect()
}

/// Pauses or resumes a queue.
pub(crate) fn set_paused(tx: &mut Tx<'_>, queue: &Name, paused: bool) -> Step<bool> {
    if paused {
        tx.sql(sql::PAUSE_QUEUE)?.execute((queue.as_str(), tx.now.as_ms()))?;
    } else {
        tx.sql(sql::RESUME_QUEUE)?.execute([queue.as_str()])?;
        tx.effects.resumed = true;
    }
    let changed = admit::change_fleet(tx, |memory| memory.set_paused(queue, paused))?;
    admit::give_turns(tx)?;
    Ok(changed)
}
