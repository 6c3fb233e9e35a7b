//! Workflows: only the first unfinished step has its turn, and no step while the workflow is blocked.

use rusqlite::{OptionalExtension, Row};
use windlass_core::{
    LaneId, Name, OnFailure, State, TaskId, Timestamp, WorkflowRecord,
    gate::{self, COUNT_MAX},
};

use crate::{
    connection::tx::{Step, Tx, disagree},
    gates::{
        admit::{Budget, Progress},
        held_line,
        job::{name, optional_name},
    },
    memory::Waiting,
    operate, sql,
};

/// A workflow as the store keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Workflow {
    pub name: Name,
    pub on_failure: OnFailure,
    pub blocked_by: Option<TaskId>,
    /// Failures of steps up to this one have no consequence.
    pub forgiven_step: Option<i64>,
    pub created_at: Timestamp,
}

impl Workflow {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            name: name(row, 0)?,
            on_failure: OnFailure::from_code(row.get(1)?).unwrap_or_default(),
            blocked_by: row.get::<_, Option<i64>>(2)?.map(TaskId::from_raw),
            forgiven_step: row.get(3)?,
            created_at: Timestamp::from_ms(row.get(4)?),
        })
    }

    /// Stores what blocks it.
    pub(crate) fn save(&self, tx: &Tx<'_>) -> Step<()> {
        let blocked_by = self.blocked_by.map(TaskId::raw);
        tx.sql(sql::PUT_WORKFLOW)?.execute((self.name.as_str(), blocked_by, self.forgiven_step))?;
        Ok(())
    }

    /// The workflow with its figures.
    pub(crate) fn record(self, tx: &Tx<'_>) -> Step<WorkflowRecord> {
        let head = head(tx, &self.name)?;
        let steps: i64 =
            tx.sql(sql::COUNT_STEPS)?.query_row((self.name.as_str(), COUNT_MAX as i64), |row| row.get(0))?;
        Ok(WorkflowRecord {
            name: self.name,
            on_failure: self.on_failure,
            created_at: self.created_at,
            head: head.as_ref().map(|head| head.id),
            head_state: head.map(|head| head.state),
            blocked_by: self.blocked_by,
            steps: steps as u64,
        })
    }
}

/// One workflow.
pub(crate) fn find(tx: &Tx<'_>, name: &Name) -> Step<Option<Workflow>> {
    Ok(tx.sql(sql::FIND_WORKFLOW)?.query_row([name.as_str()], Workflow::read).optional()?)
}

/// Workflows by name, all or only the blocked ones.
pub(crate) fn list(
    tx: &Tx<'_>,
    blocked: bool,
    after: Option<&Name>,
    limit: u32,
) -> Step<Vec<WorkflowRecord>> {
    let mut statement = tx.sql(sql::LIST_WORKFLOWS)?;
    let found = statement.query_map((after.map_or("", Name::as_str), limit, blocked), Workflow::read)?;
    let found = found.collect::<rusqlite::Result<Vec<_>>>()?;
    found.into_iter().map(|workflow| workflow.record(tx)).collect()
}

/// Creates a missing workflow; the first append decides its policy.
pub(crate) fn make(tx: &Tx<'_>, name: &Name, on_failure: Option<OnFailure>) -> Step<()> {
    let policy = on_failure.unwrap_or_default().code();
    tx.sql(sql::INSERT_WORKFLOW)?.execute((name.as_str(), policy, tx.now.as_ms()))?;
    Ok(())
}

/// The first unfinished step of a workflow.
struct Head {
    id: TaskId,
    lane: LaneId,
    state: State,
    priority: i32,
    job: Option<Name>,
    start_at: Option<Timestamp>,
    on_failure: Option<OnFailure>,
    crashes: u32,
}

fn head(tx: &Tx<'_>, name: &Name) -> Step<Option<Head>> {
    let found = tx.sql(sql::FIND_HEAD)?.query_row([name.as_str()], |row| {
        Ok(Head {
            id: TaskId::from_raw(row.get(0)?),
            lane: LaneId(row.get(1)?),
            state: State::from_code(row.get(2)?).unwrap_or(State::Dead),
            priority: row.get(3)?,
            job: optional_name(row, 4)?,
            start_at: row.get::<_, Option<i64>>(5)?.map(Timestamp::from_ms),
            on_failure: row.get::<_, Option<i64>>(6)?.and_then(OnFailure::from_code),
            crashes: row.get(7)?,
        })
    });
    Ok(found.optional()?)
}

