//! The model: which actions are possible next, and what must hold.

mod search;

use stateright::Model as _;

use crate::{
    db::{Db, JOBS, Mode, Receipt, Row, TODO_WORKFLOW, Task, TaskState, WORKERS, Write, todo_job},
    protocol::{Operation, Protocol, Scenario},
    state::{ADMISSIONS, Broken, GHOST, Kind, LEADER, OPERATOR, Process, State, Statement, Txn},
};

/// A protocol and a scenario to check it in.
#[derive(Debug, Clone, Default)]
pub struct Checked {
    /// The choices of the protocol.
    pub protocol: Protocol,
    /// The tasks, jobs, workers and faults.
    pub scenario: Scenario,
}

/// An action that may happen next. Numbers are workers, tasks or connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the words of the protocol")]
pub enum Action {
    /// A connection runs its next statement, continues the statement that waited, or commits.
    Step(usize),
    Claim {
        worker: usize,
        task: usize,
    },
    Settle {
        worker: usize,
        has_failed: bool,
    },
    /// A worker sends a batch again whose answer was lost.
    SettleAgain(usize),
    Unclaim(usize),
    /// The connection of a worker breaks; its request may still take effect.
    Lose(usize),
    /// A claim whose answer was lost takes effect late.
    ArriveLate {
        task: usize,
    },
    /// A request whose answer was lost never takes effect.
    Vanish,
    /// A process dies.
    Crash(usize),
    /// The first admission is rolled back: its process died, or its connection broke.
    Undo,
    /// A lease runs out.
    Expire(usize),
    Sweep(usize),
    Admit(usize),
    CommitLate,
    Operate,
    Register(usize),
    /// The leader checks the lanes; possible only if it would find something.
    LookAtLanes,
}

impl Checked {
    fn is_fault(state: &State, action: Action) -> bool {
        match action {
            Action::Lose(_) | Action::Crash(_) | Action::Undo => true,
            // The lease of a dead process always runs out.
            Action::Expire(worker) => state.processes[worker] != Process::Gone,
            _ => false,
        }
    }

    /// Whether nothing moves any more without another fault.
    fn is_at_rest(&self, state: &State) -> bool {
        // In most states a statement can run: then there is no need to list all actions.
        if state.txns.iter().any(|txn| txn.next != Statement::None && txn.waits_for.is_none()) {
            return false;
        }
        let mut actions = Vec::new();
        self.actions(state, &mut actions);
        state.broken.is_none() && actions.into_iter().all(|action| Self::is_fault(state, action))
    }

    fn is_stranded(&self, state: &State) -> bool {
        let db = &state.db;
        // In a deadlock the server rolls one transaction back, and then things move again.
        !state.has_deadlock()
            && self.is_at_rest(state)
            && self.scenario.ids().any(|id| match db.tasks[id].state {
                TaskState::Dead | TaskState::Gone => false,
                TaskState::Waiting => db.workflow.blocked_by.is_none(),
                TaskState::Held if db.tasks[id].parked => self.is_live(db, id),
                // A limit of 0 lets nothing start.
                TaskState::Held => self.scenario.spec(id).job.is_none_or(|job| db.jobs[job].limit != 0),
                _ => true,
            })
    }

    /// Room that is in use when all is at rest, or a lease of a worker that is gone.
    fn is_leaked(&self, state: &State) -> bool {
        let mut tasks = state.db.tasks.iter();
        let is_leaked = |row: &Task| {
            row.state == TaskState::Running && state.db.workers[usize::from(row.worker)].has_ended
        };
        tasks.clone().any(is_leaked) || (tasks.any(Task::has_room) && self.is_at_rest(state))
    }

