//! The used room of each job, the tasks that wait for it, and the jobs that need a turn at a set time.
//!
//! Counted from the rows when the store is opened; the writer keeps it exact. So a job's turn reads none of
//! its tasks. Only jobs with a held, ready or running task are here.

use std::{
    collections::{BTreeSet, HashMap, HashSet, VecDeque},
    sync::Arc,
};

use windlass_core::{LaneId, Name, TaskId, Timestamp};

use super::ahead::{Ahead, Waiting};
use crate::gates::job::Job;

/// A ready task of a job. There are few: a job has a limit or a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ready {
    pub lane: LaneId,
    pub task: Waiting,
    pub seq: i64,
}

/// The tasks of a job in one lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Share {
    pub lane: LaneId,
    /// The ready ones, approximately in the order of their line.
    pub ready: VecDeque<Ready>,
    pub held: u64,
    /// Suspects whose group waits; they are not in the line.
    pub aside: u64,
    /// The beginning of its line, once it was read.
    ahead: Option<Ahead>,
}

/// The room of one job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Room {
    pub running: u32,
    /// How many of the running tasks started since the job's last turn.
    pub unnoticed: u32,
    /// The last turn of the job has counted all starts up to this number.
    noticed: u64,
    /// Lanes with ready or held tasks.
    pub shares: Vec<Share>,
    /// The job's row, once it was read.
    row: Option<Arc<Job>>,
    /// The lowest and the highest priority of its tasks since it last had none.
    priorities: Option<(i32, i32)>,
    /// The last transaction that changed it. The first change in a transaction saves a copy.
    changed_in: u64,
}

impl Room {
    /// The number of its ready tasks in all lanes.
    pub(crate) fn ready(&self) -> u32 {
        self.shares.iter().map(|share| share.ready.len() as u32).sum()
    }

    /// The number of its held tasks in all lanes.
    pub(crate) fn held(&self) -> u64 {
        self.shares.iter().map(|share| share.held).sum()
    }

    /// The number of its suspects that are set aside, in all lanes.
    pub(crate) fn aside(&self) -> u64 {
        self.shares.iter().map(|share| share.aside).sum()
    }

    /// Whether its tasks may differ in priority, so that one can outrank another.
    pub(crate) fn is_mixed(&self) -> bool {
        self.priorities.is_some_and(|(low, high)| low < high)
    }

    fn is_empty(&self) -> bool {
        self.running == 0 && self.shares.is_empty()
    }

    /// Its ready tasks of all lanes.
    pub(crate) fn each_ready(&self) -> impl Iterator<Item = &Ready> {
        self.shares.iter().flat_map(|share| &share.ready)
    }

    fn add_held(&mut self, lane: LaneId, by: i64) {
        self.in_lane(lane, |share| share.held = share.held.saturating_add_signed(by));
    }

    fn add_ready(&mut self, ready: Ready) {
        self.in_lane(ready.lane, |share| share.ready.push_back(ready));
    }

    /// Removes a ready task. Tasks leave a line from its front, so the search is short.
    fn remove_ready(&mut self, lane: LaneId, id: TaskId) {
        self.in_lane(lane, |share| {
            if let Some(at) = share.ready.iter().position(|ready| ready.task.id == id) {
                share.ready.remove(at);
            }
        });
    }

    fn widen(&mut self, priority: i32) {
        let (low, high) = self.priorities.unwrap_or((priority, priority));
        self.priorities = Some((low.min(priority), high.max(priority)));
    }

    fn ahead_mut(&mut self, lane: LaneId, change: impl FnMut(&mut Ahead)) {
        self.in_lane(lane, |share| share.ahead.as_mut().into_iter().for_each(change));
    }

    /// Changes the job's share of a lane; the caller removes empty shares after the change of the room.
    fn in_lane(&mut self, lane: LaneId, change: impl FnOnce(&mut Share)) {
        if let Some(share) = self.shares.iter_mut().find(|share| share.lane == lane) {
            change(share);
        } else {
            let mut share = Share { lane, ready: VecDeque::new(), held: 0, aside: 0, ahead: None };
            change(&mut share);
            self.shares.push(share);
        }
    }

    fn tidy(&mut self) {
        self.shares.retain(|share| !share.ready.is_empty() || share.held + share.aside > 0);
    }
}

/// How to undo one change.
#[derive(Debug)]
enum Undo {
    Room(Name, Option<Room>),
    Again(Name, Option<Timestamp>, Option<Timestamp>),
    Delayed(Name, bool),
    PendingJob(Name),
    PendingWorkflow(Name),
}

/// The rooms of all jobs.
#[derive(Debug, Default)]
pub(crate) struct Rooms {
    by_job: HashMap<Name, Room>,
    again: BTreeSet<(Timestamp, Name)>,
    delayed: HashSet<Name>,
    pending_jobs: BTreeSet<Name>,
    pending_workflows: BTreeSet<Name>,
    /// The number of the last start; a rollback leaves a gap.
    starts: u64,
    /// The number of the current transaction, less one.
    transactions: u64,
    undo: Vec<Undo>,
}