/// Gives the first unfinished step its turn, or deletes a workflow that has none.
pub(crate) fn pass_on(tx: &mut Tx<'_>, name: &Name, budget: &mut Budget) -> Step<Progress> {
    let Some(workflow) = find(tx, name)? else { return Ok(Progress::Over) };
    match (workflow.blocked_by, workflow.on_failure) {
        (Some(failed), OnFailure::Cancel) => return cancel_rest(tx, &workflow, failed, budget),
        (Some(_), _) => return Ok(Progress::Over),
        (None, _) => {}
    }
    match head(tx, name)? {
        Some(head) if head.state == State::Waiting => advance(tx, &head)?,
        Some(_) => {}
        None => {
            tx.sql(sql::DELETE_WORKFLOW)?.execute([name.as_str()])?;
        }
    }
    Ok(Progress::Over)
}

fn advance(tx: &mut Tx<'_>, head: &Head) -> Step<()> {
    let to = gate::entry(head.job.is_some(), head.start_at, tx.now);
    let due_at = head.start_at.filter(|_| to == State::Scheduled);
    let ready_seq = (to == State::Ready).then(|| tx.memory.next_ready_seq());
    let changed =
        tx.sql(sql::PASS_ON)?.execute((to.code(), due_at.map(Timestamp::as_ms), ready_seq, head.id.raw()))?;
    if changed != 1 {
        return Err(disagree("a waiting step"));
    }
    tx.memory.count_move(head.lane, State::Waiting, to, 1);
    match (to, &head.job, due_at) {
        (State::Held, Some(job), _) => {
            let waiting = Waiting { id: head.id, priority: head.priority, crashes: head.crashes };
            held_line::enter(tx, job, head.lane, waiting)?;
            tx.touched.job(job);
        }
        (State::Scheduled, _, Some(due_at)) => tx.effects.scheduled(due_at),
        _ => {
            tx.touched.lanes_ready.insert(head.lane);
            tx.effects.ready = true;
        }
    }
    Ok(())
}

/// An earlier step failed and the policy is to cancel: cancels the steps that existed then, and ends the
/// workflow.
fn cancel_rest(tx: &mut Tx<'_>, workflow: &Workflow, failed: TaskId, budget: &mut Budget) -> Step<Progress> {
    let up_to = workflow.forgiven_step.unwrap_or(i64::MAX);
    let reason = format!("an earlier step failed: {failed}");
    let wanted = budget.cancels();
    let steps = steps(tx, &workflow.name, up_to, wanted)?;
    for id in &steps {
        operate::end_unstarted(tx, *id, &reason)?;
        budget.spend_cancel();
    }
    if steps.len() == wanted {
        return Ok(Progress::More);
    }
    tx.sql(sql::DELETE_WORKFLOW)?.execute([workflow.name.as_str()])?;
    // Steps that were appended meanwhile form a new workflow of that name.
    if let Some(head) = head(tx, &workflow.name)? {
        make(tx, &workflow.name, head.on_failure)?;
        tx.touched.workflow(&workflow.name);
    }
    Ok(Progress::Over)
}

/// Unfinished steps up to a step number, the last first.
pub(crate) fn steps(tx: &Tx<'_>, name: &Name, up_to: i64, limit: usize) -> Step<Vec<TaskId>> {
    let mut statement = tx.sql(sql::FIND_STEPS)?;
    let ids =
        statement.query_map((name.as_str(), up_to, limit as i64), |row| row.get(0).map(TaskId::from_raw))?;
    Ok(ids.collect::<rusqlite::Result<_>>()?)
}

/// Applies the policy of the workflow after its current step ended without success.
pub(crate) fn step_failed(tx: &mut Tx<'_>, name: &Name, id: TaskId, step: i64) -> Step<()> {
    tx.touched.workflow(name);
    let Some(mut workflow) = find(tx, name)? else { return Ok(()) };
    if workflow.forgiven_step.is_some_and(|forgiven| step <= forgiven) {
        return Ok(());
    }
    match workflow.on_failure {
        OnFailure::Skip => return Ok(()),
        OnFailure::Block => {}
        OnFailure::Cancel => workflow.forgiven_step = Some(tx.memory.last_step),
    }
    workflow.blocked_by = Some(id);
    workflow.save(tx)
}
