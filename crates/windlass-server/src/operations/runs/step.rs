//! One step of a run: the next tasks that match are changed.

use windlass_core::{RunRow, State, store::Filter};

use super::{super::change::bulk, Operations, Result, Run, is_of_before};
use crate::api::RunAction;

impl Operations {
    /// Looks at the next tasks, at most so many, and changes those that were so before the run was started.
    /// Answers whether there are no more.
    pub(super) async fn step(&self, row: &RunRow, run: &mut Run, most: u32) -> Result<bool> {
        let states = bulk::states(run.action, &run.filter, run.reason.as_deref())?;
        let Some(state) = states.get(run.state_no) else { return Ok(true) };
        let filter = before_the_start(run, row, *state)?;
        let page = self.store.summaries(&filter, run.after, most).await?;
        let is_cancel = run.action == RunAction::Cancel;
        let tasks = page.tasks.iter().filter(|task| {
            let is_asked = is_cancel && task.cancel_requested.is_some();
            is_of_before(task.ended_at, row.started_at) && !is_asked
        });
        let ids: Vec<_> = tasks.map(|task| task.id).collect();
        if !ids.is_empty() {
            let changes = self.change_many(run.action, &ids, run.reason.as_deref()).await?;
            run.count(changes);
        }
        run.after = page.next;
        if page.next.is_none() {
            run.state_no += 1;
        }
        Ok(run.state_no >= states.len())
    }
}

/// The filter of a run for tasks of one state that were enqueued before it was started.
fn before_the_start(run: &Run, row: &RunRow, state: State) -> Result<Filter> {
    let filter = run.filter.clone().checked()?;
    // A task of the same millisecond counts as enqueued before.
    let start = row.started_at.after(std::time::Duration::from_millis(1));
    let until = filter.until.map_or(start, |until| until.min(start));
    Ok(Filter { state: Some(state), until: Some(until), ..filter })
}
