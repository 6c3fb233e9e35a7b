//! Recurring tasks as stores keep them: a name, the next tick, and a text that only the runtime reads.

use crate::{id::TaskId, name::Name, task::NewTask, time::Timestamp};

/// A schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleRow {
    /// Its name.
    pub name: Name,
    /// Its task and its times, in the runtime's format.
    pub spec: String,
    /// Whether it is paused.
    pub paused: bool,
    /// The next tick; `None` if there will be no more.
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
    /// Schedules that are due, the earliest due first.
    pub due: Vec<ScheduleRow>,
    /// When the next of the others is due.
    pub next_at: Option<Timestamp>,
}

/// One tick of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fire {
    /// The schedule.
    pub name: Name,
    /// The row's text when the tick was decided. The store fires only if the row still has it.
    pub spec: String,
    /// The tick. The store fires only if the row still waits for it and its time has come.
    pub tick: Timestamp,
    /// The task of the tick; `None` if the tick was missed and is skipped. Its key makes it unique by name
    /// and tick.
    pub task: Option<NewTask>,
    /// The tick after it.
    pub next_at: Option<Timestamp>,
}