impl Rooms {
    /// The room of a job, if it has a held, ready or running task.
    pub(crate) fn get(&self, job: &Name) -> Option<&Room> {
        self.by_job.get(job)
    }

    /// Every job with a held, ready or running task.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Name, &Room)> {
        self.by_job.iter()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_job.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.by_job.len()
    }

    /// The row of a job, if it is cached.
    pub(crate) fn row(&self, job: &Name) -> Option<&Arc<Job>> {
        self.by_job.get(job)?.row.as_ref()
    }

    /// Caches the row of a job for as long as the job has a held, ready or running task; `None` if the row
    /// was deleted.
    pub(crate) fn set_row(&mut self, job: &Name, row: Option<Arc<Job>>) {
        if self.by_job.contains_key(job) {
            self.change(job, |room| room.row = row);
        }
    }

    /// Counts a newly held task of the job.
    pub(crate) fn enter(&mut self, job: &Name, lane: LaneId, priority: i32) {
        self.change(job, |room| {
            room.add_held(lane, 1);
            room.widen(priority);
        });
    }

    /// Adds a task of the job that is ready already.
    pub(crate) fn enter_ready(&mut self, job: &Name, ready: Ready) {
        self.change(job, |room| {
            room.add_ready(ready);
            room.widen(ready.task.priority);
        });
    }

    /// Removes a ready task of the job that ends.
    pub(crate) fn leave(&mut self, job: &Name, lane: LaneId, id: TaskId) {
        self.change(job, |room| room.remove_ready(lane, id));
    }

    /// Counts suspects of the job that are set aside.
    pub(crate) fn count_aside(&mut self, job: &Name, lane: LaneId, by: i64) {
        self.change(job, |room| {
            room.in_lane(lane, |share| share.aside = share.aside.saturating_add_signed(by));
        });
    }

    /// Removes a held task of the job that ends.
    pub(crate) fn leave_line(&mut self, job: &Name, lane: LaneId, id: TaskId) {
        self.change(job, |room| {
            room.ahead_mut(lane, |ahead| ahead.remove(id));
            room.add_held(lane, -1);
        });
    }

    /// A held task of the job becomes ready.
    pub(crate) fn promote(&mut self, job: &Name, ready: Ready) {
        self.change(job, |room| {
            room.ahead_mut(ready.lane, |ahead| ahead.remove(ready.task.id));
            room.add_held(ready.lane, -1);
            room.add_ready(ready);
        });
    }

    /// A ready task of the job becomes held.
    pub(crate) fn demote(&mut self, job: &Name, lane: LaneId, id: TaskId) {
        self.change(job, |room| {
            room.remove_ready(lane, id);
            room.add_held(lane, 1);
        });
    }

    /// How many tasks of a job are held in a lane.
    pub(crate) fn held_in(&self, job: &Name, lane: LaneId) -> u64 {
        self.line(job, lane).0
    }

    /// The same, with the beginning of their line if it was read.
    pub(crate) fn line(&self, job: &Name, lane: LaneId) -> (u64, Option<&Ahead>) {
        let share = self.by_job.get(job).and_then(|room| room.shares.iter().find(|share| share.lane == lane));
        share.map_or((0, None), |share| (share.held, share.ahead.as_ref()))
    }

    /// Adds tasks that were read from a line.
    pub(crate) fn read_on(&mut self, job: &Name, lane: LaneId, more: &[Waiting]) {
        self.change(job, |room| {
            room.in_lane(lane, |share| share.ahead.get_or_insert_default().extend(more));
        });
    }

    /// Adds a task that joins a line to those that were read.
    pub(crate) fn line_up(&mut self, job: &Name, lane: LaneId, task: Waiting) {
        self.change(job, |room| room.ahead_mut(lane, |ahead| ahead.line_up(task)));
    }

    /// Drops what was read of a line.
    pub(crate) fn forget_ahead(&mut self, job: &Name, lane: LaneId) {
        if self.line(job, lane).1.is_some() {
            self.change(job, |room| room.in_lane(lane, |share| share.ahead = None));
        }
    }

    /// Moves a ready task of the job to running; returns the number of the start.
    pub(crate) fn start(&mut self, job: &Name, lane: LaneId, id: TaskId) -> u64 {
        self.starts += 1;
        self.change(job, |room| {
            room.remove_ready(lane, id);
            room.running += 1;
            room.unnoticed += 1;
        });
        self.starts
    }

    /// Counts a running task of the job; returns the number of its start.
    pub(crate) fn add_running(&mut self, job: &Name) -> u64 {
        self.starts += 1;
        self.change(job, |room| {
            room.running += 1;
            room.unnoticed += 1;
        });
        self.starts
    }

    /// Counts a task of the job that has stopped running.
    pub(crate) fn stop(&mut self, job: &Name, start_no: u64) {
        self.change(job, |room| {
            room.running = room.running.saturating_sub(1);
            if start_no > room.noticed {
                room.unnoticed = room.unnoticed.saturating_sub(1);
            }
        });
    }

    /// A turn of the job has counted all its running tasks.
    pub(crate) fn notice(&mut self, job: &Name) {
        let starts = self.starts;
        self.change(job, |room| {
            room.unnoticed = 0;
            room.noticed = starts;
        });
    }

    /// When the next delayed job needs its turn.
    pub(crate) fn next_turn(&self) -> Option<Timestamp> {
        self.again.first().map(|(at, _)| *at)
    }

    /// Delayed jobs that are due, at most `limit`.
    pub(crate) fn due(&self, now: Timestamp, limit: usize) -> Vec<Name> {
        let due = self.again.iter().take_while(|(at, _)| *at <= now);
        due.take(limit).map(|(_, job)| job.clone()).collect()
    }

    /// Records when a job needs its turn.
    pub(crate) fn set_again(&mut self, job: &Name, before: Option<Timestamp>, after: Option<Timestamp>) {
        if before != after {
            self.apply_again(job, before, after);
            self.undo.push(Undo::Again(job.clone(), before, after));
        }
    }

    /// Whether a claim of a task of the job needs a turn at once.
    pub(crate) fn is_delayed(&self, job: &Name) -> bool {
        self.delayed.contains(job)
    }

    /// Records whether a job has a delay.
    pub(crate) fn set_delayed(&mut self, job: &Name, delayed: bool) {
        if self.delayed.contains(job) != delayed {
            self.apply_delayed(job, delayed);
            self.undo.push(Undo::Delayed(job.clone(), !delayed));
        }
    }

    /// Whether a turn is pending.
    pub(crate) fn has_pending(&self) -> bool {
        !self.pending_jobs.is_empty() || !self.pending_workflows.is_empty()
    }

    /// Jobs with a pending turn. A needless entry does no harm, so this needs no undo.
    pub(crate) fn pending_jobs(&self) -> &BTreeSet<Name> {
        &self.pending_jobs
    }

    /// Workflows with a pending turn.
    pub(crate) fn pending_workflows(&self) -> &BTreeSet<Name> {
        &self.pending_workflows
    }

    /// Leaves a job's turn, or the rest of it, pending.
    pub(crate) fn postpone_job(&mut self, job: Name) {
        self.pending_jobs.insert(job);
    }

    /// Leaves a workflow's turn, or the rest of it, pending.
    pub(crate) fn postpone_workflow(&mut self, workflow: Name) {
        self.pending_workflows.insert(workflow);
    }

    /// The job has had its turn.
    pub(crate) fn job_done(&mut self, job: &Name) {
        if let Some(job) = self.pending_jobs.take(job) {
            self.undo.push(Undo::PendingJob(job));
        }
    }

    /// The workflow was passed on.
    pub(crate) fn workflow_done(&mut self, workflow: &Name) {
        if let Some(workflow) = self.pending_workflows.take(workflow) {
            self.undo.push(Undo::PendingWorkflow(workflow));
        }
    }

    pub(super) fn commit(&mut self) {
        self.undo.clear();
        self.transactions += 1;
    }

    pub(super) fn roll_back(&mut self) {
        self.transactions += 1;
        while let Some(undo) = self.undo.pop() {
            match undo {
                Undo::Room(job, Some(room)) => {
                    self.by_job.insert(job, room);
                }
                Undo::Room(job, None) => {
                    self.by_job.remove(&job);
                }
                Undo::Again(job, before, after) => self.apply_again(&job, after, before),
                Undo::Delayed(job, was) => self.apply_delayed(&job, was),
                Undo::PendingJob(job) => {
                    self.pending_jobs.insert(job);
                }
                Undo::PendingWorkflow(workflow) => {
                    self.pending_workflows.insert(workflow);
                }
            }
        }
    }

    fn change(&mut self, job: &Name, change: impl FnOnce(&mut Room)) {
        let number = self.transactions + 1;
        let is_empty = if let Some(room) = self.by_job.get_mut(job) {
            if room.changed_in != number {
                self.undo.push(Undo::Room(job.clone(), Some(room.clone())));
                room.changed_in = number;
            }
            change(room);
            room.tidy();
            room.is_empty()
        } else {
            self.undo.push(Undo::Room(job.clone(), None));
            let room = self.by_job.entry(job.clone()).or_default();
            room.changed_in = number;
            change(room);
            room.tidy();
            room.is_empty()
        };
        if is_empty {
            self.by_job.remove(job);
        }
    }

    fn apply_again(&mut self, job: &Name, before: Option<Timestamp>, after: Option<Timestamp>) {
        if let Some(at) = before {
            self.again.remove(&(at, job.clone()));
        }
        if let Some(at) = after {
            self.again.insert((at, job.clone()));
        }
    }

    fn apply_delayed(&mut self, job: &Name, delayed: bool) {
        if delayed {
            self.delayed.insert(job.clone());
        } else {
            self.delayed.remove(job);
        }
    }
}

#[cfg(test)]
mod tests;
