//! Workflows: steps one after another. A transaction that ends a step first locks its workflow's row, and
//! passes the turn on before it commits (WF-ORDER).

use std::collections::{BTreeMap, BTreeSet};

use windlass_core::{
    Error, LaneId, Name, OnFailure, Result, State, TaskId, Timestamp, WorkflowAction, WorkflowRecord,
    gate::COUNT_MAX,
};

use crate::{
    connection::{error::Failure, pool::Session, repeat::repeat, values::Cells},
    gates::admit::{self, Admitted, TODO_WORKFLOW},
    operate,
    shared::Shared,
    sql,
};

/// How a step ended.
#[derive(Debug, Clone)]
pub(crate) struct StepEnd {
    pub workflow: String,
    pub task: i64,
    pub step: Option<i64>,
    /// The step did not end in success.
    pub has_failed: bool,
}

/// A workflow as its locked row shows it.
pub(crate) struct Locked {
    on_failure: OnFailure,
    blocked_by: Option<i64>,
    forgiven_step: Option<i64>,
}

/// Workflows that are locked until the transaction ends.
#[derive(Default)]
pub(crate) struct Held(BTreeMap<String, Locked>);

impl Held {
    /// Reads the answer of `workflow_lock.sql`.
    pub(crate) fn of(rows: &[tokio_postgres::Row]) -> Self {
        let row = |row: &tokio_postgres::Row| {
            let policy = OnFailure::from_code(i64::from(row.get::<_, i16>(1))).unwrap_or_default();
            (row.get(0), Locked { on_failure: policy, blocked_by: row.get(2), forgiven_step: row.get(3) })
        };
        Self(rows.iter().map(row).collect())
    }

    fn names(&self) -> Vec<&str> {
        self.0.keys().map(String::as_str).collect()
    }

    /// The step that blocks a workflow.
    pub(crate) fn blocked_by(&self, name: &str) -> Option<i64> {
        self.0.get(name).and_then(|row| row.blocked_by)
    }
}