    /// A job that is not marked has given away more than its limit, including the places about to be passed
    /// on.
    fn is_oversubscribed(&self, db: &Db) -> bool {
        db.jobs.iter().enumerate().any(|(job, row)| {
            let tasks = self.scenario.ids().filter(|id| self.scenario.spec(*id).job == Some(job));
            let taken = tasks.filter(|id| db.tasks[*id].has_room()).count() + usize::from(db.freed[job]);
            row.exists && !row.recount && taken > usize::from(row.limit)
        })
    }

    /// A lane gained its first worker or lost its last one, and a task with a job is not in the matching
    /// state.
    fn has_slipped(&self, db: &Db) -> bool {
        self.scenario.ids().filter(|id| self.scenario.spec(*id).job.is_some()).any(|id| {
            match (db.tasks[id].state, self.is_live(db, id)) {
                (TaskState::Held, is_live) => db.tasks[id].parked && is_live,
                (TaskState::Ready, is_live) => !is_live,
                _ => false,
            }
        })
    }

    fn is_run_twice(state: &State) -> bool {
        let runs = |worker: usize| match state.processes[worker] {
            Process::Running { task, .. } if !state.db.has_expired[worker] => Some(task),
            _ => None,
        };
        runs(0).is_some() && runs(0) == runs(1)
    }

    fn run(&self, state: &mut State, who: usize) {
        let statement = state.txns[who].next;
        let done = match statement {
            Statement::None => Ok(()),
            Statement::Claim => self.claim(state, who),
            Statement::SettleDone => self.settle_done(state, who),
            Statement::SettleReceipt => self.settle_receipt(state, who),
            Statement::SettleLeave => self.settle_leave(state, who),
            Statement::LockWorker => self.lock_worker(state, who),
            Statement::Held => self.held(state, who),
            Statement::EndLeases => self.end_leases(state, who),
            Statement::WorkflowMake => self.workflow_make(state, who),
            Statement::WorkflowLock => self.workflow_lock(state, who),
            Statement::WorkflowPlace => self.workflow_place(state, who),
            Statement::WorkflowPass => self.workflow_pass(state, who),
            Statement::WorkflowForget => self.workflow_forget(state, who),
            Statement::WorkflowSteps => self.workflow_steps(state, who),
            Statement::JobMake => self.job_make(state, who),
            Statement::JobLock => self.job_lock(state, who),
            Statement::JobCount => self.job_count(state, who),
            Statement::JobDemote => self.job_demote(state, who),
            Statement::JobPromote => self.job_promote(state, who),
            Statement::CancelUnstarted => self.cancel_unstarted(state, who),
            Statement::Unpark | Statement::ParkDead => self.look_at_lanes(state, who),
            Statement::Commit => {
                self.commit(state, who);
                return;
            }
        };
        if done.is_err() {
            return;
        }
        let txn = &mut state.txns[who];
        (txn.snapshot, txn.waits_for) = (None, None);
        if self.scenario.is_coarse && !matches!(txn.next, Statement::None | Statement::Commit) {
            self.run(state, who);
        }
    }

    fn commit(&self, state: &mut State, who: usize) {
        let txn = state.commit(who, self.protocol, &self.scenario);
        match txn.kind {
            Kind::Claim if who < WORKERS => {
                state.processes[who] = if txn.is_written {
                    Process::Running { task: txn.task, lease: txn.lease }
                } else {
                    Process::Idle
                };
            }
            Kind::Settle if who < WORKERS => self.answer(state, &txn),
            Kind::Unclaim => state.processes[txn.worker] = Process::Idle,
            // While every lane has a live worker that statement finds nothing.
            Kind::Sweep if self.scenario.ids().any(|id| !self.is_live(&state.db, id)) => {
                self.begin(state, who, Kind::ParkDead, Statement::ParkDead);
            }
            Kind::Unpark if who < WORKERS => state.processes[who] = Process::Idle,
            Kind::ParkDead if who == LEADER => self.begin(state, who, Kind::Unpark, Statement::Unpark),
            Kind::Admit if txn.has_parked && self.protocol.unparks_after_commit => {
                self.begin(state, who, Kind::Unpark, Statement::Unpark);
            }
            _ => {}
        }
    }

