//! The ways in which an attempt ends: by settlement, by hand-back, by the death of its worker.

use windlass_core::{
    AttemptRecord, Event, Settlement, TaskId,
    task::{ATTEMPT_RECORDS_MAX, AttemptResult},
};

use super::{Model, Now};
use crate::fault::Fault;

impl Model {
    /// Writes the end of an attempt. A task that was asked to end becomes cancelled unless it succeeded.
    pub(super) fn settle_one(&mut self, id: TaskId, settlement: &Settlement, now: Now) {
        if !matches!(settlement, Settlement::Done { .. }) && self.end_if_cancelled(id, now) {
            return;
        }
        let spent = self.tasks.get(&id).is_some_and(|task| task.record.attempt >= task.record.max_attempts);
        let settlement = match settlement {
            // The row, not the worker, knows how many attempts were granted.
            Settlement::Retry { error, .. } if spent && !self.has(Fault::RetryBeyondBudget) => {
                &Settlement::Dead { error: error.clone() }
            }
            other => other,
        };
        self.note_attempt(id, result_of(settlement), settlement.error(), now);
        let error = settlement.error().map(str::to_owned);
        match settlement {
            Settlement::Done { output, .. } => {
                self.end(id, Event::Succeed, error, now);
                self.edit(id, |task| task.output.clone_from(output));
            }
            Settlement::Dead { .. } => self.end(id, Event::Fail, error, now),
            Settlement::Cancelled { .. } => self.end(id, Event::Cancel, error, now),
            Settlement::Retry { due_at, .. } => {
                self.shift(id, Event::Retry);
                self.edit(id, |task| (task.due_at, task.error) = (Some(*due_at), error));
                if self.has(Fault::RetryGivesAttemptBack) {
                    self.give_attempt_back(id);
                }
            }
            Settlement::Snooze { due_at } => {
                self.shift(id, Event::Snooze);
                self.edit(id, |task| task.due_at = Some(*due_at));
                if !self.has(Fault::SnoozeSpendsAttempt) {
                    self.give_attempt_back(id);
                }
            }
            Settlement::Release => {
                self.come_back(id, Event::Release);
                self.leak_room(id);
                if !self.has(Fault::ReleaseSpendsAttempt) {
                    self.give_attempt_back(id);
                }
            }
        }
        self.edit(id, |task| task.cancel_requested = None);
        self.touch(id);
        // A hand-back says nothing about the task, so it does not clear a suspect.
        if *settlement != Settlement::Release || self.has(Fault::HandBackClearsSuspect) {
            self.edit(id, |task| task.crashes = 0);
        }
    }

    /// Hands a task back; no attempt is spent.
    pub(super) fn hand_back(&mut self, id: TaskId, now: Now) {
        self.settle_one(id, &Settlement::Release, now);
    }

    /// The task's worker died while it ran. `is_end`: the task dies of it.
    pub(super) fn crash(&mut self, id: TaskId, is_end: bool, now: Now) {
        if self.end_if_cancelled(id, now) {
            return;
        }
        self.note_attempt(id, AttemptResult::Crashed, Some("its worker died with it"), now);
        if !self.has(Fault::CrashSpendsAttempt) {
            self.give_attempt_back(id);
        }
        self.edit(id, |task| task.crashes += 1);
        let crashes = self.tasks.get(&id).map_or(0, |task| task.record.crashes);
        if is_end && !self.has(Fault::CrashesWithoutEnd) {
            let reason = format!("its worker died with it {crashes} times (max_crashes)");
            self.end(id, Event::CrashOut, Some(reason), now);
        } else {
            self.come_back(id, Event::Crash);
        }
    }

    /// A task becomes ready again, or held if it has a job.
    fn come_back(&mut self, id: TaskId, event: Event) {
        let has_job = self.tasks.get(&id).is_some_and(|task| task.record.job.is_some());
        self.shift(id, if has_job { Event::Hold } else { event });
        self.touch(id);
    }

    fn leak_room(&mut self, id: TaskId) {
        let job = self.tasks.get(&id).and_then(|task| task.record.job.clone());
        if self.has(Fault::RoomLeakedAtRelease)
            && let Some(job) = job.and_then(|job| self.jobs.get_mut(&job))
        {
            job.leaked += 1;
        }
    }

    fn end_if_cancelled(&mut self, id: TaskId, now: Now) -> bool {
        let requested = self.tasks.get(&id).and_then(|task| task.record.cancel_requested.clone());
        let Some(reason) = requested.filter(|_| !self.has(Fault::CancelForgotten)) else { return false };
        self.note_attempt(id, AttemptResult::Cancelled, Some(&reason), now);
        self.end(id, Event::Cancel, Some(reason), now);
        self.edit(id, |task| (task.cancel_requested, task.crashes) = (None, 0));
        true
    }

    pub(super) fn note_attempt(&mut self, id: TaskId, result: AttemptResult, error: Option<&str>, now: Now) {
        self.edit(id, |task| {
            task.attempts.push(AttemptRecord {
                attempt: task.attempt,
                lease: task.lease,
                worker: task.worker,
                started_at: task.started_at,
                ended_at: now.wall,
                result,
                error: error.map(str::to_owned),
            });
            if task.attempts.len() > ATTEMPT_RECORDS_MAX {
                task.attempts.remove(0);
            }
        });
    }

    fn give_attempt_back(&mut self, id: TaskId) {
        self.edit(id, |task| task.attempt = task.attempt.saturating_sub(1));
    }

    pub(super) fn edit(&mut self, id: TaskId, change: impl FnOnce(&mut windlass_core::TaskRecord)) {
        if let Some(task) = self.tasks.get_mut(&id) {
            change(&mut task.record);
        }
    }
}

fn result_of(settlement: &Settlement) -> AttemptResult {
    match settlement {
        Settlement::Done { .. } => AttemptResult::Done,
        Settlement::Retry { .. } => AttemptResult::Retry,
        Settlement::Snooze { .. } => AttemptResult::Snoozed,
        Settlement::Release => AttemptResult::Released,
        Settlement::Dead { .. } => AttemptResult::Dead,
        Settlement::Cancelled { .. } => AttemptResult::Cancelled,
    }
}