/// Locks workflows, in order.
pub(crate) async fn lock(session: &mut Session<'_>, names: &BTreeSet<String>) -> Result<Held, Failure> {
    if names.is_empty() {
        return Ok(Held::default());
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Ok(Held::of(&session.query(&sql::WORKFLOW_LOCK, &[&names]).await?))
}

/// Passes the turns of workflows on after steps of them have ended. Answers what became ready.
pub(crate) async fn advance(
    shared: &Shared,
    session: &mut Session<'_>,
    held: &Held,
    ends: &[StepEnd],
) -> Result<Vec<LaneId>, Failure> {
    if held.0.is_empty() {
        return Ok(Vec::new());
    }
    let (mut blocked, mut blockers, mut cancelled) = (Vec::new(), Vec::new(), Vec::new());
    for end in ends.iter().filter(|end| end.has_failed) {
        let Some(row) = held.0.get(&end.workflow) else { continue };
        if end.step.unwrap_or(-1) <= row.forgiven_step.unwrap_or(-1) {
            continue;
        }
        match row.on_failure {
            OnFailure::Block => {
                blocked.push(end.workflow.as_str());
                blockers.push(end.task);
            }
            OnFailure::Skip => {}
            OnFailure::Cancel => cancelled.push(end),
        }
    }
    if !blocked.is_empty() {
        session.query(&sql::WORKFLOW_BLOCK, &[&blocked, &blockers]).await?;
    }
    for end in cancelled {
        let ids = steps(session, &end.workflow).await?;
        let reason = format!("an earlier step failed: {}", TaskId::from_raw(end.task));
        let ids: Vec<i64> = ids.into_iter().map(|(id, _)| id).collect();
        cancel(shared, session, &ids, &reason).await?;
    }
    let mut admitted = Admitted::default();
    let jobs = pass(session, &held.names(), &mut admitted).await?;
    admit::put_jobs(session, jobs.iter().map(String::as_str)).await?;
    Ok(admitted.lanes_ready)
}

/// Gives the heads of workflows their turn, and forgets workflows without steps. Answers the jobs that decide
/// next.
async fn pass(
    session: &mut Session<'_>,
    names: &[&str],
    admitted: &mut Admitted,
) -> Result<BTreeSet<String>, Failure> {
    let mut jobs = BTreeSet::new();
    for row in &session.query(&sql::WORKFLOW_PASS, &[&names]).await? {
        admitted.moved += 1;
        match row.state(1) {
            Some(State::Ready) => admitted.lanes_ready.push(row.lane(0)),
            Some(State::Held) => jobs.extend(row.get::<_, Option<String>>(2)),
            _ => {
                if let Some(due) = row.get::<_, Option<i64>>(3) {
                    admitted.due(Timestamp::from_ms(due));
                }
            }
        }
    }
    session.query(&sql::WORKFLOW_FORGET, &[&names]).await?;
    Ok(jobs)
}

/// Admits steps that were appended to workflows. Answers the jobs that decide next.
pub(crate) async fn admit(
    session: &mut Session<'_>,
    names: &[&str],
    admitted: &mut Admitted,
) -> Result<BTreeSet<String>, Failure> {
    session.query(&sql::WORKFLOW_MAKE, &[&names]).await?;
    let wanted: BTreeSet<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let held = lock(session, &wanted).await?;
    // A workflow that was forgotten between the two statements, and had a step appended since, is looked at
    // again.
    let lost: Vec<&str> = names.iter().copied().filter(|name| !held.0.contains_key(*name)).collect();
    let names = held.names();
    if !names.is_empty() {
        session.query(&sql::WORKFLOW_PLACE, &[&names]).await?;
    }
    let jobs = if names.is_empty() { BTreeSet::new() } else { pass(session, &names, admitted).await? };
    for name in lost {
        if !steps(session, name).await?.is_empty() {
            put(session, &[name]).await?;
        }
    }
    Ok(jobs)
}

/// Notes in `gate_todo` that admission must look at these workflows.
pub(crate) async fn put(session: &mut Session<'_>, names: &[&str]) -> Result<(), Failure> {
    if !names.is_empty() {
        let kinds = vec![TODO_WORKFLOW; names.len()];
        session.query(&sql::TODO_PUT, &[&kinds, &names]).await?;
    }
    Ok(())
}

/// Unfinished steps of a workflow, with their states.
async fn steps(session: &mut Session<'_>, name: &str) -> Result<Vec<(i64, State)>, Failure> {
    let rows = session.query(&sql::WORKFLOW_STEPS, &[&vec![name], &true, &i64::MAX]).await?;
    let state = |code: i16| State::from_code(i64::from(code)).unwrap_or(State::Waiting);
    Ok(rows.iter().map(|row| (row.get(0), state(row.get(1)))).collect())
}

/// Cancels steps of locked workflows.
async fn cancel(
    shared: &Shared,
    session: &mut Session<'_>,
    ids: &[i64],
    reason: &str,
) -> Result<u64, Failure> {
    if ids.is_empty() {
        return Ok(0);
    }
    let rows = operate::delete_unstarted(shared, session, ids, reason, true).await?;
    shared.awaited.wake(rows.iter().map(|row| row.task(0)));
    Ok(rows.len() as u64)
}

/// Workflows by name.
pub(crate) async fn list(
    shared: &Shared,
    blocked: bool,
    after: Option<&Name>,
    only: Option<&Name>,
    limit: u32,
) -> Result<Vec<WorkflowRecord>> {
    let (after, only) = (after.map(Name::as_str), only.map(Name::as_str));
    let rows = shared
        .pool
        .query(&sql::WORKFLOW_LIST, &[&after, &blocked, &only, &i64::from(limit), &(COUNT_MAX as i64)])
        .await?;
    Ok(rows.iter().filter_map(record).collect())
}

fn record(row: &tokio_postgres::Row) -> Option<WorkflowRecord> {
    let head: Option<i64> = row.get(4);
    Some(WorkflowRecord {
        name: Name::stored("workflow", row.get::<_, &str>(0)).ok()?,
        on_failure: OnFailure::from_code(i64::from(row.get::<_, i16>(1))).unwrap_or_default(),
        created_at: row.time(2),
        head: head.map(TaskId::from_raw),
        head_state: row.get::<_, Option<i16>>(5).and_then(|code| State::from_code(i64::from(code))),
        blocked_by: row.get::<_, Option<i64>>(3).map(TaskId::from_raw),
        steps: row.number(6),
    })
}

/// Retries, skips or cancels; answers how many tasks that changed.
pub(crate) async fn change(shared: &Shared, name: &Name, action: WorkflowAction) -> Result<u64> {
    let changed = repeat(|| change_once(shared, name, action)).await?;
    shared.tell_ready();
    admit::admit_after(shared).await;
    Ok(changed)
}

async fn change_once(shared: &Shared, name: &Name, action: WorkflowAction) -> Result<u64, Failure> {
    let mut session = shared.pool.session().await?;
    session.begin().await?;
    let held = lock(&mut session, &BTreeSet::from([name.as_str().to_owned()])).await?;
    let changed: Result<u64, Failure> = match held.0.get(name.as_str()) {
        None => Err(Error::NotFound(format!("workflow {name}")).into()),
        Some(row) => match (action, row.blocked_by) {
            (WorkflowAction::Cancel, _) => cancel_all(shared, &mut session, &held, name).await,
            (_, None) => Err(Error::Conflict(format!("workflow {name} is not blocked")).into()),
            (WorkflowAction::Retry, Some(task)) => retry(shared, &mut session, name, task).await,
            (WorkflowAction::Skip, Some(_)) => skip(shared, &mut session, &held, name).await,
        },
    };
    match changed {
        Ok(changed) => {
            session.commit().await?;
            Ok(changed)
        }
        Err(failure) => {
            session.rollback().await;
            Err(failure)
        }
    }
}

async fn retry(shared: &Shared, session: &mut Session<'_>, name: &Name, task: i64) -> Result<u64, Failure> {
    let rows = session.query(&sql::REDRIVE, &[&vec![task], &vec![0_i64], &vec![false]]).await?;
    let Some(row) = rows.first() else {
        let id = TaskId::from_raw(task);
        let why =
            format!("task {id}, which blocks workflow {name}, is not dead; it can be skipped, not retried");
        return Err(Error::Conflict(why).into());
    };
    session.query(&sql::WORKFLOW_FREE, &[&vec![name.as_str()], &false]).await?;
    shared.subscribers.tell_due(row.time(1));
    Ok(1)
}

async fn skip(shared: &Shared, session: &mut Session<'_>, held: &Held, name: &Name) -> Result<u64, Failure> {
    session.query(&sql::WORKFLOW_FREE, &[&vec![name.as_str()], &false]).await?;
    advance(shared, session, held, &[]).await?;
    Ok(1)
}

async fn cancel_all(
    shared: &Shared,
    session: &mut Session<'_>,
    held: &Held,
    name: &Name,
) -> Result<u64, Failure> {
    let reason = format!("workflow {name} was cancelled");
    session.query(&sql::WORKFLOW_FREE, &[&vec![name.as_str()], &true]).await?;
    let waiting = steps(session, name.as_str()).await?.into_iter();
    let waiting: Vec<i64> = waiting.filter(|(_, state)| *state != State::Running).map(|(id, _)| id).collect();
    let mut changed = cancel(shared, session, &waiting, &reason).await?;
    // A step that is still there runs, or was claimed in between.
    let running: Vec<i64> = steps(session, name.as_str()).await?.into_iter().map(|(id, _)| id).collect();
    if !running.is_empty() {
        let asked = session.query(&sql::ASK_CANCEL, &[&running, &reason, &shared.doorbell.channel]).await?;
        changed += asked.len() as u64;
    }
    advance(shared, session, held, &[]).await?;
    Ok(changed)
}
