//! The beginning of a job's line, read ahead of its turns.

use std::collections::VecDeque;

use windlass_core::TaskId;

/// A held task in the line of its job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub id: TaskId,
    pub priority: i32,
    pub crashes: u32,
}

impl Waiting {
    /// Its place in the line: by priority, then id.
    pub(crate) fn place(&self) -> Place {
        (-i64::from(self.priority), self.id.raw())
    }
}

/// Rank and id, as in the table.
pub(crate) type Place = (i64, i64);

/// The held tasks of a line up to a place. All of them are here; the table may have more up to there, which were let through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ahead {
    tasks: VecDeque<Waiting>,
    end: Place,
}

impl Default for Ahead {
    fn default() -> Self {
        Self { tasks: VecDeque::new(), end: (i64::MIN, i64::MIN) }
    }
}

impl Ahead {
    /// What comes first.
    pub(crate) fn tasks(&self) -> &VecDeque<Waiting> {
        &self.tasks
    }

    /// Up to where it was read.
    pub(crate) fn end(&self) -> Place {
        self.end
    }

    /// Adds what was read behind its end.
    pub(super) fn extend(&mut self, more: &[Waiting]) {
        self.tasks.extend(more);
        self.end = more.last().map_or(self.end, Waiting::place);
    }

    /// Adds a task that lines up, unless that stands behind the end.
    pub(super) fn line_up(&mut self, task: Waiting) {
        if task.place() <= self.end {
            let at = self.tasks.partition_point(|other| other.place() < task.place());
            self.tasks.insert(at, task);
        }
    }

    /// Takes a task out; usually it is the first.
    pub(super) fn remove(&mut self, id: TaskId) {
        if let Some(at) = self.tasks.iter().position(|task| task.id == id) {
            self.tasks.remove(at);
        }
    }
}
