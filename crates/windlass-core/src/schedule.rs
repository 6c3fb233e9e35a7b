//! Recurring tasks as stores keep them: a name, when the next tick is, and a text that only the runtime reads.

use crate::{id::TaskId, name::Name, task::NewTask, time::Timestamp};

/// A schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleRow {
    /// Its name.
    pub name: Name,
    /// What it enqueues and when, as the runtime wrote it.
    pub spec: String,
    /// Whether it is stopped.
    pub paused: bool,
    /// The next tick; `None` if there is none any more.
    pub next_at: Option<Timestamp>,
    /// The last tick that was fired.
    pub last_at: Option<Timestamp>,
    /// The task of that tick.
    pub last_task: Option<TaskId>,
}

/// Schedules whose next tick has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueSchedules {
    /// The store's clock.
    pub now: Timestamp,
    /// Those that are due, the longest due first.
    pub due: Vec<ScheduleRow>,
    /// When the next of the others is due.
    pub next_at: Option<Timestamp>,
}

/// One tick of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fire {
    /// The schedule.
    pub name: Name,
    /// What the row said when this was decided; it must still say that.
    pub spec: String,
    /// The tick that it must still wait for, and that must have come.
    pub tick: Timestamp,
    /// The task of the tick; `None` if the tick was missed and is left out. Its key makes it unique by name and tick.
    pub task: Option<NewTask>,
    /// The tick after it.
    pub next_at: Option<Timestamp>,
}
