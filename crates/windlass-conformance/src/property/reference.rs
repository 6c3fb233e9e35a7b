//! The model as a state machine of proptest.

use std::time::Duration;

use proptest::{prelude::*, strategy::BoxedStrategy};
use proptest_state_machine::ReferenceStateMachine;
use windlass_core::{JobRecord, JobState, Name, Rules, State, TaskId, TaskRecord, store::Filter};

use super::{
    book::Book,
    call::Answer,
    ops::{self, End, How, Op},
    seen::Snapshot,
};
use crate::{
    harness::START,
    model::{Model, Now},
};

/// The model, its clock, its ids and its last answer.
#[derive(Clone)]
pub struct Reference {
    model: Model,
    now: Now,
    book: Book,
    answer: Answer,
}

/// A lease that is held.
#[derive(Debug, Clone)]
pub struct Held {
    /// The task's number.
    pub task: usize,
    /// Its lease.
    pub lease: u32,
    attempts_left: bool,
}

impl Held {
    /// An end of this attempt. A failure of the last attempt ends the task, as a worker decides it.
    pub fn end(&self, how: How) -> End {
        let how = match how {
            How::Retry { .. } if !self.attempts_left => How::Dead,
            how => how,
        };
        End { task: self.task, lease: self.lease, how }
    }
}

/// Small limits, so that a run reaches them.
pub fn rules() -> Rules {
    Rules { max_crashes: 1, batch_max: 100, job_default_concurrency: Some(2), ..Rules::default() }
}

/// Whether a job shows no sign of use: stores may make it sooner or later.
pub fn is_unused(job: &JobRecord) -> bool {
    let JobRecord { state, concurrency, delay, ready, running, held, .. } = job;
    *state == JobState::Active
        && (*concurrency, *delay) == (rules().job_default_concurrency, None)
        && ready + running + held == 0
}

impl std::fmt::Debug for Reference {
    /// A failing run shows its steps; the empty model at its start would only hide them.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reference").finish_non_exhaustive()
    }
}

impl Reference {
    fn new() -> Self {
        Self {
            model: Model::new(rules()),
            now: Now { wall: START, monotonic: Duration::ZERO },
            book: Book::new(START),
            answer: Answer::Nothing,
        }
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Its ids.
    pub fn book(&self) -> &Book {
        &self.book
    }

    /// Its answer to the last step.
    pub fn answer(&self) -> &Answer {
        &self.answer
    }

    /// Its visible state now.
    pub fn snapshot(&self, exact: bool) -> Snapshot {
        Snapshot::of_model(&self.model, self.now, &self.book, exact)
    }

    /// Makes a step after a store has made it. `taken` are the tasks that the store's claim took.
    #[must_use]
    pub fn follow(mut self, op: &Op, taken: &[TaskId]) -> Self {
        if let Op::Advance { seconds } = op {
            let by = Duration::from_secs(*seconds);
            self.now = Now { wall: self.now.wall.after(by), monotonic: self.now.monotonic + by };
        }
        let call = self.book.call(op, self.now.wall);
        self.answer = call.on_model(&mut self.model, self.now, taken);
        let lanes = self.model.lanes(&ops::kinds(), &[]);
        self.book.learn(op, &self.answer, lanes);
        self
    }

    /// Workers that were neither swept nor retired.
    pub fn registered(&self) -> Vec<usize> {
        let known = |worker: &usize| {
            self.book.worker_id(*worker).is_some_and(|worker| self.model.is_registered(worker))
        };
        (0..self.book.workers()).filter(known).collect()
    }

    /// Jobs with visible state.
    pub fn jobs_in_use(&self) -> Vec<u8> {
        let used = |job: &u8| self.model.job(&ops::job_name(*job)).is_some_and(|job| !is_unused(&job));
        (0..ops::GATES).filter(used).collect()
    }

    /// Workflows that are blocked.
    pub fn blocked_workflows(&self) -> Vec<u8> {
        let blocked = |workflow: &u8| {
            let workflow = self.model.workflow(&ops::workflow_name(*workflow));
            workflow.is_some_and(|workflow| workflow.blocked_by.is_some())
        };
        (0..ops::GATES).filter(blocked).collect()
    }

    /// Tasks in a state.
    pub fn numbers_in(&self, state: State) -> Vec<usize> {
        self.records(state).iter().map(|task| self.number(task)).collect()
    }

    /// Leases that a worker holds.
    pub fn held_by(&self, worker: usize) -> Vec<Held> {
        let id = self.book.worker_id(worker);
        self.records(State::Running)
            .iter()
            .filter(|task| task.worker == id)
            .map(|task| Held {
                task: self.number(task),
                lease: task.lease,
                attempts_left: task.attempt < task.max_attempts,
            })
            .collect()
    }

    fn ends_its_tasks(&self, job: &Name) -> bool {
        self.model.job(job).is_some_and(|job| job.state.ends_what_comes_back())
    }

    fn records(&self, state: State) -> Vec<TaskRecord> {
        self.model.tasks(&Filter { state: Some(state), ..Filter::default() }, None, ops::MANY).tasks
    }

    fn number(&self, task: &TaskRecord) -> usize {
        self.book.number(task.id).raw() as usize
    }
}

impl ReferenceStateMachine for Reference {
    type State = Self;
    type Transition = Op;

    fn init_state() -> BoxedStrategy<Self> {
        Just(Self::new()).boxed()
    }

    fn transitions(state: &Self) -> BoxedStrategy<Op> {
        ops::next(state)
    }

    /// Some steps are skipped, because the rules leave one thing open (docs/gates.md): when a waiting step
    /// in a job that ends its tasks is ended by the next turn of that job.
    fn preconditions(state: &Self, op: &Op) -> bool {
        match op {
            Op::Enqueue { drafts } => drafts
                .iter()
                .filter(|draft| draft.workflow.is_some())
                .filter_map(|draft| draft.job)
                .all(|job| !state.ends_its_tasks(&ops::job_name(job))),
            Op::Redrive { tasks, .. } => tasks
                .iter()
                .filter_map(|task| state.model.task(state.book.task_id(*task)?))
                .filter(|task| task.workflow.is_some())
                .filter_map(|task| task.job)
                .all(|job| !state.ends_its_tasks(&job)),
            _ => true,
        }
    }

    fn apply(state: Self, op: &Op) -> Self {
        state.follow(op, &[])
    }
}
