//! Workflows: one step at a time, in the order of append.

use windlass_core::{
    Error, Event, Name, OnFailure, Result, State, TaskId, TaskRecord, Timestamp, WorkflowAction,
    WorkflowRecord,
    gate::{self, COUNT_MAX, GateView},
    store::{PAGE_MAX, Redrive},
};

use crate::{
    fault::Fault,
    model::{Model, Now, Task},
};

/// Most tasks that are named as users of a job's room.
const OCCUPANTS_MAX: usize = 5;

/// A workflow.
#[derive(Debug, Clone)]
pub(in crate::model) struct Workflow {
    pub on_failure: OnFailure,
    pub created_at: Timestamp,
    pub blocked_by: Option<TaskId>,
    /// A head that ended without success, until the workflow takes its turn.
    pub failed: Option<TaskId>,
    /// Steps up to this one block and cancel nothing when they end: an operator cancelled the workflow.
    pub forgiven_up_to: u64,
}

impl Model {
    /// Puts a task at the end of its workflow, and makes the workflow if it does not exist.
    pub(in crate::model) fn append(&mut self, now: Now, id: TaskId) {
        self.last_step += 1;
        let Some(task) = self.tasks.get_mut(&id) else { return };
        task.step = self.last_step;
        let Some(name) = task.record.workflow.clone() else { return };
        let on_failure = task.on_failure.unwrap_or_default();
        self.workflows.entry(name.clone()).or_insert(Workflow {
            on_failure,
            created_at: now.wall,
            blocked_by: None,
            failed: None,
            forgiven_up_to: 0,
        });
        self.touched.workflows.insert(name);
    }

    /// Remembers the failure of a step that had its turn. A step that still waited is taken out of the order.
    pub(in crate::model) fn note_end_of_step(&mut self, id: TaskId, before: State) {
        let Some(task) = self.tasks.get(&id) else { return };
        let Some(name) = &task.record.workflow else { return };
        let failed = before != State::Waiting && task.record.state != State::Done;
        if let Some(workflow) = self.workflows.get_mut(name)
            && failed
            && task.step > workflow.forgiven_up_to
        {
            workflow.failed = Some(id);
        }
    }

    /// Lets the head of a workflow pass, and applies the policy if a head failed.
    pub(in crate::model) fn pass_on(&mut self, now: Now, name: &Name) {
        let Some(workflow) = self.workflows.get_mut(name) else { return };
        if let Some(failed) = workflow.failed.take() {
            match workflow.on_failure {
                OnFailure::Block => workflow.blocked_by = Some(failed),
                OnFailure::Skip => {}
                OnFailure::Cancel => {
                    let reason = format!("an earlier step failed: {failed}");
                    for id in self.unfinished(name) {
                        self.end(id, Event::Cancel, Some(reason.clone()), now);
                    }
                    self.workflows.remove(name);
                    return;
                }
            }
        }
        if self.is_blocked(name) && !self.has(Fault::BlockedWorkflowPasses) {
            return;
        }
        let Some(head) = self.next_step(name) else {
            if !self.is_blocked(name) && self.unfinished(name).is_empty() {
                self.workflows.remove(name);
            }
            return;
        };
        let Some(task) = self.tasks.get(&head).filter(|task| task.record.state == State::Waiting) else {
            return;
        };
        let job = task.record.job.clone();
        match gate::entry(job.is_some(), task.record.due_at, now.wall) {
            State::Scheduled => self.shift(head, Event::Postpone),
            State::Held => {
                self.shift(head, Event::Hold);
                self.touched.jobs.extend(job);
            }
            _ => self.shift(head, Event::Advance),
        }
    }

    /// The step whose turn it is: the first unfinished one, unless a defect chooses another.
    fn next_step(&self, name: &Name) -> Option<TaskId> {
        let mut steps = self.unfinished(name);
        if self.has(Fault::PassesBeforeSuccess) {
            steps.retain(|id| self.tasks.get(id).is_some_and(|task| task.record.lease == 0));
        }
        if self.has(Fault::OrderByPriority) {
            steps.sort_by_key(|id| std::cmp::Reverse(self.tasks.get(id).map(|task| task.record.priority)));
        }
        steps.first().copied()
    }

