//! Statements that give leases and take them back: claim, settle, unclaim, the sweep; and lanes that gain or
//! lose workers.

use crate::{
    db::{Db, Mode, Receipt, Row, Task, TaskState, Worker, Workflow, Write, todo_job},
    model::Checked,
    state::{Kind, State, Statement, Wait},
};

impl Checked {
    /// `claim.sql`: one statement. It waits for its worker's row only.
    pub(crate) fn claim(&self, state: &mut State, who: usize) -> Result<(), Wait> {
        let view = state.view(who);
        let (worker, id) = (state.txns[who].worker, state.txns[who].task);
        let row = if self.protocol.locks_worker {
            state.lock(who, Row::Worker(worker), Mode::Share)?;
            state.latest(who).workers[worker]
        } else {
            view.workers[worker]
        };
        // The statement reads the clock when it starts.
        let may_claim = row.is_live()
            && row.min_claim_no <= state.txns[who].claim_no
            && !view.has_expired[worker]
            && view.tasks[id].state == TaskState::Ready;
        if may_claim && state.locks.take(Row::Task(id), who, Mode::Alone) {
            let latest = state.latest(who).tasks[id];
            // The row is found by its ctid: a newer version has another one.
            if latest == view.tasks[id] {
                let (lease, claim_no) = (latest.lease + 1, state.txns[who].claim_no);
                let taken =
                    Task { state: TaskState::Running, lease, worker: worker as u8, claim_no, ..latest };
                state.write(who, Write::Task(id, taken));
                state.txns[who].lease = lease;
                state.txns[who].is_written = true;
            }
        }
        state.txns[who].next = Statement::Commit;
        Ok(())
    }

    /// Whether to write a batch: its worker exists, and there is no receipt for this batch or a later one.
    /// Waits for another copy of the batch.
    fn is_new_batch(&self, state: &mut State, who: usize, view: &Db) -> Result<bool, Wait> {
        let worker = state.txns[who].worker;
        if view.workers[worker].has_ended {
            return Ok(false);
        }
        state.lock(who, Row::Receipt(worker), Mode::Alone)?;
        Ok(state.latest(who).receipts[worker] == Receipt::None && !state.txns[who].is_stale)
    }

    /// Answers from the receipt. For a worker that is gone, every lease is lost.
    fn replay(&self, state: &mut State, who: usize) {
        let worker = state.txns[who].worker;
        state.txns[who].is_written = state.db.receipts[worker] == Receipt::Written;
        state.txns[who].next = Statement::Commit;
    }

    /// `settle_done.sql`: receipt, end and todo rows in one statement; for tasks without a workflow.
    pub(crate) fn settle_done(&self, state: &mut State, who: usize) -> Result<(), Wait> {
        let view = state.view(who);
        if !self.is_new_batch(state, who, &view)? {
            self.replay(state, who);
            return Ok(());
        }
        self.leave(state, who, &view)?;
        state.txns[who].next = Statement::Commit;
        Ok(())
    }

    /// `settle_receipt.sql`.
    pub(crate) fn settle_receipt(&self, state: &mut State, who: usize) -> Result<(), Wait> {
        let view = state.view(who);
        if self.is_new_batch(state, who, &view)? {
            state.txns[who].next = Statement::WorkflowLock;
        } else {
            self.replay(state, who);
        }
        Ok(())
    }

    /// `settle_leave.sql`, or `settle_stay.sql` for an attempt that failed for good.
    pub(crate) fn settle_leave(&self, state: &mut State, who: usize) -> Result<(), Wait> {
        let view = state.view(who);
        self.leave(state, who, &view)?;
        let txn = &state.txns[who];
        state.txns[who].next = if txn.is_written { Statement::WorkflowPass } else { Statement::Commit };
        Ok(())
    }

    /// Ends an attempt under its fence, and notes the result for the receipt.
    fn leave(&self, state: &mut State, who: usize, view: &Db) -> Result<(), Wait> {
        let (worker, id, lease) = (state.txns[who].worker, state.txns[who].task, state.txns[who].lease);
        let is_held = |row: &Task| {
            row.state == TaskState::Running && row.lease == lease && usize::from(row.worker) == worker
        };
        let mut is_written = false;
        if is_held(&view.tasks[id]) {
            state.lock(who, Row::Task(id), Mode::Alone)?;
            let row = state.latest(who).tasks[id];
            is_written = is_held(&row);
            if is_written {
                let has_failed = state.txns[who].has_failed;
                let end = if has_failed { TaskState::Dead } else { TaskState::Gone };
                state.write(who, Write::Task(id, Task { state: end, ..row }));
                let spec = self.scenario.spec(id);
                match spec.job {
                    Some(job) if !spec.is_step && !has_failed => state.write(who, Write::Freed(job, 1)),
                    job => state.write(who, Write::Todo(job.map_or(0, todo_job))),
                }
                if has_failed && spec.is_step {
                    // `workflow_block.sql`, under the workflow's lock.
                    let row = Workflow { exists: true, blocked_by: Some(id as u8) };
                    state.write(who, Write::Workflow(row));
                }
            }
        }
        let receipt = if is_written { Receipt::Written } else { Receipt::Fenced };
        state.write(who, Write::Receipt(worker, receipt));
        state.txns[who].is_written = is_written;
        Ok(())
    }

