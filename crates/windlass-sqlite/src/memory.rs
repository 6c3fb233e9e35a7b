//! What the writer caches in memory: lanes and their figures, paused queues, and which worker holds which
//! task.
//!
//! Only the writer thread changes it, so it is exact. A change applies at once, so that the next request of
//! the same transaction sees it. An undo log records it; if the transaction fails, the writer plays that log
//! back.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use windlass_core::{
    Lane, LaneId, LeaseRef, Name, State, TaskId, Timestamp, WorkerId, crash::is_suspect, epoch::Epoch,
    store::Depth,
};

use crate::memory::id_map::IdMap;

mod ahead;
pub(crate) mod id_map;
mod lanes;
mod rooms;
mod worker;

pub(crate) use ahead::{Place, Waiting};
pub(crate) use lanes::Use;
pub(crate) use rooms::{Ready, Room, Rooms};
pub(crate) use worker::{Held, Passed, Service, Worker};

/// A lane with its figures.
#[derive(Debug)]
pub(crate) struct LaneEntry {
    pub lane: Arc<Lane>,
    pub depth: Depth,
    /// How many of its ready tasks are suspects of crashes.
    pub suspects: u64,
    /// How many of its held tasks are suspects whose group waits.
    pub aside: u64,
    pub paused: bool,
    pub how_used: Use,
    /// Registered workers that serve it.
    servers: u32,
}

impl LaneEntry {
    /// Whether a worker may take its tasks.
    pub(crate) fn is_live(&self) -> bool {
        self.servers > 0 && !self.paused
    }
}

/// Figures of the history.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HistoryFigures {
    pub rows: u64,
    pub bytes: u64,
}

/// How to undo one change.
#[derive(Debug)]
enum Undo {
    LaneAdded,
    Use(LaneId, Use),
    Depth(LaneId, State, i64),
    Suspects(LaneId, i64),
    Aside(LaneId, i64),
    Paused(Name, bool),
    Claimed(WorkerId, TaskId),
    Settled(WorkerId, TaskId, Held),
    CancelAsked(WorkerId, TaskId),
    WorkerAdded(WorkerId),
    WorkerEnded(WorkerId, Box<Worker>),
    SlotsSet(WorkerId, u32),
    Receipt(WorkerId, u32, Option<u64>),
    History(HistoryFigures),
}

/// Everything that the writer caches.
#[derive(Debug)]
pub(crate) struct Memory {
    lanes: Vec<LaneEntry>,
    retired_lanes: usize,
    by_name: HashMap<Name, HashMap<Name, LaneId>>,
    paused: BTreeSet<Name>,
    workers: IdMap<WorkerId, Worker>,
    scheduled: u64,
    ready: u64,
    aside: u64,
    slots: u32,
    history: HistoryFigures,
    /// The used room of each job.
    pub rooms: Rooms,
    /// The last task id given out. A rollback does not undo it: gaps do no harm.
    pub last_id: TaskId,
    /// The last place in the ready line given out. A rollback does not undo it.
    pub ready_seq: i64,
    /// The last place in a workflow given out. A rollback does not undo it.
    pub last_step: i64,
    /// The epoch of leases. A rollback does not undo it.
    pub epoch: Epoch,
    undo: Vec<Undo>,
}

impl Memory {
    /// An empty cache.
    pub(crate) fn new() -> Self {
        Self {
            lanes: Vec::new(),
            retired_lanes: 0,
            by_name: HashMap::new(),
            paused: BTreeSet::new(),
            workers: IdMap::default(),
            scheduled: 0,
            ready: 0,
            aside: 0,
            slots: 0,
            history: HistoryFigures::default(),
            rooms: Rooms::default(),
            last_id: TaskId::from_raw(0),
            ready_seq: 0,
            last_step: 0,
            epoch: Epoch::default(),
            undo: Vec::new(),
        }
    }

    /// The next task id.
    pub(crate) fn next_id(&mut self, now: Timestamp) -> TaskId {
        self.last_id = self.last_id.next(now);
        self.last_id
    }

    /// The next place in the ready line.
    pub(crate) fn next_ready_seq(&mut self) -> i64 {
        self.ready_seq += 1;
        self.ready_seq
    }

    /// The next place in a workflow.
    pub(crate) fn next_step(&mut self) -> i64 {
        self.last_step += 1;
        self.last_step
    }

