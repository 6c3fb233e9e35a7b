//! What clients and operators do to tasks and queues: cancel, redrive, pause.

pub(crate) mod awaited;
pub(crate) mod info;
pub(crate) mod inspect;
pub(crate) mod list;
pub(crate) mod record;

use std::collections::{BTreeSet, HashMap, HashSet};

use tokio_postgres::Row;
use windlass_core::{
    Error, LaneId, Name, Result, State, TaskId, Timestamp,
    store::{Changed, Redrive},
};

use crate::{
    connection::{
        error::Failure,
        pool::Session,
        repeat::repeat,
        values::{Cells, column, ms},
    },
    gates::{
        admit, job,
        workflow::{self, StepEnd},
    },
    leases::hand_back::tell,
    shared::Shared,
    sql,
};

/// Tasks that one transaction changes.
const CHANGES_MAX: usize = 1_000;
/// How often a task is looked at again if it changes between two looks.
const LOOKS_MAX: usize = 10;

/// What became of each task.
type Results = HashMap<TaskId, Result<State, Refusal>>;

/// Ends tasks that have not started, and asks those that run to end.
pub(crate) async fn cancel(shared: &Shared, ids: &[TaskId], reason: &str) -> Result<Vec<Changed>> {
    let reason = shared.rules.clip_error(reason);
    let mut results = HashMap::new();
    for chunk in in_order(ids).chunks(CHANGES_MAX) {
        results.extend(repeat(|| cancel_some(shared, chunk, &reason)).await?);
    }
    // The cancelled tasks may have left room.
    admit::admit_after(shared).await;
    let again = |state: &State| match state {
        State::Running => Ok(State::Running),
        state => Err(Refusal::Ended(*state)),
    };
    Ok(answers(ids.iter().copied(), &results, again))
}

async fn cancel_some(shared: &Shared, ids: &[TaskId], reason: &str) -> Result<Results, Failure> {
    let mut session = shared.pool.session().await?;
    let mut results = HashMap::new();
    let mut left = ids.to_vec();
    for _ in 0..LOOKS_MAX {
        if left.is_empty() {
            break;
        }
        let (cancelled, lanes) = end_unstarted(shared, &mut session, &left, reason).await?;
        tell(shared, &mut session, &lanes).await;
        results.extend(cancelled.into_iter().map(|id| (id, Ok(State::Cancelled))));
        left.retain(|id| !results.contains_key(id));
        let raw = column(&left, |id| id.raw());
        let asked = session.query(&sql::ASK_CANCEL, &[&raw, &reason, &shared.doorbell.channel]).await?;
        results.extend(asked.iter().map(|row| (row.task(0), Ok(State::Running))));
        left.retain(|id| !results.contains_key(id));
        // A task that is left has ended, never was, or has just changed its state: it is looked at again.
        let states = inspect::states(&mut session, &left).await?;
        left.retain(|id| match states.get(id) {
            Some(state) if !state.is_ended() => true,
            found => {
                results.insert(*id, Err(found.map_or(Refusal::NotFound, |state| Refusal::Ended(*state))));
                false
            }
        });
    }
    if !left.is_empty() {
        return Err(
            Error::Unavailable("a task changes too fast to be cancelled; try again".to_owned()).into()
        );
    }
    Ok(results)
}

/// Ends the tasks that have not started. Answers them, and the lanes of the steps that follow.
async fn end_unstarted(
    shared: &Shared,
    session: &mut Session<'_>,
    ids: &[TaskId],
    reason: &str,
) -> Result<(Vec<TaskId>, Vec<LaneId>), Failure> {
    let raw = column(ids, |id| id.raw());
    let ended = delete_unstarted(shared, session, &raw, reason, false).await?;
    let (mut ended, mut lanes) = (column(&ended, |row| row.task(0)), Vec::new());
    if ended.len() < ids.len() {
        let (steps, followed) = cancel_steps(shared, session, &raw, reason).await?;
        ended.extend(steps);
        lanes = followed;
    }
    shared.awaited.wake(ended.iter().copied());
    Ok((ended, lanes))
}

/// Moves tasks that have not started to the history; steps of workflows only if those are locked.
pub(crate) async fn delete_unstarted(
    shared: &Shared,
    session: &mut Session<'_>,
    ids: &[i64],
    reason: &str,
    are_locked: bool,
) -> Result<Vec<Row>, Failure> {
    let (ttl, keep) = (shared.key_ttl_ms(), shared.keeps_all());
    session.query(&sql::CANCEL_UNSTARTED, &[&ids, &reason, &ttl, &keep, &are_locked]).await
}