    /// `lock_worker.sql` or `lock_expired.sql`, together with the statements that only write the locked row.
    pub(crate) fn lock_worker(&self, state: &mut State, who: usize) -> Result<(), Wait> {
        let worker = state.txns[who].worker;
        if self.protocol.locks_worker {
            state.lock(who, Row::Worker(worker), Mode::Alone)?;
        }
        let row = state.latest(who).workers[worker];
        let row = match state.txns[who].kind {
            Kind::Sweep => Worker { has_ended: true, ..row },
            _ => Worker { min_claim_no: state.txns[who].claim_no + 1, ..row },
        };
        state.write(who, Write::Worker(worker, row));
        state.txns[who].next = Statement::Held;
        Ok(())
    }

    /// `held.sql`: the leases of a worker, all or those of one claim.
    pub(crate) fn held(&self, state: &mut State, who: usize) -> Result<(), Wait> {
        let view = state.view(who);
        let txn = &state.txns[who];
        let is_wanted = |id: &usize| {
            let row = view.tasks[*id];
            row.state == TaskState::Running
                && usize::from(row.worker) == txn.worker
                && (txn.kind == Kind::Sweep || row.claim_no == txn.claim_no)
        };
        let wanted: Vec<usize> = self.scenario.ids().filter(is_wanted).collect();
        let has_step = wanted.iter().any(|id| self.scenario.spec(*id).is_step);
        state.txns[who].leases = wanted.iter().map(|id| 1 << id).sum();
        state.txns[who].next = match () {
            () if wanted.is_empty() => Statement::Commit,
            () if has_step => Statement::WorkflowLock,
            () => Statement::EndLeases,
        };
        Ok(())
    }

    /// `settle_stay.sql` with releases, `crash.sql`: held if the task has a job, else ready. Marks the jobs
    /// for a look.
    pub(crate) fn end_leases(&self, state: &mut State, who: usize) -> Result<(), Wait> {
        let (worker, view) = (state.txns[who].worker, state.view(who));
        let leases: Vec<usize> =
            self.scenario.ids().filter(|id| state.txns[who].leases & (1 << id) != 0).collect();
        for id in &leases {
            if view.tasks[*id].state == TaskState::Running {
                state.lock(who, Row::Task(*id), Mode::Alone)?;
            }
        }
        let latest = state.latest(who);
        for id in leases {
            // The lease number was read under the worker's lock.
            let (row, known) = (latest.tasks[id], view.tasks[id]);
            if row.state == TaskState::Running
                && row.lease == known.lease
                && usize::from(row.worker) == worker
            {
                let job = self.scenario.spec(id).job;
                let entry = if job.is_some() { TaskState::Held } else { TaskState::Ready };
                state.write(who, Write::Task(id, Task { state: entry, worker: 0, claim_no: 0, ..row }));
                state.write(who, Write::Todo(job.map_or(0, todo_job)));
            }
        }
        state.txns[who].next = Statement::Commit;
        Ok(())
    }

    /// `cancel_unstarted.sql`: tasks without a workflow, in the order of their ids.
    pub(crate) fn cancel_unstarted(&self, state: &mut State, who: usize) -> Result<(), Wait> {
        let view = state.view(who);
        let is_unstarted = |row: &Task| matches!(row.state, TaskState::Ready | TaskState::Held);
        let wanted: Vec<usize> = self
            .scenario
            .ids()
            .filter(|id| state.txns[who].leases & (1 << id) != 0 && is_unstarted(&view.tasks[*id]))
            .collect();
        for id in &wanted {
            state.lock(who, Row::Task(*id), Mode::Alone)?;
        }
        let latest = state.latest(who);
        for id in wanted {
            let row = latest.tasks[id];
            if is_unstarted(&row) {
                state.write(who, Write::Task(id, Task { state: TaskState::Gone, parked: false, ..row }));
                state.write(who, Write::Todo(self.scenario.spec(id).job.map_or(0, todo_job)));
            }
        }
        state.txns[who].next = Statement::Commit;
        Ok(())
    }

    /// `unpark.sql` and `park_dead.sql`: move tasks with a job whose lane gained its first worker or lost its
    /// last one.
    pub(crate) fn look_at_lanes(&self, state: &mut State, who: usize) -> Result<(), Wait> {
        let view = state.view(who);
        let unparks = state.txns[who].next == Statement::Unpark;
        let is_wanted = |id: &usize| {
            let (row, job, is_live) =
                (view.tasks[*id], self.scenario.spec(*id).job, self.is_live(&view, *id));
            let is_parked = row.state == TaskState::Held && row.parked;
            job.is_some()
                && if unparks { is_parked && is_live } else { row.state == TaskState::Ready && !is_live }
        };
        let wanted: Vec<usize> = self.scenario.ids().filter(is_wanted).collect();
        for id in &wanted {
            state.lock(who, Row::Task(*id), Mode::Alone)?;
        }
        let latest = state.latest(who);
        for id in wanted {
            let row = latest.tasks[id];
            let found = if unparks { TaskState::Held } else { TaskState::Ready };
            if row.state == found {
                state.write(who, Write::Task(id, Task { state: TaskState::Held, parked: !unparks, ..row }));
                state.write(who, Write::Todo(self.scenario.spec(id).job.map_or(0, todo_job)));
            }
        }
        state.txns[who].next = Statement::Commit;
        Ok(())
    }
}