    /// A worker gets the answer to its batch and continues with the next number.
    fn answer(&self, state: &mut State, txn: &Txn) {
        let row = state.db.tasks[txn.task];
        let is_ended = matches!(row.state, TaskState::Dead | TaskState::Gone)
            && row.lease == txn.lease
            && usize::from(row.worker) == txn.worker;
        if txn.is_written != is_ended && state.broken.is_none() {
            state.broken = Some(Broken::Answer);
        }
        if is_ended {
            // These numbers are never read again: clearing them makes states equal that differ in them alone.
            state.db.tasks[txn.task] = Task { lease: 0, worker: 0, claim_no: 0, ..row };
        }
        let is_swept = state.db.workers[txn.worker].has_ended;
        state.processes[txn.worker] = if is_swept { Process::Gone } else { Process::Idle };
        // The next batch has the next number: this receipt is not its own, and a copy still on its way is an
        // old one.
        state.db.receipts[txn.worker] = Receipt::None;
        let copy = &mut state.txns[GHOST];
        copy.is_stale = copy.kind == Kind::Settle && copy.worker == txn.worker;
    }

    pub(crate) fn begin(&self, state: &mut State, who: usize, kind: Kind, next: Statement) {
        state.txns[who] = Txn { kind, next, ..Txn::default() };
    }

    fn begin_settle(&self, state: &mut State, worker: usize, task: usize, lease: u8, has_failed: bool) {
        let next =
            if self.scenario.spec(task).is_step { Statement::SettleReceipt } else { Statement::SettleDone };
        state.processes[worker] = Process::Settling { task, lease, has_failed };
        state.txns[worker] =
            Txn { kind: Kind::Settle, next, worker, task, lease, has_failed, ..Txn::default() };
        self.run(state, worker);
    }

    /// A worker may use claim number 1 again unless a claim was lost: the protocol needs no more.
    fn claim_no(state: &State, worker: usize) -> u8 {
        state.db.workers[worker].min_claim_no
    }

    fn begin_claim(&self, state: &mut State, who: usize, worker: usize, task: usize, claim_no: u8) {
        state.txns[who] =
            Txn { kind: Kind::Claim, next: Statement::Claim, worker, task, claim_no, ..Txn::default() };
        self.run(state, who);
    }

    fn admit(&self, state: &mut State, who: usize) {
        let took = std::mem::take(&mut state.db.todo);
        let jobs = took & !TODO_WORKFLOW;
        let freed = std::array::from_fn(|job| state.untaken(job));
        state.txns[who] = Txn { kind: Kind::Admit, took, jobs, freed, ..Txn::default() };
        for job in (0..JOBS).filter(|job| freed[*job] > 0) {
            state.write(who, Write::Taken(job, freed[job]));
        }
        let is_workflow = took & TODO_WORKFLOW != 0;
        state.txns[who].next =
            if is_workflow { Statement::WorkflowMake } else { self.first_of_jobs(state, who) };
    }

    fn operate(&self, state: &mut State) {
        state.is_operator_idle = false;
        let txn = match self.scenario.operation {
            Some(Operation::SetLimit(job, _)) => {
                Txn { kind: Kind::SetLimit, next: Statement::JobMake, jobs: todo_job(job), ..Txn::default() }
            }
            Some(Operation::Remove(job)) => {
                Txn { kind: Kind::Remove, next: Statement::JobLock, jobs: todo_job(job), ..Txn::default() }
            }
            Some(Operation::Cancel(tasks)) => {
                Txn { kind: Kind::Cancel, next: Statement::CancelUnstarted, leases: tasks, ..Txn::default() }
            }
            None => return,
        };
        state.txns[OPERATOR] = txn;
        self.run(state, OPERATOR);
    }