    // ---- lanes

    /// Every lane, in order of its id.
    pub(crate) fn lanes(&self) -> &[LaneEntry] {
        &self.lanes
    }

    /// A lane by its id: ids count from one without gaps.
    pub(crate) fn lane(&self, id: LaneId) -> Option<&LaneEntry> {
        self.lanes.get(lane_place(id)?)
    }

    /// A lane by its names.
    pub(crate) fn lane_id(&self, queue: &Name, kind: &Name) -> Option<LaneId> {
        self.by_name.get(queue)?.get(kind).copied()
    }

    /// Caches a lane that was stored.
    pub(crate) fn add_lane(&mut self, queue: &Name, kind: &Name, id: LaneId) {
        self.by_name.entry(queue.clone()).or_default().insert(kind.clone(), id);
        let lane = Lane { id, queue: queue.clone(), kind: kind.clone() };
        let servers = self.workers.values().filter(|worker| worker.service.covers(&lane)).count();
        self.lanes.push(LaneEntry {
            lane: Arc::new(lane),
            depth: Depth::default(),
            suspects: 0,
            aside: 0,
            paused: self.paused.contains(queue),
            how_used: Use::Taken,
            servers: servers as u32,
        });
        self.undo.push(Undo::LaneAdded);
    }

    /// Counts tasks of a lane into or out of a state.
    pub(crate) fn count(&mut self, lane: LaneId, state: State, by: i64) {
        if by != 0 {
            self.apply_count(lane, state, by);
            self.undo.push(Undo::Depth(lane, state, by));
        }
    }

    /// Counts a move between two states.
    pub(crate) fn count_move(&mut self, lane: LaneId, from: State, to: State, n: i64) {
        self.count(lane, from, -n);
        self.count(lane, to, n);
    }

    /// Counts ready suspects of a lane.
    pub(crate) fn count_suspects(&mut self, lane: LaneId, by: i64) {
        self.apply_suspects(lane, by);
        self.undo.push(Undo::Suspects(lane, by));
    }

    /// Counts suspects of a lane that are set aside.
    pub(crate) fn count_aside(&mut self, lane: LaneId, by: i64) {
        self.apply_aside(lane, by);
        self.undo.push(Undo::Aside(lane, by));
    }

    /// How many tasks are scheduled, over all lanes.
    pub(crate) fn scheduled(&self) -> u64 {
        self.scheduled
    }

    /// How many tasks are ready, over all lanes.
    pub(crate) fn ready(&self) -> u64 {
        self.ready
    }

    /// Whether a claim could find a task, or admit one first.
    pub(crate) fn has_claimable(&self) -> bool {
        self.ready > 0 || self.aside > 0 || self.rooms.has_pending() || self.rooms.next_turn().is_some()
    }

    fn apply_count(&mut self, lane: LaneId, state: State, by: i64) {
        match state {
            State::Scheduled => self.scheduled = self.scheduled.saturating_add_signed(by),
            State::Ready => self.ready = self.ready.saturating_add_signed(by),
            _ => {}
        }
        if let Some(entry) = lane_place(lane).and_then(|place| self.lanes.get_mut(place)) {
            entry.depth.change(state, by);
        }
    }

    fn apply_suspects(&mut self, lane: LaneId, by: i64) {
        if let Some(entry) = lane_place(lane).and_then(|place| self.lanes.get_mut(place)) {
            entry.suspects = entry.suspects.saturating_add_signed(by);
        }
    }

    fn apply_aside(&mut self, lane: LaneId, by: i64) {
        self.aside = self.aside.saturating_add_signed(by);
        if let Some(entry) = lane_place(lane).and_then(|place| self.lanes.get_mut(place)) {
            entry.aside = entry.aside.saturating_add_signed(by);
        }
    }

    // ---- paused queues

    /// Queues that are paused.
    pub(crate) fn paused(&self) -> &BTreeSet<Name> {
        &self.paused
    }

    /// Pauses or resumes a queue; returns whether that changed anything.
    pub(crate) fn set_paused(&mut self, queue: &Name, paused: bool) -> bool {
        let was = self.paused.contains(queue);
        if was != paused {
            self.apply_paused(queue, paused);
            self.undo.push(Undo::Paused(queue.clone(), was));
        }
        was != paused
    }

