//! Which tasks to list, and what a list says of them.

use std::sync::Arc;

use super::cause::{beginning_of, cause_of};
use crate::{
    error::{Error, Result},
    id::{TaskId, WorkerId},
    name::Name,
    state::State,
    task::{Lane, TaskRecord},
    time::Timestamp,
};

/// Most ids that a filter names.
pub const FILTER_IDS_MAX: usize = 1_000;

/// Largest page of a list.
pub const PAGE_MAX: u32 = 1_000;

/// Which tasks to list. What is absent does not restrict.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only this state.
    pub state: Option<State>,
    /// Only this kind.
    pub kind: Option<Name>,
    /// Only this queue.
    pub queue: Option<Name>,
    /// Only this job.
    pub job: Option<Name>,
    /// Only this workflow.
    pub workflow: Option<Name>,
    /// Only tasks enqueued at or after this time.
    pub since: Option<Timestamp>,
    /// Only tasks enqueued before this time.
    pub until: Option<Timestamp>,
    /// Only dead tasks of this cause, as [`cause_of`] makes it from their error.
    pub cause: Option<String>,
    /// Only tasks that this worker runs, or ran last.
    pub worker: Option<WorkerId>,
    /// Only tasks with this idempotency key.
    pub key: Option<String>,
    /// Only these tasks, at most [`FILTER_IDS_MAX`]. An empty list matches nothing.
    pub ids: Option<Vec<TaskId>>,
}

impl Filter {
    /// Checks what the types do not.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it names too many ids, or a text with a NUL: no task has one, and some stores cannot
    /// even ask for it.
    pub fn check(&self) -> Result<()> {
        for (field, text) in [("cause", &self.cause), ("key", &self.key)] {
            if text.as_ref().is_some_and(|text| text.contains('\0')) {
                return Err(Error::invalid(format!("{field} must have no NUL")));
            }
        }
        match self.ids.as_ref().map_or(0, Vec::len) {
            0..=FILTER_IDS_MAX => Ok(()),
            n => Err(Error::invalid(format!("ids names {n} tasks; at most {FILTER_IDS_MAX}"))),
        }
    }

    /// Whether it includes a task.
    pub fn matches(&self, task: &TaskRecord) -> bool {
        let has = |wanted: &Option<Name>, name: Option<&Name>| {
            wanted.as_ref().is_none_or(|wanted| name == Some(wanted))
        };
        self.state.is_none_or(|state| task.state == state)
            && has(&self.kind, Some(&task.lane.kind))
            && has(&self.queue, Some(&task.lane.queue))
            && has(&self.job, task.job.as_ref())
            && has(&self.workflow, task.workflow.as_ref())
            && self.since.is_none_or(|since| task.id >= TaskId::first_at(since))
            && self.until.is_none_or(|until| task.id < TaskId::first_at(until))
            && self.worker.is_none_or(|worker| task.worker == Some(worker))
            && self.key.as_ref().is_none_or(|key| task.key.as_ref() == Some(key))
            && self.ids.as_ref().is_none_or(|ids| ids.contains(&task.id))
            && self
                .cause
                .as_ref()
                .is_none_or(|cause| task.state == State::Dead && cause_of(task.error.as_deref()) == *cause)
    }

    /// The only state that it can match, if there is one: a cause of death names the dead tasks.
    pub fn only_state(&self) -> Option<State> {
        if self.cause.is_some() { Some(State::Dead) } else { self.state }
    }

    /// How the error of every task that it matches begins, if it names a cause. Not every such error has that
    /// cause: [`Self::matches`] decides.
    pub fn error_begins(&self) -> Option<&str> {
        self.cause.as_deref().and_then(beginning_of)
    }

    /// The ids that a page may have: below `after` if given, and in the time that the filter names; the lower
    /// end belongs to them, the upper one does not.
    pub fn range(&self, after: Option<TaskId>) -> (TaskId, TaskId) {
        let from = self.since.map_or(TaskId::from_raw(i64::MIN), TaskId::first_at);
        let until = self.until.map_or(TaskId::from_raw(i64::MAX), TaskId::first_at);
        (from, after.map_or(until, |after| after.min(until)))
    }