    /// Writes a task as it is appended, and marks its gates for a look.
    fn append(&self, db: &mut Db, id: usize) {
        let spec = self.scenario.spec(id);
        if let Some(worker) = spec.runs_on {
            db.tasks[id] =
                Task { state: TaskState::Running, lease: 1, worker: worker as u8, ..Task::default() };
            return;
        }
        let (entry, todo) = match (spec.is_step, spec.job) {
            (true, _) => (TaskState::Waiting, TODO_WORKFLOW),
            (false, Some(job)) => (TaskState::Held, todo_job(job)),
            (false, None) => (TaskState::Ready, 0),
        };
        db.tasks[id].state = entry;
        db.todo |= todo;
    }

    fn worker_actions(&self, state: &State, worker: usize, actions: &mut Vec<Action>) {
        let is_free = state.txns[worker].kind == Kind::None;
        let row = state.db.workers[worker];
        match state.processes[worker] {
            Process::Unregistered => actions.push(Action::Register(worker)),
            Process::Idle if row.is_live() && !state.db.has_expired[worker] => {
                let serves = self.scenario.serves[worker];
                let is_there = |id: &usize| {
                    state.db.tasks[*id].state == TaskState::Ready
                        && serves & (1 << self.scenario.spec(*id).lane) != 0
                        && state.locks.is_free(Row::Task(*id), worker, Mode::Alone)
                };
                let ready = self.scenario.ids().filter(is_there);
                actions.extend(ready.map(|task| Action::Claim { worker, task }));
            }
            Process::Running { .. } => {
                actions.push(Action::Settle { worker, has_failed: false });
                if state.failures > 0 {
                    actions.push(Action::Settle { worker, has_failed: true });
                }
            }
            Process::Settling { .. } if is_free => actions.push(Action::SettleAgain(worker)),
            Process::InDoubt if is_free => actions.push(Action::Unclaim(worker)),
            _ => {}
        }
    }

    fn fault_actions(&self, state: &State, actions: &mut Vec<Action>) {
        let (process, row) = (state.processes[0], state.db.workers[0]);
        let is_asking = matches!(process, Process::Idle | Process::Claiming | Process::Settling { .. });
        if state.losses > 0 && is_asking && state.txns[GHOST].kind == Kind::None && row.is_live() {
            actions.push(Action::Lose(0));
        }
        if state.losses > 0 && state.txns[ADMISSIONS[0]].kind == Kind::Admit {
            actions.push(Action::Undo);
        }
        if self.scenario.expires && row.is_live() {
            if self.scenario.crashes && process != Process::Gone {
                actions.push(Action::Crash(0));
            }
            if !state.db.has_expired[0] {
                actions.push(Action::Expire(0));
            }
        }
    }

    fn ghost_actions(&self, state: &State, actions: &mut Vec<Action>) {
        let ghost = &state.txns[GHOST];
        if ghost.kind == Kind::None {
            return;
        }
        actions.push(Action::Vanish);
        if ghost.kind == Kind::Claim && ghost.next == Statement::None {
            let is_ready = |id: &usize| state.db.tasks[*id].state == TaskState::Ready;
            actions.extend(self.scenario.ids().filter(is_ready).map(|task| Action::ArriveLate { task }));
        }
    }

    /// The request is on its way or running, and the worker does not wait for its answer any more.
    fn lose(&self, state: &mut State, worker: usize) {
        state.losses -= 1;
        match state.processes[worker] {
            Process::Idle => {
                let claim_no = Self::claim_no(state, worker);
                state.txns[GHOST] = Txn { kind: Kind::Claim, worker, claim_no, ..Txn::default() };
                state.processes[worker] = Process::InDoubt;
            }
            process => {
                state.txns[GHOST] = std::mem::take(&mut state.txns[worker]);
                state.locks.hand_over(worker, GHOST);
                if process == Process::Claiming {
                    state.processes[worker] = Process::InDoubt;
                }
            }
        }
    }
}