    fn apply_paused(&mut self, queue: &Name, paused: bool) {
        if paused {
            self.paused.insert(queue.clone());
        } else {
            self.paused.remove(queue);
        }
        for entry in self.lanes.iter_mut().filter(|entry| entry.lane.queue == *queue) {
            entry.paused = paused;
        }
    }

    // ---- workers and what they hold

    /// A worker that may hold tasks.
    pub(crate) fn worker(&self, id: WorkerId) -> Option<&Worker> {
        self.workers.get(&id)
    }

    /// The same, for counters that a rollback need not undo.
    pub(crate) fn worker_mut(&mut self, id: WorkerId) -> Option<&mut Worker> {
        self.workers.get_mut(&id)
    }

    /// Every worker that may hold tasks.
    pub(crate) fn worker_ids(&self) -> Vec<WorkerId> {
        self.workers.keys().copied().collect()
    }

    /// The leases of a job's running tasks.
    pub(crate) fn running_of(&self, job: &Name) -> impl Iterator<Item = LeaseRef> {
        let held = self.workers.values().flat_map(|worker| &worker.held);
        let of_job = held.filter(move |(_, held)| {
            held.gate.as_ref().and_then(|gate| gate.job.as_ref()).is_some_and(|name| name == job)
        });
        of_job.map(|(id, held)| held.lease_of(*id))
    }

    /// Caches a worker that was stored.
    pub(crate) fn add_worker(&mut self, id: WorkerId, service: Service) {
        self.insert_worker(id, Worker { service, ..Worker::default() });
        self.undo.push(Undo::WorkerAdded(id));
    }

    /// Forgets a worker that holds no task any more.
    pub(crate) fn end_worker(&mut self, id: WorkerId) {
        if let Some(worker) = self.remove_worker(id) {
            self.undo.push(Undo::WorkerEnded(id, Box::new(worker)));
        }
    }

    /// Records how many slots a worker has now.
    pub(crate) fn set_slots(&mut self, id: WorkerId, slots: u32) {
        if let Some(before) = self.apply_slots(id, slots) {
            self.undo.push(Undo::SlotsSet(id, before));
        }
    }

    /// Returns how many slots it had.
    fn apply_slots(&mut self, id: WorkerId, slots: u32) -> Option<u32> {
        let service = &mut self.workers.get_mut(&id)?.service;
        let before = std::mem::replace(&mut service.slots, slots);
        self.slots = self.slots.saturating_sub(before).saturating_add(slots);
        Some(before)
    }

    fn insert_worker(&mut self, id: WorkerId, worker: Worker) {
        self.slots = self.slots.saturating_add(worker.service.slots);
        for entry in self.lanes.iter_mut().filter(|entry| worker.service.covers(&entry.lane)) {
            entry.servers += 1;
        }
        self.workers.insert(id, worker);
    }

    fn remove_worker(&mut self, id: WorkerId) -> Option<Worker> {
        let worker = self.workers.remove(&id)?;
        self.slots = self.slots.saturating_sub(worker.service.slots);
        for entry in self.lanes.iter_mut().filter(|entry| worker.service.covers(&entry.lane)) {
            entry.servers = entry.servers.saturating_sub(1);
        }
        Some(worker)
    }

    /// Whether a worker may take tasks of a lane.
    pub(crate) fn is_live(&self, lane: LaneId) -> bool {
        self.lane(lane).is_some_and(LaneEntry::is_live)
    }

    /// The number of slots of all registered workers.
    pub(crate) fn slots(&self) -> u32 {
        self.slots
    }

    /// The window of a job without a limit.
    pub(crate) fn window(&self) -> u32 {
        windlass_core::gate::window(self.slots)
    }

    /// Records a lease.
    pub(crate) fn hold(&mut self, worker: WorkerId, id: TaskId, held: Held) {
        self.apply_hold(worker, id, held);
        self.undo.push(Undo::Claimed(worker, id));
    }

    /// Removes a lease, if it is exactly this one.
    pub(crate) fn take(&mut self, worker: WorkerId, lease: LeaseRef) -> Option<Held> {
        let held = self.workers.get(&worker)?.held.get(&lease.id)?;
        if held.lease != lease.lease {
            return None;
        }
        let held = self.apply_take(worker, lease.id)?;
        self.undo.push(Undo::Settled(worker, lease.id, held.clone()));
        Some(held)
    }

