//! Jobs, workflows and schedules of the in-memory store.

use async_trait::async_trait;
use windlass_core::{
    Enqueued, Fire, Gates, Hint, JobChange, JobRecord, LeaseRef, Name, Result, ScheduleRow, Schedules, State,
    TaskRecord, WorkflowAction, WorkflowRecord,
    gate::GateView,
    schedule::DueSchedules,
    store::{Filter, PAGE_MAX},
};

use super::MemoryStore;
use crate::model::{Model, Now};

impl MemoryStore {
    /// Runs an operator's call, then wakes the callers that wait for an end, for ready tasks or for a request
    /// to end.
    fn operate<T>(&self, act: impl FnOnce(&mut Model, Now) -> Result<T>) -> Result<T> {
        let (answer, asked) = self.run(|model, now| (act(model, now), asked_to_end(model)))?;
        self.ended.notify_waiters();
        self.hint(Hint::Ready);
        for (lease, reason) in asked {
            self.hint(Hint::Cancel(lease, reason));
        }
        answer
    }
}

fn asked_to_end(model: &Model) -> Vec<(LeaseRef, String)> {
    let running = Filter { state: Some(State::Running), ..Filter::default() };
    let asked =
        |task: TaskRecord| Some((LeaseRef { id: task.id, lease: task.lease }, task.cancel_requested?));
    model.tasks(&running, None, PAGE_MAX).tasks.into_iter().filter_map(asked).collect()
}

#[async_trait]
impl Gates for MemoryStore {
    async fn set_job(&self, name: &Name, change: &JobChange) -> Result<JobRecord> {
        self.operate(|model, now| model.set_job(now, name, change))
    }

    async fn jobs(&self, after: Option<&Name>, limit: u32) -> Result<Vec<JobRecord>> {
        self.run(|model, _| model.jobs(after, limit))
    }

    async fn job(&self, name: &Name) -> Result<Option<JobRecord>> {
        self.run(|model, _| model.job(name))
    }

    async fn remove_job(&self, name: &Name, now: bool) -> Result<u64> {
        self.operate(|model, clock| model.remove_job(clock, name, now))
    }

    async fn workflows(
        &self,
        blocked: bool,
        after: Option<&Name>,
        limit: u32,
    ) -> Result<Vec<WorkflowRecord>> {
        self.run(|model, _| model.workflows(blocked, after, limit))
    }

    async fn workflow(&self, name: &Name) -> Result<Option<WorkflowRecord>> {
        self.run(|model, _| model.workflow(name))
    }

    async fn change_workflow(&self, name: &Name, action: WorkflowAction) -> Result<u64> {
        self.operate(|model, now| model.change_workflow(now, name, action))
    }

    async fn view(&self, task: &TaskRecord) -> Result<GateView> {
        self.run(|model, _| model.gate_view(task))
    }
}

#[async_trait]
impl Schedules for MemoryStore {
    async fn put(&self, row: &ScheduleRow) -> Result<()> {
        self.run(|model, _| model.put_schedule(row))
    }

    async fn list(&self) -> Result<Vec<ScheduleRow>> {
        self.run(|model, _| model.schedules())
    }

    async fn remove(&self, name: &Name) -> Result<bool> {
        self.run(|model, _| model.remove_schedule(name))
    }

    async fn due(&self, limit: u32) -> Result<DueSchedules> {
        self.run(|model, now| model.due_schedules(now, limit))
    }

    async fn fire(&self, fire: Fire) -> Result<Option<Enqueued>> {
        let answer = self.run(|model, now| model.fire(now, &fire))??;
        self.hint(Hint::Lanes);
        self.hint(Hint::Ready);
        Ok(answer)
    }
}
