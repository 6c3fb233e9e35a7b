//! What clients and operators do to tasks and queues: cancel, redrive, pause.

use rusqlite::{OptionalExtension, params};
use windlass_core::{
    AttemptRecord, Error, LaneId, LeaseRef, Name, Result, State, TaskId, Timestamp, WorkerId,
    attempt_log as log,
    store::{Changed, Redrive},
    task::AttemptResult,
};

use crate::{
    end::{count_kept, must_keep},
    keys, sql,
    tx::{Failure, Step, Tx, disagree},
};

/// What cancel and redrive need to know of a task.
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
        })
    });
    Ok(found.optional()?)
}

/// What to say of a task that is not in the hot table.
fn absent(tx: &Tx<'_>, id: TaskId) -> Step<Error> {
    let kept: Option<i64> = tx.sql(sql::FIND_ENDED)?.query_row([id.raw()], |row| row.get(0)).optional()?;
    Ok(match kept.and_then(State::from_code) {
        Some(state) => Error::Conflict(format!("task {id} has already ended: {state}")),
        None => Error::NotFound(format!("task {id}")),
    })
}

/// Ends tasks that have not started and asks running ones to end.
pub(crate) fn cancel(tx: &mut Tx<'_>, ids: &[TaskId], reason: &str) -> Step<Vec<Changed>> {
    each(ids.iter().copied(), |id| cancel_one(tx, id, reason))
}

fn cancel_one(tx: &mut Tx<'_>, id: TaskId, reason: &str) -> Step<State> {
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

fn ask_cancel(tx: &mut Tx<'_>, id: TaskId, found: &Found, reason: &str) -> Step<State> {
    let worker = found.worker.ok_or_else(|| disagree("a running task"))?;
    // The first reason stays; asking again changes nothing.
    if found.cancel.is_none() {
        tx.sql(sql::ASK_CANCEL)?.execute((reason, id.raw()))?;
        tx.memory.ask_cancel(worker, id, reason);
        tx.effects.cancels.push((worker, LeaseRef { id, lease: found.lease }, reason.to_owned()));
    }
    Ok(State::Running)
}

fn cancel_unstarted(tx: &mut Tx<'_>, id: TaskId, found: &Found, reason: &str) -> Step<State> {
    if found.keyed {
        keys::expire(tx, id)?;
    }
    if must_keep(tx, id, false) {
        tx.sql(sql::KEEP_CANCELLED)?.execute((tx.now.as_ms(), reason, id.raw()))?;
        count_kept(tx, id, 1, found.payload_bytes);
    }
    tx.effects.figures = true;
    if tx.sql(sql::DELETE_UNSTARTED)?.execute([id.raw()])? != 1 {
        return Err(disagree("a task that was cancelled"));
    }
    tx.memory.count(found.lane, found.state, -1);
    if found.state == State::Ready && found.crashes > 0 {
        tx.memory.count_suspects(found.lane, -1);
    }
    tx.effects.ended.push(id);
    Ok(State::Cancelled)
}

/// Grants dead tasks a fresh budget of attempts.
pub(crate) fn redrive(tx: &mut Tx<'_>, tasks: &[Redrive]) -> Step<Vec<Changed>> {
    let delays: std::collections::HashMap<TaskId, Timestamp> =
        tasks.iter().map(|task| (task.id, tx.now.after(task.delay))).collect();
    each(tasks.iter().map(|task| task.id), |id| {
        redrive_one(tx, id, delays.get(&id).copied().unwrap_or(tx.now))
    })
}

fn redrive_one(tx: &mut Tx<'_>, id: TaskId, due_at: Timestamp) -> Step<State> {
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
    if tx.sql(sql::REDRIVE)?.execute(params![due_at.as_ms(), log, id.raw()])? != 1 {
        return Err(disagree("a dead task"));
    }
    tx.memory.count_move(found.lane, State::Dead, State::Scheduled, 1);
    tx.effects.scheduled(due_at);
    Ok(State::Scheduled)
}

/// Applies a change to each task; a refusal is that task's own answer.
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
    Ok(tx.memory.set_paused(queue, paused))
}
