//! What operators do: cancel, retry a dead task, pause a queue.

use windlass_core::{
    Error, Event, Name, Result, State, TaskId,
    store::{Changed, Redrive},
    task::AttemptResult,
};

use super::{Model, Now};
use crate::fault::Fault;

impl Model {
    /// Ends tasks that have not started, asks running ones to end.
    pub fn cancel(&mut self, now: Now, ids: &[TaskId], reason: &str) -> Vec<Changed> {
        let reason = self.rules.clip_error(reason);
        let changed: Vec<_> =
            ids.iter().map(|id| Changed { id: *id, result: self.cancel_one(now, *id, &reason) }).collect();
        self.give_turns(now);
        changed
    }

    fn cancel_one(&mut self, now: Now, id: TaskId, reason: &str) -> Result<State> {
        let after_end = self.has(Fault::CancelAfterEnd);
        let task = self.tasks.get_mut(&id).ok_or_else(|| not_found(id))?;
        match task.record.state {
            State::Running => {
                task.record.cancel_requested.get_or_insert_with(|| reason.to_owned());
                Ok(State::Running)
            }
            state if state.is_ended() && !after_end => {
                Err(Error::Conflict(format!("task {id} is {state} and cannot be cancelled")))
            }
            _ => {
                task.record.state = if after_end { State::Ready } else { task.record.state };
                self.end(id, Event::Cancel, Some(reason.to_owned()), now);
                Ok(State::Cancelled)
            }
        }
    }

    /// Grants dead tasks new attempts. The lease number continues, so no old attempt can write.
    pub fn redrive(&mut self, now: Now, tasks: &[Redrive]) -> Vec<Changed> {
        let changed: Vec<_> = tasks
            .iter()
            .map(|redrive| Changed { id: redrive.id, result: self.redrive_one(now, redrive) })
            .collect();
        self.give_turns(now);
        changed
    }

    /// A step that blocks its workflow keeps its position; a step that the workflow has passed goes to the
    /// end.
    pub(super) fn redrive_one(&mut self, now: Now, redrive: &Redrive) -> Result<State> {
        let id = redrive.id;
        let task = self.tasks.get_mut(&id).ok_or_else(|| not_found(id))?;
        let state = task.record.state;
        if self.fault == Some(Fault::RedriveOfDone) && state == State::Done {
            task.record.state = State::Dead;
        } else if state != State::Dead {
            return Err(Error::Conflict(format!("task {id} is {state}; only a dead task can be retried")));
        }
        self.note_attempt(id, AttemptResult::Redriven, None, now);
        let passed =
            self.tasks.get(&id).and_then(|task| task.record.workflow.clone()).filter(|name| {
                self.workflows.get(name).is_none_or(|workflow| workflow.blocked_by != Some(id))
            });
        if passed.is_some() {
            self.shift(id, Event::Append);
            self.append(now, id);
        } else {
            self.shift(id, Event::Redrive);
            self.unblock_after(id);
            self.touch(id);
        }
        let lower = self.has(Fault::RedriveLowersLease);
        self.edit(id, |task| {
            if let Some(note) = task.attempts.last_mut() {
                (note.worker, note.started_at) = (None, None);
            }
            (task.attempt, task.crashes) = (0, 0);
            task.due_at = Some(now.wall.after(redrive.delay));
            task.ended_at = None;
            if lower {
                task.lease = 0;
            }
        });
        Ok(if passed.is_some() { State::Waiting } else { State::Scheduled })
    }

    /// Removes dead tasks that block no workflow.
    pub fn remove_dead(&mut self, ids: &[TaskId]) -> Vec<Changed> {
        ids.iter().map(|id| Changed { id: *id, result: self.remove_one(*id) }).collect()
    }

    fn remove_one(&mut self, id: TaskId) -> Result<State> {
        let task = &self.tasks.get(&id).ok_or_else(|| not_found(id))?.record;
        if task.state != State::Dead {
            let state = task.state;
            return Err(Error::Conflict(format!("task {id} is {state}; only a dead task can be removed")));
        }
        if self.blocks(id) && !self.has(Fault::BlockerRemoved) {
            return Err(Error::Conflict(format!("task {id} blocks its workflow; skip or cancel that first")));
        }
        self.remove(id);
        Ok(State::Dead)
    }

    fn unblock_after(&mut self, id: TaskId) {
        if let Some(workflow) = self.tasks.get(&id).and_then(|task| task.record.workflow.clone()) {
            self.unblock(&workflow);
        }
    }

    /// Pauses or resumes claims from a queue.
    pub fn set_queue_paused(&mut self, now: Now, queue: &Name, paused: bool) -> bool {
        let before = self.fleet();
        let changed = if paused { self.paused.insert(queue.clone()) } else { self.paused.remove(queue) };
        self.follow_fleet(&before);
        self.give_turns(now);
        changed
    }

    /// Queues that are paused.
    pub fn paused_queues(&self) -> Vec<Name> {
        self.paused.iter().cloned().collect()
    }
}

fn not_found(id: TaskId) -> Error {
    Error::NotFound(format!("task {id}"))
}
