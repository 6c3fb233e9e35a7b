//! Calls of operators on jobs and workflows.

use async_trait::async_trait;
use windlass_core::{
    Error, Gates, JobChange, JobRecord, JobState, Name, Result, TaskId, TaskRecord, WorkflowAction,
    WorkflowRecord, gate::GateView, store::PAGE_MAX,
};

use crate::{
    connection::{
        call::{Class, Sync},
        tx::{Step, Tx},
    },
    gates::{
        admit::{self, Budget},
        job::{self, Job},
        turns,
        workflow::{self, Workflow},
    },
    memory::Room,
    operate, sql,
    store::SqliteStore,
};

/// Most tasks with a job's room that a view names.
const OCCUPANTS_MAX: usize = 5;
/// Steps that one request of a cancellation ends, so that other writes run between two requests.
const STEPS_PER_REQUEST: usize = 1_000;

#[async_trait]
impl Gates for SqliteStore {
    async fn set_job(&self, name: &Name, change: &JobChange) -> Result<JobRecord> {
        let (job, change) = (name.clone(), change.clone());
        self.write(Class::Client, Sync::Durable, move |tx| set_job(tx, &job, &change)).await?;
        self.finish(name).await?;
        self.job(name).await?.ok_or_else(|| not_found("job", name))
    }

    async fn jobs(&self, after: Option<&Name>, limit: u32) -> Result<Vec<JobRecord>> {
        let (after, limit) = (after.cloned(), limit.clamp(1, PAGE_MAX));
        self.write(Class::Client, Sync::Read, move |tx| job::list(tx, after.as_ref(), limit)).await
    }

    async fn job(&self, name: &Name) -> Result<Option<JobRecord>> {
        let name = name.clone();
        self.write(Class::Client, Sync::Read, move |tx| job_record(tx, &name)).await
    }

    async fn remove_job(&self, name: &Name, now: bool) -> Result<u64> {
        let job = name.clone();
        let removed = self.write(Class::Client, Sync::Durable, move |tx| remove_job(tx, &job, now)).await?;
        Ok(removed + self.finish(name).await?)
    }

    async fn workflows(
        &self,
        blocked: bool,
        after: Option<&Name>,
        limit: u32,
    ) -> Result<Vec<WorkflowRecord>> {
        let (after, limit) = (after.cloned(), limit.clamp(1, PAGE_MAX));
        let work = move |tx: &mut Tx<'_>| workflow::list(tx, blocked, after.as_ref(), limit);
        self.write(Class::Client, Sync::Read, work).await
    }

    async fn workflow(&self, name: &Name) -> Result<Option<WorkflowRecord>> {
        let name = name.clone();
        self.write(Class::Client, Sync::Read, move |tx| workflow_record(tx, &name)).await
    }

    async fn change_workflow(&self, name: &Name, action: WorkflowAction) -> Result<u64> {
        let workflow = name.clone();
        match action {
            WorkflowAction::Retry => {
                self.write(Class::Client, Sync::Durable, move |tx| retry_workflow(tx, &workflow)).await
            }
            WorkflowAction::Skip => {
                self.write(Class::Client, Sync::Durable, move |tx| skip_step(tx, &workflow)).await
            }
            WorkflowAction::Cancel => self.cancel_workflow(&workflow).await,
        }
    }

    async fn view(&self, task: &TaskRecord) -> Result<GateView> {
        let (job, workflow) = (task.job.clone(), task.workflow.clone());
        let work = move |tx: &mut Tx<'_>| view(tx, job.as_ref(), workflow.as_ref());
        self.write(Class::Client, Sync::Read, work).await
    }
}

impl SqliteStore {
    /// Runs a job's turn to its end, in requests between which others write. Returns how many tasks were
    /// cancelled because the job is being removed.
    async fn finish(&self, name: &Name) -> Result<u64> {
        let mut removed = 0;
        loop {
            let job = name.clone();
            let is_pending =
                move |tx: &mut Tx<'_>| -> Step<bool> { Ok(tx.memory.rooms.pending_jobs().contains(&job)) };
            if !self.write(Class::Client, Sync::Read, is_pending).await? {
                return Ok(removed);
            }
            let job = name.clone();
            let go_on = move |tx: &mut Tx<'_>| -> Step<u64> {
                tx.touched.job(&job);
                admit::give_turns(tx)?;
                Ok(tx.touched.removed)
            };
            removed += self.write(Class::Bulk, Sync::Durable, go_on).await?;
        }
    }

    /// Cancels the steps that exist now, the last first, so that the first step stays the head until the end.
    async fn cancel_workflow(&self, name: &Name) -> Result<u64> {
        let workflow = name.clone();
        let last_step = move |tx: &mut Tx<'_>| -> Step<i64> {
            workflow::find(tx, &workflow)?.ok_or_else(|| not_found("workflow", &workflow))?;
            Ok(tx.memory.last_step)
        };
        let up_to = self.write(Class::Client, Sync::Read, last_step).await?;
        let (mut changed, mut class) = (0, Class::Client);
        loop {
            let workflow = name.clone();
            let work = move |tx: &mut Tx<'_>| cancel_steps(tx, &workflow, up_to);
            let (steps, is_over) = self.write(class, Sync::Durable, work).await?;
            changed += steps;
            if is_over {
                return Ok(changed);
            }
            class = Class::Bulk;
        }
    }
}

fn not_found(what: &str, name: &Name) -> Error {
    Error::NotFound(format!("{what} {name}"))
}

fn job_record(tx: &Tx<'_>, name: &Name) -> Step<Option<JobRecord>> {
    Ok(job::find(tx, name)?.map(|job| job.record(tx)))
}

