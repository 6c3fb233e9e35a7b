//! The audit: finds tasks that no event will ever move, and tasks in a state that a rule forbids.

use windlass_core::{JobState, Name, State, TaskId, TaskRecord, store::Finding};

use crate::model::{
    Model,
    gates::{job::Job, workflow::Workflow},
};

impl Model {
    /// Tasks, jobs and workflows that break a promise.
    pub fn audit(&self) -> Vec<Finding> {
        let tasks = self.tasks.values().filter_map(|task| self.look_at(&task.record));
        let jobs = self.jobs.iter().filter_map(|(name, job)| self.look_at_job(name, job));
        let workflows =
            self.workflows.iter().filter_map(|(name, workflow)| self.look_at_workflow(name, workflow));
        tasks.chain(jobs).chain(workflows).collect()
    }

    fn look_at(&self, task: &TaskRecord) -> Option<Finding> {
        let finding = |promise: &str, detail: &str| Some(finding(Some(task.id), promise, detail));
        let holder = || task.worker.and_then(|worker| self.workers.get(&worker));
        match task.state {
            State::Running if holder().is_none_or(|worker| worker.gone.is_some()) => {
                finding("SLOT-BALANCED", "running under a worker that is gone")
            }
            State::Running if task.attempt > task.max_attempts => {
                finding("ATTEMPT-BOUND", "runs more often than granted")
            }
            State::Scheduled if task.due_at.is_none() => finding("NO-STRANDED", "scheduled for no time"),
            State::Ready if self.lane(task.lane.id).is_none() => {
                finding("NO-STRANDED", "ready in a lane that does not exist")
            }
            State::Held if self.is_held_for_nothing(task) => {
                finding("NO-STRANDED", "stranded: held though its job has room")
            }
            State::Waiting if self.waits_for_nothing(task) => {
                finding("NO-STRANDED", "stranded: waits for no step before it")
            }
            State::Ready | State::Running if self.is_out_of_order(task) => {
                finding("WF-ORDER", "has passed before its turn")
            }
            state if state.is_ended() && task.ended_at.is_none() => {
                finding("ONE-TERMINAL", "ended at no time")
            }
            _ => None,
        }
    }

    fn is_held_for_nothing(&self, task: &TaskRecord) -> bool {
        let Some(job) = task.job.as_ref().and_then(|name| self.job(name)) else { return true };
        let limit = job.concurrency.unwrap_or_else(|| self.window());
        let is_aside = self.tasks.get(&task.id).is_some_and(|task| task.aside);
        !is_aside
            && job.state == JobState::Active
            && job.delay.is_none()
            && self.is_live(&task.lane)
            && job.ready + job.running < u64::from(limit)
    }

    fn waits_for_nothing(&self, task: &TaskRecord) -> bool {
        let Some(name) = &task.workflow else { return true };
        self.workflows.get(name).is_none_or(|workflow| workflow.blocked_by.is_none())
            && self.unfinished(name).first() == Some(&task.id)
    }

    fn is_out_of_order(&self, task: &TaskRecord) -> bool {
        let Some(name) = &task.workflow else { return false };
        self.workflows.get(name).is_none_or(|workflow| workflow.blocked_by.is_some())
            || self.unfinished(name).first() != Some(&task.id)
    }

    fn look_at_job(&self, name: &Name, job: &Job) -> Option<Finding> {
        if job.over_limit || !self.is_over_limit(name) {
            return None;
        }
        let detail = format!("over-admitted: job {name} has more tasks ready and running than its limit");
        Some(finding(None, "LIMIT", &detail))
    }

    fn look_at_workflow(&self, name: &Name, workflow: &Workflow) -> Option<Finding> {
        let culprit = workflow.blocked_by.filter(|id| !self.tasks.contains_key(id))?;
        let detail = format!("workflow {name} is blocked by {culprit}, which is not there");
        Some(finding(None, "NO-STRANDED", &detail))
    }
}

fn finding(task: Option<TaskId>, promise: &str, detail: &str) -> Finding {
    Finding { task, promise: promise.to_owned(), detail: detail.to_owned() }
}
