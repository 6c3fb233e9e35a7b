//! The two gates: a job's limit and a workflow's order. Stores call these pure functions while they hold
//! their locks.
//!
//! The ready and running tasks of a job use its room: `ready + running` never rises above its limit (LIMIT).
//! A job without a limit has a window instead, which bounds its share of the ready tasks. No counter is
//! stored: the store counts at each decision, or gives a place that was just freed to the next task.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{id::TaskId, name::Name, state::State, time::Timestamp};

/// Smallest window of a job without a limit.
pub const WINDOW_MIN: u32 = 100;

/// The job and the workflow of a task. They never change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Gate {
    /// The job it belongs to.
    pub job: Option<Name>,
    /// The workflow it belongs to.
    pub workflow: Option<Name>,
}

impl Gate {
    /// Whether a task has neither a job nor a workflow.
    pub fn is_open(&self) -> bool {
        self.job.is_none() && self.workflow.is_none()
    }
}

/// Which tasks of a job may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// As many as its limit allows.
    Active,
    /// Nothing starts.
    Paused,
    /// Tasks that waited were cancelled; new ones are cancelled too.
    Cancelled,
    /// Tasks that waited were cancelled; the store forgets the job when its last running task has ended.
    Removing,
}

impl JobState {
    /// Every state.
    pub const ALL: [Self; 4] = [Self::Active, Self::Paused, Self::Cancelled, Self::Removing];

    /// The number that stores keep.
    pub fn code(self) -> i64 {
        match self {
            Self::Active => 0,
            Self::Paused => 1,
            Self::Cancelled => 2,
            Self::Removing => 3,
        }
    }

    /// The state of a stored number.
    pub fn from_code(code: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.code() == code)
    }

    /// The state's name as users write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Cancelled => "cancelled",
            Self::Removing => "removing",
        }
    }

    /// Whether an attempt that ends without success ends its task for good.
    pub fn ends_what_comes_back(self) -> bool {
        matches!(self, Self::Cancelled | Self::Removing)
    }
}

impl std::fmt::Display for JobState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// What happens to the rest of a workflow when a step ends without success.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// It waits until a user retries, skips or cancels the step.
    #[default]
    Block,
    /// The next step runs.
    Skip,
    /// The rest is cancelled.
    Cancel,
}

impl OnFailure {
    /// Every policy.
    pub const ALL: [Self; 3] = [Self::Block, Self::Skip, Self::Cancel];

    /// The number that stores keep.
    pub fn code(self) -> i64 {
        match self {
            Self::Block => 0,
            Self::Skip => 1,
            Self::Cancel => 2,
        }
    }

    /// The policy of a stored number.
    pub fn from_code(code: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.code() == code)
    }

    /// The policy's name as users write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Skip => "skip",
            Self::Cancel => "cancel",
        }
    }
}

impl std::fmt::Display for OnFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

impl std::str::FromStr for OnFailure {
    type Err = crate::error::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|policy| policy.as_str() == text).ok_or_else(|| {
            crate::error::Error::invalid(format!("unknown policy {text:?}; one of block, skip, cancel"))
        })
    }
}

/// A job as a store reads it under its lock: its settings, and how many tasks use its room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobView {
    /// Its state.
    pub state: JobState,
    /// Its limit, if it has one.
    pub concurrency: Option<u32>,
    /// The least time between two starts.
    pub delay: Option<Duration>,
    /// When the last start was recorded.
    pub last_start: Option<Timestamp>,
    /// Its tasks that are ready.
    pub ready: u32,
    /// Its tasks that run.
    pub running: u32,
}

/// The changes that a store makes to a job's tasks now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Turn {
    /// How many held tasks become ready, the first in order first.
    pub promote: u32,
    /// How many ready tasks become held, the last in order first.
    pub demote: u32,
    /// When to look again, if only the delay keeps tasks back.
    pub again_at: Option<Timestamp>,
}

/// The window of a job without a limit, for workers with this many slots in all.
pub fn window(fleet_slots: u32) -> u32 {
    fleet_slots.saturating_mul(2).max(WINDOW_MIN)
}

/// Decides how many tasks of a job become ready or held. `window` replaces the limit of a job that has none.
///
/// A job with a delay has at most one ready task, and gets it `delay` after its last start. A lower limit
/// takes ready tasks back and never touches running ones.
pub fn turn(job: &JobView, window: u32, now: Timestamp) -> Turn {
    let limit = job.concurrency.unwrap_or(window);
    match job.state {
        JobState::Paused => Turn { demote: job.ready, ..Turn::default() },
        JobState::Cancelled | JobState::Removing => Turn::default(),
        JobState::Active => {
            let taken = job.ready.saturating_add(job.running);
            if taken > limit {
                return Turn { demote: job.ready.min(taken - limit), ..Turn::default() };
            }
            let room = limit - taken;
            match job.delay {
                None => Turn { promote: room, ..Turn::default() },
                Some(_) if job.ready > 1 => Turn { demote: job.ready - 1, ..Turn::default() },
                Some(_) if job.ready == 1 || room == 0 => Turn::default(),
                Some(delay) => match job.last_start.map(|start| start.after(delay)) {
                    Some(next) if next > now => Turn { again_at: Some(next), ..Turn::default() },
                    _ => Turn { promote: 1, ..Turn::default() },
                },
            }
        }
    }
}

/// The state that a task enters when its turn in its workflow has come.
pub fn entry(has_job: bool, due_at: Option<Timestamp>, now: Timestamp) -> State {
    match due_at {
        Some(due) if due > now => State::Scheduled,
        _ if has_job => State::Held,
        _ => State::Ready,
    }
}

