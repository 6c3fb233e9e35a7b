//! Fires the tick of one schedule: decides what to do, and calls the store. Workers and servers share this
//! code, so that both treat a tick the same way.

use windlass_core::{Enqueued, Error, Fire, Result, ScheduleRow, Schedules, Timestamp};

use super::{
    plan,
    spec::{Spec, Unreadable},
};

/// The result of a tick.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ticked {
    /// The task that was enqueued; `None` if another caller was first, or the tick was dropped.
    pub task: Option<Enqueued>,
    /// Whether the tick was dropped: it is too late, or its task cannot be enqueued.
    pub left_out: bool,
    /// Whether nothing was done: only a newer program can read the schedule.
    pub left_alone: bool,
    /// The tick after it.
    pub next_at: Option<Timestamp>,
    /// What is wrong with the schedule.
    pub problem: Option<String>,
}

/// Fires the tick that a row waits for, at a time of the store's clock at which it is due.
///
/// # Errors
/// Errors of the store, unless it refuses the task permanently: then the tick is dropped.
pub async fn fire(schedules: &dyn Schedules, row: &ScheduleRow, now: Timestamp) -> Result<Ticked> {
    let Some(tick) = row.next_at else { return Ok(Ticked::default()) };
    let (fire, mut problem) = match Spec::from_stored(&row.spec) {
        Ok(spec) => (plan::plan(row, &spec, tick, now), None),
        Err(unreadable @ Unreadable::Newer(_)) => {
            let problem = Some(unreadable.to_string());
            return Ok(Ticked { left_alone: true, problem, ..Ticked::default() });
        }
        Err(unreadable @ Unreadable::Broken(_)) => (plan::give_up(row, tick), Some(unreadable.to_string())),
    };
    let (next_at, mut left_out) = (fire.next_at, fire.task.is_none());
    let task = match schedules.fire(fire.clone()).await {
        Err(error) if is_refusal(&error) => {
            problem = Some(error.to_string());
            left_out = true;
            schedules.fire(Fire { task: None, ..fire }).await?
        }
        answer => answer?,
    };
    Ok(Ticked { task, left_out, left_alone: false, next_at, problem })
}

/// Whether the store would refuse the same task again.
fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::Invalid(_) | Error::Conflict(_) | Error::KeyConflict { .. } | Error::NotFound(_))
}
