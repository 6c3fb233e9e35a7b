//! Retention: ended tasks are kept for a time and up to a size.

use windlass_core::{State, TaskId, source::DutyReport, store::Retention};

use crate::model::{Model, Now, inspect::bytes_of};

impl Model {
    /// Removes tasks that are too old, then the oldest ones while the size is too large, and sessions that have
    /// ended.
    pub fn retain(&mut self, now: Now, retention: &Retention) -> DutyReport {
        let gone: Vec<TaskId> = self
            .tasks
            .values()
            .map(|task| &task.record)
            .filter(|task| !self.blocks(task.id))
            .filter(|task| {
                let age = match task.state {
                    State::Done | State::Cancelled => retention.history_age,
                    State::Dead => retention.dead_age,
                    _ => return false,
                };
                task.ended_at.is_some_and(|ended_at| ended_at.after(age) <= now.wall)
            })
            .map(|task| task.id)
            .collect();
        for id in &gone {
            self.remove(*id);
        }
        self.sessions.retain(|session| session.expires_at > now.wall);
        let mut moved = gone.len() as u64;
        while self.info().history_bytes > retention.history_max_bytes
            && let Some(oldest) = self.oldest_kept()
        {
            self.remove(oldest);
            moved += 1;
        }
        self.look_at_lanes(now);
        DutyReport { moved, next_due: self.next_due(), ..DutyReport::default() }
    }

    fn oldest_kept(&self) -> Option<TaskId> {
        self.tasks
            .values()
            .map(|task| &task.record)
            .filter(|task| matches!(task.state, State::Done | State::Cancelled) && bytes_of(task) > 0)
            .filter(|task| !self.blocks(task.id))
            .min_by_key(|task| (task.ended_at, task.id))
            .map(|task| task.id)
    }

    /// Whether this task blocks its workflow.
    pub(in crate::model) fn blocks(&self, id: TaskId) -> bool {
        self.workflows.values().any(|workflow| workflow.blocked_by == Some(id))
    }

    /// A key is remembered for its own time after its task ended.
    pub(in crate::model) fn remove(&mut self, id: TaskId) {
        let Some(task) = self.tasks.remove(&id) else { return };
        if task.record.state == State::Dead
            && let Some(ended_at) = task.record.ended_at
        {
            self.release_key(id, ended_at);
        }
    }
}
