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
        ids.iter().map(|id| Changed { id: *id, result: self.cancel_one(now, *id, &reason) }).collect()
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

    /// Grants dead tasks a fresh budget. The lease number goes on, so that no old attempt can write.
    pub fn redrive(&mut self, now: Now, tasks: &[Redrive]) -> Vec<Changed> {
        tasks
            .iter()
            .map(|redrive| Changed { id: redrive.id, result: self.redrive_one(now, redrive) })
            .collect()
    }

    fn redrive_one(&mut self, now: Now, redrive: &Redrive) -> Result<State> {
        let id = redrive.id;
        let task = self.tasks.get_mut(&id).ok_or_else(|| not_found(id))?;
        let state = task.record.state;
        if self.fault == Some(Fault::RedriveOfDone) && state == State::Done {
            task.record.state = State::Dead;
        } else if state != State::Dead {
            return Err(Error::Conflict(format!("task {id} is {state}; only a dead task can be retried")));
        }
        self.note_attempt(id, AttemptResult::Redriven, None, now);
        self.shift(id, Event::Redrive);
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
        Ok(State::Scheduled)
    }

    /// Stops or resumes claims from a queue.
    pub fn set_queue_paused(&mut self, queue: &Name, paused: bool) -> bool {
        if paused { self.paused.insert(queue.clone()) } else { self.paused.remove(queue) }
    }

    /// Queues that are paused.
    pub fn paused_queues(&self) -> Vec<Name> {
        self.paused.iter().cloned().collect()
    }
}

fn not_found(id: TaskId) -> Error {
    Error::NotFound(format!("task {id}"))
}
