//! The reference model: every rule of a store in plain maps, without a lock, a file or an index.
//!
//! It is written to be read and to be obviously right, not to be fast: it searches where a store would use an
//! index. [`crate::MemoryStore`] puts it behind the traits of a store. The property test runs it beside
//! another store and compares the two.

mod attempt;
mod claim;
mod enqueue;
mod gates;
mod inspect;
mod lease;
mod operate;
mod settle;
mod upkeep;

use std::{collections::BTreeMap, collections::BTreeSet, sync::Arc, time::Duration};

use windlass_core::{
    Event, Lane, LaneId, LeaseRef, Name, NewWorker, OnFailure, Payload, RetryPolicy, Rules, ScheduleRow,
    Settled, State, TaskId, TaskRecord, Timestamp, TokenRecord, TraceContext, WorkerId, WorkerReport,
    crash::Group, epoch::Epoch, state,
};

use self::{
    gates::{Touched, job::Job, workflow::Workflow},
    upkeep::{lanes::Unused, operators::Operated, session::Session},
};
use crate::fault::Fault;

/// A reading of the store's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// The wall clock: due times, records.
    pub wall: Timestamp,
    /// Monotonic time: leases.
    pub monotonic: Duration,
}

/// The whole state of a store.
#[derive(Debug, Clone)]
pub struct Model {
    rules: Rules,
    fault: Option<Fault>,
    last_id: TaskId,
    last_ready_seq: u64,
    last_release: u64,
    last_step: u64,
    epoch: Epoch,
    last_group: i64,
    lanes: Vec<Arc<Lane>>,
    unused: Unused,
    paused: BTreeSet<Name>,
    tasks: BTreeMap<TaskId, Task>,
    keys: BTreeMap<(Name, String), KeyRow>,
    workers: BTreeMap<WorkerId, Worker>,
    receipts: BTreeMap<(WorkerId, u32), (u64, Settled)>,
    jobs: BTreeMap<Name, Job>,
    workflows: BTreeMap<Name, Workflow>,
    schedules: BTreeMap<Name, ScheduleRow>,
    tokens: BTreeMap<Name, TokenRecord>,
    sessions: Vec<Session>,
    operated: Operated,
    touched: Touched,
    moves: BTreeMap<(State, Event), u64>,
}

/// A task: its public record, and what only the model knows.
#[derive(Debug, Clone)]
struct Task {
    record: TaskRecord,
    retry: Option<RetryPolicy>,
    trace: Option<TraceContext>,
    ready_seq: u64,
    /// Which release made it ready: all turns that follow one call are one release.
    release: u64,
    claim_no: u64,
    /// Its position in its workflow.
    step: u64,
    /// Its policy for a failure in its workflow, if it has one.
    on_failure: Option<OnFailure>,
    /// The last lease whose start its job has recorded.
    noticed_lease: u32,
    /// Its group, if it is a suspect of crashes.
    group: Group,
    /// Whether it is a suspect whose group waits: it is held, and its job admits other tasks in its place.
    aside: bool,
}

/// An idempotency key.
#[derive(Debug, Clone)]
struct KeyRow {
    task: TaskId,
    kind: Name,
    payload: Payload,
    /// `None` while the task may still run.
    expires_at: Option<Timestamp>,
}

/// A registration.
#[derive(Debug, Clone)]
struct Worker {
    about: NewWorker,
    owner: Option<String>,
    report: WorkerReport,
    registered_at: Timestamp,
    renewed_at: Timestamp,
    /// Monotonic time at which its lease runs out.
    expires: Duration,
    min_claim_no: u64,
    /// When it was found dead or retired; the row stays for a day.
    gone: Option<Duration>,
    /// How many tasks it held when it was found dead.
    crowd: usize,
}

