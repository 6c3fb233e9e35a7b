//! The beginning of a job's line, read before its turns need it.

use std::sync::Arc;

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

/// The held tasks of a line up to `end`, without gaps. The table may have more rows up to there: admitted
/// tasks.
///
/// Cheap to clone and to pop: every transaction that changes a room first saves a copy of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ahead {
    read: Arc<[Waiting]>,
    /// How many of `read` have been removed from the front.
    gone: usize,
    end: Place,
}

impl Default for Ahead {
    fn default() -> Self {
        Self { read: Arc::default(), gone: 0, end: (i64::MIN, i64::MIN) }
    }
}

impl Ahead {
    /// The remaining tasks, in order.
    pub(crate) fn tasks(&self) -> &[Waiting] {
        self.read.get(self.gone..).unwrap_or_default()
    }

    /// The place of the last task that was read.
    pub(crate) fn end(&self) -> Place {
        self.end
    }

    /// Adds tasks that were read after the end.
    pub(super) fn extend(&mut self, more: &[Waiting]) {
        self.end = more.last().map_or(self.end, Waiting::place);
        self.replace(self.tasks().iter().chain(more).copied().collect());
    }

    /// Inserts a task that joins the line, unless its place is after the end.
    pub(super) fn line_up(&mut self, task: Waiting) {
        if task.place() <= self.end {
            let (before, behind) =
                self.tasks().split_at(self.tasks().partition_point(|other| other.place() < task.place()));
            self.replace(before.iter().chain([&task]).chain(behind).copied().collect());
        }
    }

    /// Removes a task; usually it is the first.
    pub(super) fn remove(&mut self, id: TaskId) {
        if self.tasks().first().is_some_and(|first| first.id == id) {
            self.gone += 1;
        } else if self.tasks().iter().any(|task| task.id == id) {
            self.replace(self.tasks().iter().filter(|task| task.id != id).copied().collect());
        }
    }

    fn replace(&mut self, tasks: Arc<[Waiting]>) {
        (self.read, self.gone) = (tasks, 0);
    }
}