/// Ends steps of workflows that have not started, under the locks of their workflows. A step that had its
/// turn counts as failed; a step that waits is removed. Answers these steps, and the lanes of the steps that
/// follow.
async fn cancel_steps(
    shared: &Shared,
    session: &mut Session<'_>,
    ids: &[i64],
    reason: &str,
) -> Result<(Vec<TaskId>, Vec<LaneId>), Failure> {
    let steps = session.query(&sql::WORKFLOW_OF, &[&ids]).await?;
    if steps.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let names: BTreeSet<String> = steps.iter().map(|row| row.get(1)).collect();
    let ids: Vec<i64> = steps.iter().map(|row| row.get(0)).collect();
    session.begin().await?;
    let held = workflow::lock(session, &names).await?;
    let cancelled = delete_unstarted(shared, session, &ids, reason, true).await?;
    let ends: Vec<StepEnd> = cancelled
        .iter()
        .filter_map(|row| {
            let had_its_turn = i64::from(row.get::<_, i16>(1)) != State::Waiting.code();
            let workflow = row.get::<_, Option<String>>(2)?;
            Some(StepEnd { workflow, task: row.get(0), step: row.get(3), has_failed: had_its_turn })
        })
        .collect();
    let lanes = workflow::advance(shared, session, &held, &ends).await?;
    session.commit().await?;
    Ok((cancelled.iter().map(|row| row.task(0)).collect(), lanes))
}

/// Ends the tasks that have not started. Answers how many, and the lanes of the steps that follow.
pub(crate) async fn cancel_unstarted(
    shared: &Shared,
    ids: &[TaskId],
    reason: &str,
) -> Result<(u64, Vec<LaneId>)> {
    let reason = shared.rules.clip_error(reason);
    let ids = in_order(ids);
    repeat(|| async {
        let mut session = shared.pool.session().await?;
        let (ended, lanes) = end_unstarted(shared, &mut session, &ids, &reason).await?;
        Ok((ended.len() as u64, lanes))
    })
    .await
}

/// Gives dead tasks a new budget of attempts.
pub(crate) async fn redrive(shared: &Shared, tasks: &[Redrive]) -> Result<Vec<Changed>> {
    let delays: HashMap<TaskId, i64> = tasks.iter().rev().map(|task| (task.id, ms(task.delay))).collect();
    let ids: Vec<TaskId> = tasks.iter().map(|task| task.id).collect();
    let mut results = HashMap::new();
    for chunk in in_order(&ids).chunks(CHANGES_MAX) {
        results.extend(repeat(|| redrive_some(shared, chunk, &delays)).await?);
    }
    admit::admit_after(shared).await;
    Ok(answers(ids.into_iter(), &results, |state| Err(Refusal::NotDead(*state))))
}

async fn redrive_some(
    shared: &Shared,
    ids: &[TaskId],
    delays: &HashMap<TaskId, i64>,
) -> Result<Results, Failure> {
    let mut session = shared.pool.session().await?;
    let raw = column(ids, |id| id.raw());
    let delay_ms: Vec<i64> = ids.iter().map(|id| delays.get(id).copied().unwrap_or(0)).collect();
    let rows = redrive_steps(&mut session, &raw, &delay_ms).await?;
    if let Some(due) = rows.iter().map(|row| row.get::<_, i64>(1)).min() {
        shared.subscribers.tell_due(Timestamp::from_ms(due));
    }
    let state = |row: &Row| row.state(2).unwrap_or(State::Scheduled);
    let mut results: HashMap<_, _> = rows.iter().map(|row| (row.task(0), Ok(state(row)))).collect();
    refuse_others(&mut session, ids, &mut results, Refusal::NotDead).await?;
    Ok(results)
}

/// Gives the new budgets. A step that blocks its workflow is its head again; a step that was skipped goes to
/// the end.
async fn redrive_steps(session: &mut Session<'_>, ids: &[i64], delays: &[i64]) -> Result<Vec<Row>, Failure> {
    let steps = session.query(&sql::WORKFLOW_OF, &[&ids]).await?;
    if steps.is_empty() {
        return session.query(&sql::REDRIVE, &[&ids, &delays, &vec![false; ids.len()]]).await;
    }
    let workflows: HashMap<i64, String> = steps.iter().map(|row| (row.get(0), row.get(1))).collect();
    session.begin().await?;
    let held = workflow::lock(session, &workflows.values().cloned().collect()).await?;
    let blocks = |id: &i64| workflows.get(id).is_some_and(|name| held.blocked_by(name) == Some(*id));
    let appends: Vec<bool> = ids.iter().map(|id| workflows.contains_key(id) && !blocks(id)).collect();
    let rows = session.query(&sql::REDRIVE, &[&ids, &delays, &appends]).await?;
    let (mut freed, mut appended) = (Vec::new(), Vec::new());
    for id in rows.iter().map(|row| row.get::<_, i64>(0)) {
        if let Some(name) = workflows.get(&id) {
            if blocks(&id) { freed.push(name.as_str()) } else { appended.push(name.as_str()) }
        }
    }
    if !freed.is_empty() {
        session.query(&sql::WORKFLOW_FREE, &[&freed, &false]).await?;
    }
    workflow::put(session, &appended).await?;
    session.commit().await?;
    Ok(rows)
}

