//! Statements of admission: workflows are passed on, jobs are given their turns.

use crate::{
    db::{Db, JOBS, Job, Mode, Row, TODO_WORKFLOW, Task, TaskState, Write, todo_job},
    model::Checked,
    state::{Kind, State, Statement, Wait},
};

impl Checked {
    /// Whether somebody alive serves a task's lane.
    pub(crate) fn is_live(&self, db: &Db, task: usize) -> bool {
        let lane = 1 << self.scenario.spec(task).lane;
        db.workers
            .iter()
            .zip(self.scenario.serves)
            .any(|(worker, serves)| worker.is_live() && serves & lane != 0)
    }

    fn steps(&self) -> impl Iterator<Item = usize> + '_ {
        self.scenario.ids().filter(|id| self.scenario.spec(*id).is_step)
    }

    fn tasks_of(&self, job: usize) -> impl Iterator<Item = usize> + '_ {
        self.scenario.ids().filter(move |id| self.scenario.spec(*id).job == Some(job))
    }

    /// `workflow_make.sql`: an insert waits for another one that is not committed.
    pub(crate) fn workflow_make(&self, state: &mut State, who: usize) -> Result<(), Wait> {
        let view = state.view(who);
        if !view.workflow.exists
            && self.steps().any(|id| view.tasks[id].is_unfinished())
            && !state.db.workflow.exists
        {
            state.lock(who, Row::Workflow, Mode::Alone)?;
            if !state.latest(who).workflow.exists {
                let row = crate::db::Workflow { exists: true, blocked_by: None };
                state.write(who, Write::Workflow(row));
            }
        }
        state.txns[who].next = Statement::WorkflowLock;
        Ok(())
    }

    /// `workflow_lock.sql`: one that is not visible is not locked, one that went while this waited is not found.
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

    /// `workflow_place.sql`: appended steps get places in the order of their numbers.
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

    /// `workflow_pass.sql`: the head gets its turn.
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
            state.write(who, Write::Workflow(crate::db::Workflow::default()));
        }
        self.after_workflow(state, who);
        Ok(())
    }

    /// `workflow_steps.sql`: one that was forgotten, with something appended since, is looked at again.
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
            self.first_of_jobs(jobs)
        } else {
            state.write(who, Write::Todo(jobs));
            Statement::Commit
        };
        state.txns[who].next = next;
    }

    /// How a transaction that decides about jobs begins with them.
    pub(crate) fn first_of_jobs(&self, jobs: u8) -> Statement {
        match jobs {
            0 => Statement::Commit,
            _ if self.protocol.makes_jobs_first => Statement::JobMake,
            _ => Statement::JobLock,
        }
    }

    /// `job_make.sql`: an insert waits for another one that is not committed.
    pub(crate) fn job_make(&self, state: &mut State, who: usize) -> Result<(), Wait> {
        let view = state.view(who);
        let missing = |job: &usize| state.txns[who].jobs & todo_job(*job) != 0 && !view.jobs[*job].exists;
        let missing: Vec<usize> = (0..JOBS).filter(missing).collect();
        for job in &missing {
            if !state.db.jobs[*job].exists {
                state.lock(who, Row::Job(*job), Mode::Alone)?;
            }
        }
        for job in missing {
            if !state.latest(who).jobs[job].exists {
                let row = Job { exists: true, limit: self.scenario.default_limit };
                state.write(who, Write::Job(job, row));
            }
        }
        state.txns[who].next = Statement::JobLock;
        Ok(())
    }

    /// `job_lock.sql`: what is visible, in order. What is missing is made and all are locked once more.
    pub(crate) fn job_lock(&self, state: &mut State, who: usize) -> Result<(), Wait> {
        let view = state.view(who);
        let jobs = state.txns[who].jobs;
        for job in (0..JOBS).filter(|job| jobs & todo_job(*job) != 0) {
            if view.jobs[job].exists {
                state.lock(who, Row::Job(job), Mode::Alone)?;
            }
        }
        let is_missing = (0..JOBS).any(|job| jobs & todo_job(job) != 0 && !view.jobs[job].exists);
        state.txns[who].next = if is_missing { Statement::JobMake } else { Statement::JobCount };
        if state.txns[who].kind == Kind::SetLimit {
            self.set_limit(state, who);
        }
        if !is_missing && !self.protocol.counts_after_lock {
            self.decide(state, who, &view);
        }
        Ok(())
    }

    /// `job_set.sql`, on a job that is held.
    fn set_limit(&self, state: &mut State, who: usize) {
        if let Some(crate::protocol::Operation::SetLimit(job, limit)) = self.scenario.operation {
            let row = state.latest(who).jobs[job];
            state.write(who, Write::Job(job, Job { limit, ..row }));
        }
    }

    /// `job_count.sql`.
    pub(crate) fn job_count(&self, state: &mut State, who: usize) -> Result<(), Wait> {
        let view = state.view(who);
        self.decide(state, who, &view);
        Ok(())
    }

    /// Decides as `windlass_core::gate::turn` does, from what was counted.
    fn decide(&self, state: &mut State, who: usize, view: &Db) {
        let latest = state.latest(who);
        let mut plan = [0_i8; JOBS];
        for job in (0..JOBS).filter(|job| state.txns[who].jobs & todo_job(*job) != 0) {
            let count =
                |wanted| self.tasks_of(job).filter(|id| view.tasks[*id].state == wanted).count() as i8;
            let (ready, running) = (count(TaskState::Ready), count(TaskState::Running));
            let room = latest.jobs[job].limit as i8 - ready - running;
            plan[job] = room.max(-ready);
        }
        let txn = &mut state.txns[who];
        txn.plan = plan;
        txn.jobs = 0;
        txn.next = match () {
            () if plan.iter().any(|n| *n < 0) => Statement::JobDemote,
            () if plan.iter().any(|n| *n > 0) => Statement::JobPromote,
            () => Statement::Commit,
        };
    }

    /// `job_demote.sql`: takes ready tasks back, in the order of their ids; then it is counted again.
    pub(crate) fn job_demote(&self, state: &mut State, who: usize) -> Result<(), Wait> {
        let view = state.view(who);
        let plan = state.txns[who].plan;
        let mut picked = Vec::new();
        for job in (0..JOBS).filter(|job| plan[*job] < 0) {
            let ready = self.tasks_of(job).filter(|id| view.tasks[*id].state == TaskState::Ready);
            let mut ready: Vec<usize> = ready.collect();
            ready.sort_by_key(|id| (self.scenario.spec(*id).priority, std::cmp::Reverse(*id)));
            picked.extend(ready.into_iter().take(plan[job].unsigned_abs().into()));
        }
        picked.sort_unstable();
        for id in &picked {
            if self.protocol.demotion_waits {
                state.lock(who, Row::Task(*id), Mode::Alone)?;
            }
        }
        for id in picked {
            if !state.locks.take(Row::Task(id), who, Mode::Alone) {
                continue;
            }
            let row = state.latest(who).tasks[id];
            if self.may_update(row, TaskState::Ready) {
                state.write(who, Write::Task(id, Task { state: TaskState::Held, ..row }));
            }
        }
        let txn = &mut state.txns[who];
        if self.protocol.demotion_waits {
            // Some may have been claimed meanwhile. (What was skipped would only be skipped again.)
            txn.jobs |= (0..JOBS).filter(|job| plan[*job] < 0).map(todo_job).sum::<u8>();
        }
        let promotes = plan.iter().any(|n| *n > 0);
        txn.next = if promotes { Statement::JobPromote } else { again(txn.jobs) };
        Ok(())
    }

    /// `job_promote.sql`: lets the best held tasks through; those of lanes that nobody serves are parked.
    pub(crate) fn job_promote(&self, state: &mut State, who: usize) -> Result<(), Wait> {
        let view = state.view(who);
        let plan = state.txns[who].plan;
        let mut picked = Vec::new();
        for job in (0..JOBS).filter(|job| plan[*job] > 0) {
            let is_held = |id: &usize| view.tasks[*id].state == TaskState::Held && !view.tasks[*id].parked;
            let mut held: Vec<usize> = self.tasks_of(job).filter(is_held).collect();
            held.sort_by_key(|id| (std::cmp::Reverse(self.scenario.spec(*id).priority), *id));
            picked.extend(held.into_iter().take(plan[job].unsigned_abs().into()));
        }
        if self.protocol.promotes_by_id {
            picked.sort_unstable();
        }
        for id in &picked {
            state.lock(who, Row::Task(*id), Mode::Alone)?;
        }
        let (latest, mut parked) = (state.latest(who), 0);
        for id in picked {
            let row = latest.tasks[id];
            if !self.may_update(row, TaskState::Held) {
                continue;
            }
            let is_live = self.is_live(&view, id);
            let entry = if is_live { TaskState::Ready } else { TaskState::Held };
            state.write(who, Write::Task(id, Task { state: entry, parked: !is_live, ..row }));
            state.txns[who].touched_lanes = true;
            parked |= if is_live { 0 } else { self.scenario.spec(id).job.map_or(0, todo_job) };
        }
        let txn = &mut state.txns[who];
        // Nobody serves that lane; the next one may have the place.
        txn.jobs |= parked;
        txn.next = again(txn.jobs);
        Ok(())
    }

    /// Whether an update finds the row as it looked for it. Without the guard it finds it by id alone.
    pub(crate) fn may_update(&self, row: Task, wanted: TaskState) -> bool {
        row.state == wanted || (!self.protocol.guards_updates && row.state != TaskState::Gone)
    }
}

/// What follows a look: another one at the jobs that are still open.
fn again(open: u8) -> Statement {
    if open == 0 { Statement::Commit } else { Statement::JobCount }
}
