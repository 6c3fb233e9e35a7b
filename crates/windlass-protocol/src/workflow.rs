//! Statements of admission that give workflows their turns.

use crate::{
    db::{Mode, Row, TODO_WORKFLOW, Task, TaskState, Workflow, Write, todo_job},
    model::Checked,
    state::{Kind, State, Statement, Wait},
};

impl Checked {
    fn steps(&self) -> impl Iterator<Item = usize> + '_ {
        self.scenario.ids().filter(|id| self.scenario.spec(*id).is_step)
    }

    /// `workflow_make.sql`: an insert waits for another transaction's insert that is not committed.
    pub(crate) fn workflow_make(&self, state: &mut State, who: usize) -> Result<(), Wait> {
        let view = state.view(who);
        if !view.workflow.exists
            && self.steps().any(|id| view.tasks[id].is_unfinished())
            && !state.db.workflow.exists
        {
            state.lock(who, Row::Workflow, Mode::Alone)?;
            if !state.latest(who).workflow.exists {
                let row = Workflow { exists: true, blocked_by: None };
                state.write(who, Write::Workflow(row));
            }
        }
        state.txns[who].next = Statement::WorkflowLock;
        Ok(())
    }

    /// `workflow_lock.sql`: a row that is not visible is not locked; a row that was deleted while this waited
    /// is not found.
    pub(crate) fn workflow_lock(&self, state: &mut State, who: usize) -> Result<(), Wait> {
        let is_held = state.view(who).workflow.exists && {
            state.lock(who, Row::Workflow, Mode::Alone)?;
            state.latest(who).workflow.exists
        };
        state.txns[who].next = match state.txns[who].kind {
            Kind::Settle => Statement::SettleLeave,
            Kind::Admit if is_held => Statement::WorkflowPlace,
            Kind::Admit => Statement::WorkflowSteps,
            _ => Statement::EndLeases,
        };
        Ok(())
    }

    /// `workflow_place.sql`: gives appended steps positions in the order of their ids.
    pub(crate) fn workflow_place(&self, state: &mut State, who: usize) -> Result<(), Wait> {
        let view = state.view(who);
        let added = |id: &usize| view.tasks[*id].state == TaskState::Waiting && view.tasks[*id].step == 0;
        let added: Vec<usize> = self.steps().filter(added).collect();
        for id in &added {
            state.lock(who, Row::Task(*id), Mode::Alone)?;
        }
        let latest = state.latest(who);
        let mut last = self.steps().map(|id| latest.tasks[id].step).max().unwrap_or(0);
        for id in added {
            let row = latest.tasks[id];
            if row.state == TaskState::Waiting && row.step == 0 {
                last += 1;
                state.write(who, Write::Task(id, Task { step: last, ..row }));
            }
        }
        state.txns[who].next = Statement::WorkflowPass;
        Ok(())
    }

    /// `workflow_pass.sql`: lets the head pass.
    pub(crate) fn workflow_pass(&self, state: &mut State, who: usize) -> Result<(), Wait> {
        let view = state.view(who);
        let unfinished = self.steps().filter(|id| view.tasks[*id].is_unfinished());
        let head = if self.protocol.places_steps {
            unfinished.filter(|id| view.tasks[*id].step != 0).min_by_key(|id| view.tasks[*id].step)
        } else {
            unfinished.min()
        };
        let waits = |id: &usize| view.tasks[*id].state == TaskState::Waiting;
        if let Some(id) = head.filter(waits).filter(|_| view.workflow.blocked_by.is_none()) {
            state.lock(who, Row::Task(id), Mode::Alone)?;
            let row = state.latest(who).tasks[id];
            if self.may_update(row, TaskState::Waiting) {
                let job = self.scenario.spec(id).job;
                let entry = if job.is_some() { TaskState::Held } else { TaskState::Ready };
                state.write(who, Write::Task(id, Task { state: entry, ..row }));
                state.txns[who].jobs |= job.map_or(0, todo_job);
            }
        }
        state.txns[who].next = Statement::WorkflowForget;
        Ok(())
    }

    /// `workflow_forget.sql`, under the workflow's lock.
    pub(crate) fn workflow_forget(&self, state: &mut State, who: usize) -> Result<(), Wait> {
        let view = state.view(who);
        let is_over = !self.steps().any(|id| view.tasks[id].is_unfinished());
        if view.workflow.exists && view.workflow.blocked_by.is_none() && is_over {
            state.write(who, Write::Workflow(Workflow::default()));
        }
        self.after_workflow(state, who);
        Ok(())
    }

    /// `workflow_steps.sql`: a workflow that was forgotten, with a step appended since, is marked for another
    /// look.
    pub(crate) fn workflow_steps(&self, state: &mut State, who: usize) -> Result<(), Wait> {
        let view = state.view(who);
        if self.steps().any(|id| view.tasks[id].is_unfinished()) {
            state.write(who, Write::Todo(TODO_WORKFLOW));
        }
        self.after_workflow(state, who);
        Ok(())
    }

    fn after_workflow(&self, state: &mut State, who: usize) {
        let jobs = state.txns[who].jobs;
        let next = if state.txns[who].kind == Kind::Admit {
            self.first_of_jobs(state, who)
        } else {
            state.write(who, Write::Todo(jobs));
            Statement::Commit
        };
        state.txns[who].next = next;
    }
}