/// Removes dead tasks that block no workflow.
pub(crate) async fn remove(shared: &Shared, ids: &[TaskId]) -> Result<Vec<Changed>> {
    let mut results = HashMap::new();
    for chunk in in_order(ids).chunks(CHANGES_MAX) {
        results.extend(repeat(|| remove_some(shared, chunk)).await?);
    }
    Ok(answers(ids.iter().copied(), &results, |_| Err(Refusal::NotFound)))
}

async fn remove_some(shared: &Shared, ids: &[TaskId]) -> Result<Results, Failure> {
    let mut session = shared.pool.session().await?;
    let raw = column(ids, |id| id.raw());
    let removed = session.query(&sql::REMOVE_DEAD, &[&raw, &shared.key_ttl_ms()]).await?;
    let mut results: HashMap<_, _> = removed.iter().map(|row| (row.task(0), Ok(State::Dead))).collect();
    let why = |state| if state == State::Dead { Refusal::Blocks } else { Refusal::CannotGo(state) };
    refuse_others(&mut session, ids, &mut results, why).await?;
    Ok(results)
}

/// Notes why the tasks that have no result yet were left unchanged.
async fn refuse_others(
    session: &mut Session<'_>,
    ids: &[TaskId],
    results: &mut Results,
    why: impl Fn(State) -> Refusal,
) -> Result<(), Failure> {
    let left: Vec<TaskId> = ids.iter().copied().filter(|id| !results.contains_key(id)).collect();
    if !left.is_empty() {
        let states = inspect::states(session, &left).await?;
        let refusal = |id| states.get(id).map_or(Refusal::NotFound, |state| why(*state));
        results.extend(left.iter().map(|id| (*id, Err(refusal(id)))));
    }
    Ok(())
}

/// Why a task was left unchanged.
#[derive(Debug, Clone, Copy)]
enum Refusal {
    NotFound,
    Ended(State),
    NotDead(State),
    CannotGo(State),
    Blocks,
}

impl Refusal {
    fn of(self, id: TaskId) -> Error {
        match self {
            Self::NotFound => Error::NotFound(format!("task {id}")),
            Self::Ended(state) => Error::Conflict(format!("task {id} has already ended: {state}")),
            Self::NotDead(state) => {
                Error::Conflict(format!("task {id} is {state}; only a dead task can be retried"))
            }
            Self::CannotGo(state) => {
                Error::Conflict(format!("task {id} is {state}; only a dead task can be removed"))
            }
            Self::Blocks => {
                Error::Conflict(format!("task {id} blocks its workflow; skip or cancel that first"))
            }
        }
    }
}

/// Each task once, in the order in which every transaction locks tasks.
fn in_order(ids: &[TaskId]) -> Vec<TaskId> {
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// The results in the order of the call. A task that is named twice gets the result of the first time.
fn answers(
    ids: impl Iterator<Item = TaskId>,
    results: &Results,
    again: impl Fn(&State) -> Result<State, Refusal>,
) -> Vec<Changed> {
    let mut seen = HashSet::new();
    ids.map(|id| {
        let result = match (results.get(&id), seen.insert(id)) {
            (None, _) => Err(Refusal::NotFound),
            (Some(Ok(state)), false) => again(state),
            (Some(result), _) => *result,
        };
        Changed { id, result: result.map_err(|refusal| refusal.of(id)) }
    })
    .collect()
}

/// Pauses or resumes claims from a queue; answers whether that changed anything.
pub(crate) async fn set_paused(shared: &Shared, queue: &Name, paused: bool) -> Result<bool> {
    let mut session = shared.pool.session().await?;
    let queue = queue.as_str();
    let row = if paused {
        session.row(&sql::PAUSE_QUEUE, &[&queue]).await?
    } else {
        session.row(&sql::RESUME_QUEUE, &[&queue, &shared.doorbell.channel]).await?
    };
    drop(session);
    if paused {
        job::lanes_became_dead(shared).await;
    } else {
        shared.read_positions().forget();
        shared.tell_ready();
        job::lanes_became_live(shared).await;
    }
    Ok(row.is_some())
}

/// The paused queues.
pub(crate) async fn paused(shared: &Shared) -> Result<Vec<Name>> {
    let rows = shared.pool.query(&sql::PAUSED_QUEUES, &[]).await?;
    // A name that is not allowed is left out: no task can be in that queue.
    Ok(rows.iter().filter_map(|row| Name::stored("queue", row.get::<_, &str>(0)).ok()).collect())
}
