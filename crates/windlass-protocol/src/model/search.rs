//! The state space: the start, the possible actions, and what must hold in every state.

use stateright::{Model, Property};

use super::{Action, Checked};
use crate::{
    db::{Db, JOBS, Job, Mode, Row, WORKERS},
    protocol::{Operation, Spec},
    state::{
        ADMISSIONS, Broken, CONNECTIONS, GHOST, Kind, LEADER, OPERATOR, Process, SWEEP, State, Statement,
    },
};

impl Model for Checked {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let mut db = Db::default();
        for (worker, comes_later) in self.scenario.comes_later.iter().enumerate() {
            db.workers[worker].is_registered = !comes_later;
        }
        for (job, limit) in self.scenario.limits.iter().enumerate() {
            if let Some(limit) = *limit {
                db.jobs[job] = Job { exists: true, limit, ..Job::default() };
            }
        }
        for id in self.scenario.ids().filter(|id| !self.scenario.spec(*id).is_late) {
            self.append(&mut db, id);
        }
        let process = |later: bool| if later { Process::Unregistered } else { Process::Idle };
        let mut processes = self.scenario.comes_later.map(process);
        for job in 0..JOBS {
            let runs = |spec: &&Spec| spec.job == Some(job) && spec.runs_on.is_some();
            let running = self.scenario.tasks.iter().filter(runs).count();
            db.jobs[job].at_limit = db.jobs[job].exists && running >= usize::from(db.jobs[job].limit);
        }
        for id in self.scenario.ids() {
            if let Some(worker) = self.scenario.spec(id).runs_on {
                processes[worker] = Process::Running { task: id, lease: 1 };
            }
        }
        vec![State {
            db,
            locks: crate::db::Locks::default(),
            txns: Default::default(),
            processes,
            is_late_open: self.scenario.tasks.iter().any(|spec| spec.is_late),
            is_operator_idle: self.scenario.operation.is_some(),
            failures: self.scenario.failures,
            losses: self.scenario.losses,
            broken: None,
            yields_at_rows: self.scenario.yields_at_rows,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.broken.is_some() {
            // States after a broken promise show nothing more.
            return;
        }
        for who in 0..CONNECTIONS {
            let txn = &state.txns[who];
            let may_go_on = txn.waits_for.is_none_or(|(row, mode)| state.locks.is_free(row, who, mode));
            if txn.next != Statement::None && may_go_on {
                actions.push(Action::Step(who));
            }
        }
        for worker in 0..WORKERS {
            self.worker_actions(state, worker, actions);
            let (row, is_free) = (state.db.workers[worker], state.txns[SWEEP].kind == Kind::None);
            let lock = Row::Worker(worker);
            let is_locked = self.protocol.locks_worker && !state.locks.is_free(lock, SWEEP, Mode::Alone);
            if state.db.has_expired[worker] && !row.has_ended && is_free && !is_locked {
                actions.push(Action::Sweep(worker));
            }
        }
        if state.has_todo() {
            let free = ADMISSIONS.iter().find(|who| state.txns[**who].kind == Kind::None);
            actions.extend(free.map(|who| Action::Admit(*who)));
        }
        // The late tasks come after the removal of a job: earlier they would be removed with it.
        let is_removed = matches!(self.scenario.operation, Some(Operation::Remove(_)));
        let is_too_early = is_removed && (state.is_operator_idle || state.txns[OPERATOR].kind != Kind::None);
        if state.is_late_open && !is_too_early {
            actions.push(Action::CommitLate);
        }
        if state.is_operator_idle {
            actions.push(Action::Operate);
        }
        if self.protocol.leader_looks && state.txns[LEADER].kind == Kind::None && self.has_slipped(&state.db)
        {
            actions.push(Action::LookAtLanes);
        }
        self.ghost_actions(state, actions);
        self.fault_actions(state, actions);
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Step(who) => self.run(&mut state, who),
            Action::Claim { worker, task } => {
                state.processes[worker] = Process::Claiming;
                let claim_no = Self::claim_no(&state, worker);
                self.begin_claim(&mut state, worker, worker, task, claim_no);
            }
            Action::Settle { worker, has_failed } => {
                let Process::Running { task, lease } = state.processes[worker] else { return None };
                state.failures -= u8::from(has_failed);
                self.begin_settle(&mut state, worker, task, lease, has_failed);
            }
            Action::SettleAgain(worker) => {
                let Process::Settling { task, lease, has_failed } = state.processes[worker] else {
                    return None;
                };
                self.begin_settle(&mut state, worker, task, lease, has_failed);
            }
            Action::Unclaim(worker) => {
                state.processes[worker] = Process::Unclaiming;
                self.begin(&mut state, worker, Kind::Unclaim, Statement::LockWorker);
                state.txns[worker].worker = worker;
                state.txns[worker].claim_no = Self::claim_no(&state, worker);
                self.run(&mut state, worker);
            }
            Action::Lose(worker) => self.lose(&mut state, worker),
            Action::ArriveLate { task } => {
                let (worker, claim_no) = (state.txns[GHOST].worker, state.txns[GHOST].claim_no);
                self.begin_claim(&mut state, GHOST, worker, task, claim_no);
            }
            Action::Vanish => state.roll_back(GHOST),
            Action::Undo => {
                state.losses -= 1;
                state.roll_back(ADMISSIONS[0]);
            }
            Action::Crash(worker) => {
                state.roll_back(worker);
                state.processes[worker] = Process::Gone;
            }
            Action::Expire(worker) => state.db.has_expired[worker] = true,
            Action::Sweep(worker) => {
                self.begin(&mut state, SWEEP, Kind::Sweep, Statement::LockWorker);
                state.txns[SWEEP].worker = worker;
                self.run(&mut state, SWEEP);
            }
            Action::Admit(who) => self.admit(&mut state, who),
            Action::CommitLate => {
                state.is_late_open = false;
                let mut db = state.db;
                self.scenario.ids().filter(|id| self.scenario.spec(*id).is_late).for_each(|id| {
                    self.append(&mut db, id);
                });
                state.db = db;
            }
            Action::Operate => self.operate(&mut state),
            Action::LookAtLanes => self.begin(&mut state, LEADER, Kind::ParkDead, Statement::ParkDead),
            Action::Register(worker) => {
                state.db.workers[worker].is_registered = true;
                state.processes[worker] = Process::Registering;
                self.begin(&mut state, worker, Kind::Unpark, Statement::Unpark);
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("LIMIT", |_, state: &State| state.broken != Some(Broken::Limit)),
            Property::always("WF-ORDER", |_, state: &State| state.broken != Some(Broken::Order)),
            Property::always("ONE-LEASE", |_, state: &State| !Checked::is_run_twice(state)),
            Property::always("ANSWER", |_, state: &State| state.broken != Some(Broken::Answer)),
            Property::always("NO-STRANDED", |model: &Checked, state: &State| !model.is_stranded(state)),
            Property::always("SLOT-BALANCED", |model: &Checked, state: &State| !model.is_leaked(state)),
            Property::always("PLACES", |model: &Checked, state: &State| !model.is_oversubscribed(&state.db)),
            Property::always("NO-DEADLOCK", |_, state: &State| !state.has_deadlock()),
            // Otherwise the other properties might hold because nothing ever happens.
            Property::sometimes("COMES-TO-REST", |model: &Checked, state: &State| model.is_at_rest(state)),
        ]
    }
}