/// A change of a job; a field that is `None` changes nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobChange {
    /// Its limit; `Some(None)` takes the limit away.
    pub concurrency: Option<Option<u32>>,
    /// The least time between two starts; `Some(None)` takes it away.
    pub delay: Option<Option<Duration>>,
    /// Active, paused or cancelled. `Gates::remove_job` removes a job.
    pub state: Option<JobState>,
    /// With the state cancelled: also asks running tasks to end.
    pub now: bool,
}

/// A job with its figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobRecord {
    /// Its name.
    pub name: Name,
    /// Its state.
    pub state: JobState,
    /// Its limit, if it has one.
    pub concurrency: Option<u32>,
    /// The least time between two starts.
    pub delay: Option<Duration>,
    /// When it was first used or set.
    pub created_at: Timestamp,
    /// When the last start was recorded; kept for jobs with a delay.
    pub last_start: Option<Timestamp>,
    /// Tasks that are ready.
    pub ready: u64,
    /// Tasks that run.
    pub running: u64,
    /// Tasks that are held, counted up to [`COUNT_MAX`].
    pub held: u64,
}

/// Figures of jobs and workflows are counted up to this.
pub const COUNT_MAX: u64 = 10_000;

/// What an operator can do with a workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkflowAction {
    /// Grants the step that blocks it new attempts.
    Retry,
    /// Goes on with the next step.
    Skip,
    /// Cancels every step that has not ended; steps that are appended later run as in a new workflow.
    Cancel,
}

/// A workflow with unfinished steps, or one that is blocked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowRecord {
    /// Its name.
    pub name: Name,
    /// What a failure means for the rest of the workflow.
    pub on_failure: OnFailure,
    /// When its first step was admitted.
    pub created_at: Timestamp,
    /// The step whose turn it is, if there is one.
    pub head: Option<TaskId>,
    /// That step's state.
    pub head_state: Option<State>,
    /// The step that failed and blocks the rest.
    pub blocked_by: Option<TaskId>,
    /// Unfinished steps, counted up to [`COUNT_MAX`].
    pub steps: u64,
}

/// A task's job and workflow with their figures, for the answer to "why is it not running?".
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GateView {
    /// Its job, if it has one and the job is known.
    pub job: Option<JobRecord>,
    /// A few of the tasks that use the job's room.
    pub occupants: Vec<TaskId>,
    /// Its workflow, if it has one and the workflow is known.
    pub workflow: Option<WorkflowRecord>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(concurrency: Option<u32>, ready: u32, running: u32) -> JobView {
        JobView { state: JobState::Active, concurrency, delay: None, last_start: None, ready, running }
    }

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_ms(ms)
    }

    #[test]
    fn a_job_is_filled_up_to_its_limit_and_never_beyond() {
        for (view, promote, demote) in [
            (job(Some(3), 0, 0), 3, 0),
            (job(Some(3), 1, 1), 1, 0),
            (job(Some(3), 0, 3), 0, 0),
            (job(Some(3), 3, 0), 0, 0),
            (job(Some(1), 2, 1), 0, 2),
            (job(Some(1), 0, 3), 0, 0),
            (job(Some(2), 1, 3), 0, 1),
            (job(Some(0), 1, 0), 0, 1),
            (job(None, 0, 0), 200, 0),
            (job(None, 150, 50), 0, 0),
            (job(None, 250, 0), 0, 50),
        ] {
            assert_eq!(turn(&view, 200, at(0)), Turn { promote, demote, again_at: None }, "{view:?}");
        }
    }

    #[test]
    fn a_job_that_is_not_active_lets_nothing_through() {
        for state in [JobState::Paused, JobState::Cancelled, JobState::Removing] {
            let view = JobView { state, ..job(Some(9), 2, 1) };
            let found = turn(&view, 200, at(0));
            assert_eq!(found.promote, 0);
            assert_eq!(found.demote, if state == JobState::Paused { 2 } else { 0 });
        }
    }

    #[test]
    fn a_delay_admits_one_task_and_says_when_the_next_may_start() {
        let delay = Some(Duration::from_millis(200));
        let view = JobView { delay, ..job(Some(3), 0, 0) };
        assert_eq!(turn(&view, 200, at(0)).promote, 1, "the first at once");
        let view = JobView { last_start: Some(at(1_000)), ..view };
        assert_eq!(turn(&view, 200, at(1_199)), Turn { again_at: Some(at(1_200)), ..Turn::default() });
        assert_eq!(turn(&view, 200, at(1_200)).promote, 1);
        let view = JobView { ready: 1, ..view };
        assert_eq!(turn(&view, 200, at(9_000)), Turn::default(), "one is ready already");
        let view = JobView { ready: 2, ..view };
        assert_eq!(turn(&view, 200, at(9_000)).demote, 1, "the delay was set while two were ready");
        let view = JobView { ready: 0, running: 3, ..view };
        assert_eq!(turn(&view, 200, at(9_000)), Turn::default(), "no room: time alone changes nothing");
    }

    #[test]
    fn codes_and_names_read_back() {
        for state in JobState::ALL {
            assert_eq!(JobState::from_code(state.code()), Some(state));
        }
        for policy in OnFailure::ALL {
            assert_eq!(OnFailure::from_code(policy.code()), Some(policy));
            assert_eq!(policy.as_str().parse::<OnFailure>().unwrap(), policy);
        }
        assert!("stop".parse::<OnFailure>().is_err());
    }

    #[test]
    fn a_step_enters_the_state_that_its_time_and_job_require() {
        assert_eq!(entry(false, None, at(5)), State::Ready);
        assert_eq!(entry(true, None, at(5)), State::Held);
        assert_eq!(entry(true, Some(at(6)), at(5)), State::Scheduled);
        assert_eq!(entry(true, Some(at(5)), at(5)), State::Held);
    }
}