    /// Records that a cancellation was requested of a running attempt.
    pub(crate) fn ask_cancel(&mut self, worker: WorkerId, id: TaskId, reason: &str) {
        if let Some(held) = self.workers.get_mut(&worker).and_then(|worker| worker.held.get_mut(&id)) {
            held.cancel = Some(reason.into());
            self.undo.push(Undo::CancelAsked(worker, id));
        }
    }

    /// Records the number of a settler's batch.
    pub(crate) fn note_receipt(&mut self, worker: WorkerId, settler_no: u32, batch_no: u64) {
        if let Some(entry) = self.workers.get_mut(&worker) {
            let before = entry.receipts.insert(settler_no, batch_no);
            self.undo.push(Undo::Receipt(worker, settler_no, before));
        }
    }

    fn apply_hold(&mut self, worker: WorkerId, id: TaskId, held: Held) {
        let worker = self.workers.entry(worker).or_default();
        worker.suspects += u32::from(is_suspect(held.crashes));
        worker.held.insert(id, held);
    }

    fn apply_take(&mut self, worker: WorkerId, id: TaskId) -> Option<Held> {
        let worker = self.workers.get_mut(&worker)?;
        let held = worker.held.remove(&id)?;
        worker.suspects -= u32::from(is_suspect(held.crashes));
        Some(held)
    }

    // ---- kept tasks

    /// Figures of the history.
    pub(crate) fn history(&self) -> HistoryFigures {
        self.history
    }

    /// Counts tasks into the history, or out of it.
    pub(crate) fn count_history(&mut self, rows: i64, bytes: i64) {
        self.undo.push(Undo::History(self.history));
        self.history.rows = self.history.rows.saturating_add_signed(rows);
        self.history.bytes = self.history.bytes.saturating_add_signed(bytes);
    }

    /// Sets the figures of the history to the stored ones.
    pub(crate) fn set_history(&mut self, figures: HistoryFigures) {
        self.history = figures;
    }

    // ---- transactions

    /// The transaction is committed: its changes stay.
    pub(crate) fn commit(&mut self) {
        self.undo.clear();
        self.rooms.commit();
    }

    /// The transaction failed: undoes its changes, the last first.
    pub(crate) fn roll_back(&mut self) {
        self.rooms.roll_back();
        while let Some(undo) = self.undo.pop() {
            match undo {
                Undo::LaneAdded => {
                    if let Some(entry) = self.lanes.pop()
                        && let Some(kinds) = self.by_name.get_mut(&entry.lane.queue)
                    {
                        kinds.remove(&entry.lane.kind);
                    }
                }
                Undo::Use(lane, before) => {
                    self.apply_use(lane, before);
                }
                Undo::Depth(lane, state, by) => self.apply_count(lane, state, -by),
                Undo::Suspects(lane, by) => self.apply_suspects(lane, -by),
                Undo::Aside(lane, by) => self.apply_aside(lane, -by),
                Undo::Paused(queue, was) => self.apply_paused(&queue, was),
                Undo::Claimed(worker, id) => {
                    self.apply_take(worker, id);
                }
                Undo::Settled(worker, id, held) => self.apply_hold(worker, id, held),
                Undo::CancelAsked(worker, id) => {
                    if let Some(held) = self.workers.get_mut(&worker).and_then(|w| w.held.get_mut(&id)) {
                        held.cancel = None;
                    }
                }
                Undo::WorkerAdded(id) => {
                    self.remove_worker(id);
                }
                Undo::WorkerEnded(id, worker) => self.insert_worker(id, *worker),
                Undo::SlotsSet(id, before) => {
                    self.apply_slots(id, before);
                }
                Undo::Receipt(worker, settler_no, before) => {
                    if let Some(entry) = self.workers.get_mut(&worker) {
                        match before {
                            Some(batch_no) => entry.receipts.insert(settler_no, batch_no),
                            None => entry.receipts.remove(&settler_no),
                        };
                    }
                }
                Undo::History(before) => self.history = before,
            }
        }
    }
}

fn lane_place(id: LaneId) -> Option<usize> {
    usize::try_from(id.0).ok()?.checked_sub(1)
}

#[cfg(test)]
mod tests;