fn workflow_record(tx: &Tx<'_>, name: &Name) -> Step<Option<WorkflowRecord>> {
    workflow::find(tx, name)?.map(|workflow| workflow.record(tx)).transpose()
}

/// Creates or changes a job, and gives it its turn.
fn set_job(tx: &mut Tx<'_>, name: &Name, change: &JobChange) -> Step<()> {
    if change.state == Some(JobState::Removing) {
        return Err(Error::invalid("a job is removed by a call of its own").into());
    }
    let found = job::find(tx, name)?;
    if change.state.is_some() && found.as_ref().is_some_and(|job| job.state == JobState::Removing) {
        return Err(Error::Conflict(format!("job {name} is being removed")).into());
    }
    let mut job = found.unwrap_or_else(|| Job::new(tx, name));
    job.concurrency = change.concurrency.unwrap_or(job.concurrency);
    job.delay = change.delay.unwrap_or(job.delay);
    job.state = change.state.unwrap_or(job.state);
    // Tasks above the new limit were admitted before it fell; the job's turn takes back those that have not
    // started.
    job.over_limit = true;
    job.save(tx, job.again_at)?;
    if change.now && change.state == Some(JobState::Cancelled) {
        ask_to_end(tx, &job)?;
    }
    tx.touched.job(name);
    admit::give_turns(tx)
}

/// Cancels the waiting tasks of a job and deletes the job. If tasks of it run, it only marks the job as being
/// removed.
fn remove_job(tx: &mut Tx<'_>, name: &Name, now: bool) -> Step<u64> {
    let mut job = job::find(tx, name)?.ok_or_else(|| not_found("job", name))?;
    job.state = JobState::Removing;
    job.gone_before = Some(tx.memory.last_id);
    job.save(tx, job.again_at)?;
    if now {
        ask_to_end(tx, &job)?;
    }
    turns::cancel_unstarted(tx, &job, tx.memory.last_id, &mut Budget::new())?;
    tx.touched.job(name);
    admit::give_turns(tx)?;
    Ok(tx.touched.removed)
}

fn ask_to_end(tx: &mut Tx<'_>, job: &Job) -> Step<()> {
    let running: Vec<TaskId> = tx.memory.running_of(&job.name).map(|lease| lease.id).collect();
    for id in running {
        operate::cancel_one(tx, id, &job.reason())?;
    }
    Ok(())
}

fn blocked(tx: &Tx<'_>, name: &Name) -> Step<(Workflow, TaskId)> {
    let workflow = workflow::find(tx, name)?.ok_or_else(|| not_found("workflow", name))?;
    let by = workflow.blocked_by.ok_or_else(|| Error::Conflict(format!("workflow {name} is not blocked")))?;
    Ok((workflow, by))
}

fn retry_workflow(tx: &mut Tx<'_>, name: &Name) -> Step<u64> {
    let (_, by) = blocked(tx, name)?;
    operate::redrive_one(tx, by, tx.now)?;
    admit::give_turns(tx)?;
    Ok(1)
}

fn skip_step(tx: &mut Tx<'_>, name: &Name) -> Step<u64> {
    let (workflow, _) = blocked(tx, name)?;
    save_unblocked(tx, workflow)?;
    let next = workflow::steps(tx, name, i64::MAX, 1)?.len();
    tx.touched.workflow(name);
    admit::give_turns(tx)?;
    Ok(next as u64)
}

/// Saves a workflow as not blocked. Retention may now remove the task that blocked it, if it was cancelled.
fn save_unblocked(tx: &mut Tx<'_>, workflow: Workflow) -> Step<()> {
    if let Some(by) = workflow.blocked_by {
        let is_kept = tx.sql(sql::FIND_ENDED)?.exists([by.raw()])?;
        if is_kept {
            tx.cursor.unblocked(by);
        }
    }
    Workflow { blocked_by: None, ..workflow }.save(tx)
}

/// Cancels steps up to a step number. The first of them may run, so it is cancelled only when it is the last
/// one left.
fn cancel_steps(tx: &mut Tx<'_>, name: &Name, up_to: i64) -> Step<(u64, bool)> {
    let Some(workflow) = workflow::find(tx, name)? else { return Ok((0, true)) };
    let mut steps = workflow::steps(tx, name, up_to, STEPS_PER_REQUEST + 1)?;
    let is_over = steps.len() <= STEPS_PER_REQUEST;
    if is_over {
        save_unblocked(tx, Workflow { forgiven_step: Some(up_to), ..workflow })?;
    } else {
        steps.truncate(STEPS_PER_REQUEST);
    }
    let reason = format!("workflow {name} was cancelled");
    for id in &steps {
        operate::cancel_one(tx, *id, &reason)?;
    }
    tx.touched.workflow(name);
    admit::give_turns(tx)?;
    Ok((steps.len() as u64, is_over))
}

fn view(tx: &Tx<'_>, job: Option<&Name>, workflow: Option<&Name>) -> Step<GateView> {
    let mut view = GateView::default();
    if let Some(job) = job {
        view.job = job_record(tx, job)?;
        view.occupants = occupants(tx, job);
    }
    if let Some(workflow) = workflow {
        view.workflow = workflow_record(tx, workflow)?;
    }
    Ok(view)
}

/// A few of the tasks that use the job's room, the oldest first.
fn occupants(tx: &Tx<'_>, job: &Name) -> Vec<TaskId> {
    let mut ids: Vec<TaskId> = tx.memory.running_of(job).map(|lease| lease.id).collect();
    let ready = tx.memory.rooms.get(job).into_iter().flat_map(Room::each_ready);
    ids.extend(ready.map(|ready| ready.task.id));
    ids.sort_unstable();
    ids.truncate(OCCUPANTS_MAX);
    ids
}