impl Model {
    /// An empty store.
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            fault: None,
            last_id: TaskId::from_raw(0),
            last_ready_seq: 0,
            last_release: 0,
            last_step: 0,
            epoch: Epoch::default(),
            last_group: 0,
            lanes: Vec::new(),
            unused: Unused::default(),
            paused: BTreeSet::new(),
            tasks: BTreeMap::new(),
            keys: BTreeMap::new(),
            workers: BTreeMap::new(),
            receipts: BTreeMap::new(),
            jobs: BTreeMap::new(),
            workflows: BTreeMap::new(),
            schedules: BTreeMap::new(),
            tokens: BTreeMap::new(),
            sessions: Vec::new(),
            operated: Operated::default(),
            touched: Touched::default(),
            moves: BTreeMap::new(),
        }
    }

    /// The same store with a deliberate defect.
    #[must_use]
    pub fn with_fault(mut self, fault: Option<Fault>) -> Self {
        self.fault = fault;
        self
    }

    /// The rules that it was opened with.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// How often each move of the state table was made.
    pub fn moves(&self) -> &BTreeMap<(State, Event), u64> {
        &self.moves
    }

    /// The last place among ready tasks that was given out.
    pub fn last_ready_seq(&self) -> u64 {
        self.last_ready_seq
    }

    /// Whether a worker is registered and was neither swept nor retired.
    pub fn is_registered(&self, worker: WorkerId) -> bool {
        self.workers.get(&worker).is_some_and(|row| row.gone.is_none())
    }

    /// The store after its process ended and a new one opened it: the same, unless it has a defect.
    #[must_use]
    pub fn reopened(&self) -> Self {
        let mut model = self.clone();
        if model.has(Fault::EnqueueLostAtReopen) {
            model.tasks.pop_last();
        }
        if model.has(Fault::SettleLostAtReopen) {
            for task in model.tasks.values_mut().filter(|task| task.record.state == State::Done) {
                task.record.state = State::Ready;
                task.record.ended_at = None;
            }
        }
        model
    }

    /// The store after a crash that forgot the last claim of a task.
    #[must_use]
    pub fn crashed(&self, claimed: LeaseRef) -> Self {
        let mut model = self.clone();
        if !model.has(Fault::EpochNotRaised) {
            model.epoch = model.epoch.after(1);
        }
        if let Some(task) = model.tasks.get_mut(&claimed.id).filter(|task| task.record.lease == claimed.lease)
        {
            let record = &mut task.record;
            (record.state, record.worker, record.started_at) = (State::Ready, None, None);
            (record.lease, record.attempt) = (record.lease - 1, record.attempt - 1);
        }
        model
    }

    fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    /// Moves a task along the state table; a task that becomes ready goes behind all ready tasks.
    fn shift(&mut self, id: TaskId, event: Event) {
        let Some(task) = self.tasks.get_mut(&id) else { return };
        let from = task.record.state;
        let Some(to) = state::next(from, event) else { return };
        task.record.state = to;
        if to == State::Ready {
            self.last_ready_seq += 1;
            (task.ready_seq, task.release) = (self.last_ready_seq, self.last_release);
        }
        if to != State::Scheduled {
            task.record.due_at = None;
        }
        *self.moves.entry((from, event)).or_default() += 1;
    }

    /// Moves a task to its end and starts the time for which its key is remembered. A dead task may come
    /// back, so its key stays for as long as the task does.
    fn end(&mut self, id: TaskId, event: Event, error: Option<String>, now: Now) {
        let Some(before) = self.tasks.get(&id).map(|task| task.record.state) else { return };
        self.shift(id, event);
        self.note_end_of_step(id, before);
        self.touch(id);
        let Some(task) = self.tasks.get_mut(&id) else { return };
        task.record.ended_at = Some(now.wall);
        task.record.error = error;
        if task.record.state != State::Dead {
            task.record.crashes = 0;
            self.release_key(id, now.wall);
        }
    }

    fn release_key(&mut self, id: TaskId, ended_at: Timestamp) {
        if self.has(Fault::KeyForgottenAtEnd) {
            self.keys.retain(|_, row| row.task != id);
        }
        let expires_at = ended_at.after(self.rules.idempotency_ttl);
        for row in self.keys.values_mut().filter(|row| row.task == id) {
            row.expires_at = Some(expires_at);
        }
    }

    fn lane(&self, id: LaneId) -> Option<&Arc<Lane>> {
        self.lanes.iter().find(|lane| lane.id == id)
    }

    /// When the next scheduled task is due, or a delayed job may start a task.
    pub fn next_due(&self) -> Option<Timestamp> {
        let scheduled = self.tasks.values().filter(|task| task.record.state == State::Scheduled);
        let due = scheduled.filter_map(|task| task.record.due_at);
        due.chain(self.jobs.values().filter_map(|job| job.again_at)).min()
    }

    /// Tasks that a worker holds, by id.
    fn held_by(&self, worker: WorkerId) -> Vec<TaskId> {
        self.tasks
            .values()
            .filter(|task| task.record.state == State::Running && task.record.worker == Some(worker))
            .map(|task| task.record.id)
            .collect()
    }

    /// The lanes of tasks that became ready after this place was given out.
    fn lanes_ready_since(&self, ready_seq: u64) -> Vec<LaneId> {
        let lanes: BTreeSet<_> = self
            .tasks
            .values()
            .filter(|task| task.record.state == State::Ready && task.ready_seq > ready_seq)
            .map(|task| task.record.lane.id)
            .collect();
        lanes.into_iter().collect()
    }
}
