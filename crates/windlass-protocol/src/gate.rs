//! Statements of admission that give jobs their turns.

use crate::{
    db::{Db, JOBS, Job, Mode, Row, Task, TaskState, Write, todo_job},
    model::Checked,
    protocol::Operation,
    state::{Kind, State, Statement, Wait},
};

impl Checked {
    /// Whether a live worker serves a task's lane.
    pub(crate) fn is_live(&self, db: &Db, task: usize) -> bool {
        let lane = 1 << self.scenario.spec(task).lane;
        db.workers
            .iter()
            .zip(self.scenario.serves)
            .any(|(worker, serves)| worker.is_live() && serves & lane != 0)
    }

    fn tasks_of(&self, job: usize) -> impl Iterator<Item = usize> + '_ {
        self.scenario.ids().filter(move |id| self.scenario.spec(*id).job == Some(job))
    }

    /// The first statement about jobs in a transaction that decides about them.
    pub(crate) fn first_of_jobs(&self, state: &State, who: usize) -> Statement {
        if self.jobs_of(state, who).is_empty() { Statement::Commit } else { Statement::JobLock }
    }

    /// Jobs to count, and jobs whose places to pass on.
    fn jobs_of(&self, state: &State, who: usize) -> Vec<usize> {
        let txn = &state.txns[who];
        (0..JOBS).filter(|job| txn.jobs & todo_job(*job) != 0 || txn.freed[*job] > 0).collect()
    }

    /// `job_make.sql`: an insert waits for another transaction's insert that is not committed.
    pub(crate) fn job_make(&self, state: &mut State, who: usize) -> Result<(), Wait> {
        let view = state.view(who);
        let mut missing = self.jobs_of(state, who);
        missing.retain(|job| !view.jobs[*job].exists);
        for job in &missing {
            if !state.db.jobs[*job].exists {
                state.lock(who, Row::Job(*job), Mode::Alone)?;
            }
        }
        for job in missing {
            if !state.latest(who).jobs[job].exists {
                let (limit, recount) = (self.scenario.default_limit, self.protocol.marks_new_jobs);
                let row = Job { exists: true, limit, recount, ..Job::default() };
                state.write(who, Write::Job(job, row));
            }
        }
        let is_alone = state.txns[who].kind == Kind::MakeJobs;
        state.txns[who].next = if is_alone { Statement::Commit } else { Statement::JobLock };
        Ok(())
    }

    /// `job_lock.sql`: locks the visible rows in order. A row that was deleted while this waited is not
    /// found.
    pub(crate) fn job_lock(&self, state: &mut State, who: usize) -> Result<(), Wait> {
        let view = state.view(who);
        let jobs = self.jobs_of(state, who);
        for job in &jobs {
            if view.jobs[*job].exists {
                state.lock(who, Row::Job(*job), Mode::Alone)?;
            }
        }
        let latest = state.latest(who);
        if jobs.iter().any(|job| !view.jobs[*job].exists || !latest.jobs[*job].exists) {
            self.make_missing(state, who, &jobs);
            return Ok(());
        }
        match state.txns[who].kind {
            Kind::SetLimit => self.set_limit(state, who),
            Kind::Remove => {
                self.remove(state, who);
                return Ok(());
            }
            _ => {}
        }
        self.pass_on(state, who);
        if state.txns[who].passes == 0 && !self.protocol.counts_after_lock {
            self.decide(state, who, &view);
        }
        Ok(())
    }

    /// Makes missing jobs in a transaction that holds no other locks; then the admission starts again.
    fn make_missing(&self, state: &mut State, who: usize, jobs: &[usize]) {
        let jobs = jobs.iter().map(|job| todo_job(*job)).sum();
        if self.protocol.makes_jobs_apart && state.txns[who].kind == Kind::Admit {
            state.roll_back(who);
            self.begin(state, who, Kind::MakeJobs, Statement::JobMake);
            state.txns[who].jobs = jobs;
        } else {
            state.txns[who].next = Statement::JobMake;
        }
    }

    /// `job_set.sql`, on a locked job.
    fn set_limit(&self, state: &mut State, who: usize) {
        if let Some(Operation::SetLimit(job, limit)) = self.scenario.operation {
            let row = state.latest(who).jobs[job];
            state.write(who, Write::Job(job, Job { limit, ..row }));
        }
    }

    /// `job_gone.sql`, on a locked job without ready tasks; marks the job for a look.
    fn remove(&self, state: &mut State, who: usize) {
        if let Some(Operation::Remove(job)) = self.scenario.operation {
            let row = state.latest(who).jobs[job];
            state.write(who, Write::Job(job, Job { is_removing: true, ..row }));
            state.write(who, Write::Todo(todo_job(job)));
        }
        state.txns[who].next = Statement::Commit;
    }

    /// Passes freed places on without counting if there is nothing else to decide about the job; counts the
    /// other jobs.
    fn pass_on(&self, state: &mut State, who: usize) {
        let latest = state.latest(who);
        let txn = &mut state.txns[who];
        for job in (0..JOBS).filter(|job| txn.freed[*job] > 0) {
            let (row, bit) = (latest.jobs[job], todo_job(job));
            let is_marked = row.recount && self.protocol.counts_if_marked;
            if txn.jobs & bit == 0 && !row.is_removing && !is_marked {
                txn.passes |= bit;
                txn.plan[job] = i8::try_from(txn.freed[job]).unwrap_or(i8::MAX);
            } else {
                txn.jobs |= bit;
            }
        }
        txn.next = if txn.passes == 0 { Statement::JobCount } else { Statement::JobPromote };
    }

    /// `job_count.sql`.
    pub(crate) fn job_count(&self, state: &mut State, who: usize) -> Result<(), Wait> {
        let view = state.view(who);
        self.decide(state, who, &view);
        Ok(())
    }

    /// Decides like `windlass_core::gate::turn`, from the counts.
    fn decide(&self, state: &mut State, who: usize, view: &Db) {
        let latest = state.latest(who);
        let mut plan = [0_i8; JOBS];
        let open = state.txns[who].jobs;
        for job in (0..JOBS).filter(|job| open & todo_job(*job) != 0) {
            let count =
                |wanted| self.tasks_of(job).filter(|id| view.tasks[*id].state == wanted).count() as i8;
            let (ready, running) = (count(TaskState::Ready), count(TaskState::Running));
            // The rows that this transaction deleted are not in its view.
            let freed = if self.protocol.counts_freed { view.freed[job] as i8 } else { 0 };
            state.txns[who].taken[job] = Some(((ready + running + freed) as u8, freed as u8));
            let room = latest.jobs[job].limit as i8 - ready - running - freed;
            plan[job] = if latest.jobs[job].is_removing { 0 } else { room.max(-ready) };
            if latest.jobs[job].is_removing {
                self.forget(state, who, job, view);
            }
        }
        let txn = &mut state.txns[who];
        txn.plan = plan;
        txn.jobs = 0;
        match () {
            () if plan.iter().any(|n| *n < 0) => txn.next = Statement::JobDemote,
            () if plan.iter().any(|n| *n > 0) => txn.next = Statement::JobPromote,
            () => self.look_again(state, who),
        }
    }

    /// `job_forget.sql`, once none of the old tasks is left. Tasks that came since belong to a new job, which
    /// is marked for a look.
    fn forget(&self, state: &mut State, who: usize, job: usize, view: &Db) {
        let is_there = |id: &usize| view.tasks[*id].is_unfinished();
        if self.tasks_of(job).filter(is_there).any(|id| !self.scenario.spec(id).is_late) {
            return;
        }
        state.txns[who].taken[job] = None;
        state.write(who, Write::Job(job, Job::default()));
        if self.tasks_of(job).any(|id| is_there(&id)) {
            state.write(who, Write::Todo(todo_job(job)));
        }
    }

    /// After a decision: counts the jobs that are still open, or `job_note.sql` and the end.
    fn look_again(&self, state: &mut State, who: usize) {
        if state.txns[who].jobs != 0 {
            state.txns[who].next = Statement::JobCount;
            return;
        }
        let latest = state.latest(who);
        for job in 0..JOBS {
            let (Some((taken, freed)), row) = (state.txns[who].taken[job], latest.jobs[job]) else {
                continue;
            };
            let marked_for = if self.protocol.marks_for_freed { taken } else { taken - freed };
            let (recount, at_limit) = (marked_for > row.limit, !row.is_removing && taken >= row.limit);
            if (recount, at_limit) != (row.recount, row.at_limit) {
                state.write(who, Write::Job(job, Job { recount, at_limit, ..row }));
            }
        }
        state.txns[who].next = Statement::Commit;
    }

    /// `job_demote.sql`: takes ready tasks back, in the order of their ids; then the jobs are counted again.
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
            // Some tasks may have been claimed since the count. (Without waiting, a locked row would be
            // skipped again.)
            txn.jobs |= (0..JOBS).filter(|job| plan[*job] < 0).map(todo_job).sum::<u8>();
        }
        if plan.iter().any(|n| *n > 0) {
            txn.next = Statement::JobPromote;
        } else {
            self.look_again(state, who);
        }
        Ok(())
    }

    /// `job_promote.sql`: makes the first held tasks ready, and parks those in lanes that no live worker
    /// serves.
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
        let (latest, mut parked, mut promoted) = (state.latest(who), 0, [0; JOBS]);
        for id in picked {
            let row = latest.tasks[id];
            if !self.may_update(row, TaskState::Held) {
                continue;
            }
            let is_live = self.is_live(&view, id);
            let entry = if is_live { TaskState::Ready } else { TaskState::Held };
            state.write(who, Write::Task(id, Task { state: entry, parked: !is_live, ..row }));
            match self.scenario.spec(id).job {
                Some(job) if is_live => promoted[job] += 1,
                Some(job) => parked |= todo_job(job),
                None => {}
            }
        }
        let txn = &mut state.txns[who];
        txn.has_parked |= parked != 0;
        // No live worker serves that lane: the next task may have the place.
        txn.jobs |= parked;
        for job in 0..JOBS {
            let is_passed = txn.passes & todo_job(job) != 0;
            if is_passed && promoted[job] < plan[job].unsigned_abs() && latest.jobs[job].at_limit {
                // There are fewer held tasks than places, so the job is no longer at its limit.
                txn.jobs |= todo_job(job);
            }
            if let Some((taken, _)) = &mut txn.taken[job] {
                *taken += promoted[job];
            }
        }
        txn.passes = 0;
        self.look_again(state, who);
        Ok(())
    }

    /// Whether an update applies to the row. With the guard the state must still be the wanted one; without
    /// it the id is enough.
    pub(crate) fn may_update(&self, row: Task, wanted: TaskState) -> bool {
        row.state == wanted || (!self.protocol.guards_updates && row.state != TaskState::Gone)
    }
}