    fn is_blocked(&self, name: &Name) -> bool {
        self.workflows.get(name).is_some_and(|workflow| workflow.blocked_by.is_some())
    }

    /// Unfinished steps in the order of append.
    pub(in crate::model) fn unfinished(&self, name: &Name) -> Vec<TaskId> {
        let step =
            |task: &&Task| task.record.workflow.as_ref() == Some(name) && !task.record.state.is_ended();
        let mut steps: Vec<_> =
            self.tasks.values().filter(step).map(|task| (task.step, task.record.id)).collect();
        steps.sort_unstable();
        steps.into_iter().map(|(_, id)| id).collect()
    }

    /// Retries or skips the step that blocks a workflow, or cancels its unfinished steps; answers how many
    /// tasks that changed.
    pub fn change_workflow(&mut self, now: Now, name: &Name, action: WorkflowAction) -> Result<u64> {
        let workflow = self.workflows.get(name).ok_or_else(|| Error::NotFound(format!("workflow {name}")))?;
        let blocked_by = workflow.blocked_by;
        let culprit = || blocked_by.ok_or_else(|| Error::Conflict(format!("workflow {name} is not blocked")));
        let changed = match action {
            WorkflowAction::Retry => {
                self.redrive_one(now, &Redrive { id: culprit()?, delay: std::time::Duration::ZERO })?;
                1
            }
            WorkflowAction::Skip => {
                culprit()?;
                self.unblock(name);
                self.unfinished(name).len().min(1) as u64
            }
            WorkflowAction::Cancel => self.cancel_workflow(now, name),
        };
        self.touched.workflows.insert(name.clone());
        self.give_turns(now);
        Ok(changed)
    }

    pub(in crate::model) fn unblock(&mut self, name: &Name) {
        if let Some(workflow) = self.workflows.get_mut(name) {
            workflow.blocked_by = None;
        }
    }

    fn cancel_workflow(&mut self, now: Now, name: &Name) -> u64 {
        self.unblock(name);
        let last_step = self.last_step;
        if let Some(workflow) = self.workflows.get_mut(name) {
            workflow.forgiven_up_to = last_step;
        }
        let reason = format!("workflow {name} was cancelled");
        let steps = self.unfinished(name);
        for id in &steps {
            let runs = self.tasks.get(id).is_some_and(|task| task.record.state == State::Running);
            if runs {
                self.edit(*id, |task| {
                    task.cancel_requested.get_or_insert_with(|| reason.clone());
                });
            } else {
                self.end(*id, Event::Cancel, Some(reason.clone()), now);
            }
        }
        steps.len() as u64
    }

    /// One workflow.
    pub fn workflow(&self, name: &Name) -> Option<WorkflowRecord> {
        let workflow = self.workflows.get(name)?;
        let steps = self.unfinished(name);
        let head = steps.first().copied();
        Some(WorkflowRecord {
            name: name.clone(),
            on_failure: workflow.on_failure,
            created_at: workflow.created_at,
            head,
            head_state: head.and_then(|head| self.tasks.get(&head)).map(|task| task.record.state),
            blocked_by: workflow.blocked_by,
            steps: (steps.len() as u64).min(COUNT_MAX),
        })
    }

    /// Workflows by name.
    pub fn workflows(&self, blocked: bool, after: Option<&Name>, limit: u32) -> Vec<WorkflowRecord> {
        let later =
            |name: &&Name| after.is_none_or(|after| *name > after) && (!blocked || self.is_blocked(name));
        let names = self.workflows.keys().filter(later).take(limit.clamp(1, PAGE_MAX) as usize);
        names.filter_map(|name| self.workflow(name)).collect()
    }

    /// The job and the workflow of a task with their figures.
    pub fn gate_view(&self, task: &TaskRecord) -> GateView {
        let has_room = |other: &&Task| {
            other.record.job.is_some()
                && other.record.job == task.job
                && matches!(other.record.state, State::Ready | State::Running)
        };
        GateView {
            job: task.job.as_ref().and_then(|job| self.job(job)),
            occupants: self
                .tasks
                .values()
                .filter(has_room)
                .map(|task| task.record.id)
                .take(OCCUPANTS_MAX)
                .collect(),
            workflow: task.workflow.as_ref().and_then(|workflow| self.workflow(workflow)),
        }
    }
}
