//! The audit: is there a task that nothing will ever move?

use windlass_core::{State, TaskRecord, store::Finding};

use super::Model;

impl Model {
    /// Tasks that break NO-STRANDED or ATTEMPT-BOUND.
    pub fn audit(&self) -> Vec<Finding> {
        self.tasks.values().filter_map(|task| self.look_at(&task.record)).collect()
    }

    fn look_at(&self, task: &TaskRecord) -> Option<Finding> {
        let finding = |promise: &str, detail: &str| {
            Some(Finding { task: Some(task.id), promise: promise.to_owned(), detail: detail.to_owned() })
        };
        let holder = || task.worker.and_then(|worker| self.workers.get(&worker));
        match task.state {
            State::Running if holder().is_none_or(|worker| worker.gone.is_some()) => {
                finding("NO-STRANDED", "running under a worker that is gone")
            }
            State::Running if task.attempt > task.max_attempts => {
                finding("ATTEMPT-BOUND", "runs more often than granted")
            }
            State::Scheduled if task.due_at.is_none() => finding("NO-STRANDED", "scheduled for no time"),
            State::Ready if self.lane(task.lane.id).is_none() => {
                finding("NO-STRANDED", "ready in a lane that does not exist")
            }
            state if state.is_ended() && task.ended_at.is_none() => {
                finding("ONE-TERMINAL", "ended at no time")
            }
            _ => None,
        }
    }
}