    /// The next ids to look up for a page of a filter that names ids, newest first, and the id below which
    /// the page after it goes on.
    pub fn ids_below(ids: &[TaskId], after: Option<TaskId>, limit: u32) -> (Vec<TaskId>, Option<TaskId>) {
        let mut ids: Vec<_> =
            ids.iter().copied().filter(|id| after.is_none_or(|after| *id < after)).collect();
        ids.sort_unstable_by(|a, b| b.cmp(a));
        ids.dedup();
        let has_more = ids.len() > limit as usize;
        ids.truncate(limit as usize);
        let next = ids.last().copied().filter(|_| has_more);
        (ids, next)
    }
}

/// How much of each task a list reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// All of it.
    Whole,
    /// Neither payload nor output nor the record of attempts.
    Summary,
}

/// One page of a list, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T = TaskRecord> {
    /// The tasks.
    pub tasks: Vec<T>,
    /// Where the next page starts; `None` at the end. A page may be short or even empty and still have a next
    /// one, because a call looks at a bounded number of rows.
    pub next: Option<TaskId>,
}

/// One page of a list without what the tasks carry.
pub type Summaries = Page<SummaryRecord>;

impl<T> Default for Page<T> {
    fn default() -> Self {
        Self { tasks: Vec::new(), next: None }
    }
}

impl Page {
    /// At most so many of the tasks that the filter matches. The page goes on below the last one that it
    /// keeps, if it leaves any out.
    #[must_use]
    pub fn picked(mut self, filter: &Filter, limit: u32) -> Self {
        self.tasks.retain(|task| filter.matches(task));
        if self.tasks.len() > limit as usize {
            self.tasks.truncate(limit as usize);
            self.next = self.tasks.last().map(|task| task.id);
        }
        self
    }

    /// The same tasks without their payloads, outputs and attempts.
    pub fn summarised(self) -> Summaries {
        Page { tasks: self.tasks.into_iter().map(Into::into).collect(), next: self.next }
    }
}

/// A task as lists of many show it: what it is and how it stands, without what it carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SummaryRecord {
    /// The task.
    pub id: TaskId,
    /// Its state.
    pub state: State,
    /// Its queue and kind.
    pub lane: Arc<Lane>,
    /// Higher first.
    pub priority: i32,
    /// The job it belongs to.
    pub job: Option<Name>,
    /// The workflow it belongs to.
    pub workflow: Option<Name>,
    /// Its idempotency key.
    pub key: Option<String>,
    /// Attempts spent, or the number of the one that runs.
    pub attempt: u32,
    /// Attempts granted.
    pub max_attempts: u32,
    /// When it may start, while it is scheduled or waits for its turn.
    pub due_at: Option<Timestamp>,
    /// When the current or last attempt was claimed.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// The worker that runs it or ran it last.
    pub worker: Option<WorkerId>,
    /// What the handler last reported.
    pub progress: Option<String>,
    /// The last error or reason.
    pub error: Option<String>,
    /// Why the running attempt should stop, if a user asked for that.
    pub cancel_requested: Option<String>,
}

impl From<TaskRecord> for SummaryRecord {
    fn from(task: TaskRecord) -> Self {
        Self {
            id: task.id,
            state: task.state,
            lane: task.lane,
            priority: task.priority,
            job: task.job,
            workflow: task.workflow,
            key: task.key,
            attempt: task.attempt,
            max_attempts: task.max_attempts,
            due_at: task.due_at,
            started_at: task.started_at,
            ended_at: task.ended_at,
            worker: task.worker,
            progress: task.progress,
            error: task.error,
            cancel_requested: task.cancel_requested,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_ids_come_newest_first_and_once() {
        let ids = [3, 9, 3, 5, 1].map(TaskId::from_raw);
        let raw = |(ids, next): (Vec<TaskId>, Option<TaskId>)| {
            (ids.into_iter().map(TaskId::raw).collect::<Vec<_>>(), next.map(TaskId::raw))
        };
        assert_eq!(raw(Filter::ids_below(&ids, None, 2)), (vec![9, 5], Some(5)));
        assert_eq!(raw(Filter::ids_below(&ids, Some(TaskId::from_raw(5)), 2)), (vec![3, 1], None));
    }

    #[test]
    fn too_many_ids_are_refused() {
        let of = |n| Filter { ids: Some(vec![TaskId::from_raw(1); n]), ..Filter::default() };
        assert!(of(FILTER_IDS_MAX).check().is_ok() && of(FILTER_IDS_MAX + 1).check().is_err());
    }
}
