//! The two gates: a job's limit and a workflow's order. What stores decide under their locks, as pure functions.
//!
//! A job's room is taken by its tasks that are ready or running: `ready + running` never rises above its limit (LIMIT). A
//! job without a limit has a window instead, so that every job has a bounded stretch of the ready line. No counter is
//! stored: whoever decides counts, or passes a place that was just freed on to the next.

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
    /// Whether a task stands behind no gate at all.
    pub fn is_open(&self) -> bool {
        self.job.is_none() && self.workflow.is_none()
    }
}

/// What a job lets through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// As many as its limit allows.
    Active,
    /// Nothing starts.
    Paused,
    /// What waits was cancelled, and what comes is cancelled too.
    Cancelled,
    /// What waited was cancelled; the job is forgotten when the last task that runs has ended.
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

    /// Whether an attempt that ends otherwise than in success ends its task.
    pub fn ends_what_comes_back(self) -> bool {
        matches!(self, Self::Cancelled | Self::Removing)
    }
}

impl std::fmt::Display for JobState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// What becomes of the rest of a workflow when a step ends without success.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// It waits until somebody retries, skips or cancels.
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

/// A job as its lock shows it: what it allows, and who has its room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobView {
    /// Its state.
    pub state: JobState,
    /// Its limit, if it has one.
    pub concurrency: Option<u32>,
    /// The least time between two starts.
    pub delay: Option<Duration>,
    /// When the last start was noticed.
    pub last_start: Option<Timestamp>,
    /// Its tasks that are ready.
    pub ready: u32,
    /// Its tasks that run.
    pub running: u32,
}

/// What is to be done with a job now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Turn {
    /// So many held tasks become ready, the best first.
    pub promote: u32,
    /// So many ready tasks become held, the least first.
    pub demote: u32,
    /// When to look again, if only time is missing.
    pub again_at: Option<Timestamp>,
}

/// The window of a job without a limit in a fleet of so many slots.
pub fn window(fleet_slots: u32) -> u32 {
    fleet_slots.saturating_mul(2).max(WINDOW_MIN)
}

/// Decides what a job lets through. `window` stands for the limit of a job that has none.
///
/// A job with a delay has at most one ready task, and gets it `delay` after its last start. A limit that fell takes ready
/// tasks back and never touches what runs.
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

/// Where a task goes whose turn in its workflow has come.
pub fn entry(has_job: bool, due_at: Option<Timestamp>, now: Timestamp) -> State {
    match due_at {
        Some(due) if due > now => State::Scheduled,
        _ if has_job => State::Held,
        _ => State::Ready,
    }
}

/// What is to be changed about a job; what is `None` stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobChange {
    /// Its limit; `Some(None)` takes the limit away.
    pub concurrency: Option<Option<u32>>,
    /// The least time between two starts; `Some(None)` takes it away.
    pub delay: Option<Option<Duration>>,
    /// Active, paused or cancelled. A job is removed by a call of its own.
    pub state: Option<JobState>,
    /// With the state cancelled: also asks what runs to end.
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
    /// When the last start was noticed; kept for jobs with a delay.
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

/// What an operator does with a workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkflowAction {
    /// Grants the step that blocks it a fresh budget of attempts.
    Retry,
    /// Goes on with the next step.
    Skip,
    /// Cancels every step that has not ended; what is appended later starts anew.
    Cancel,
}

/// A workflow with unfinished steps, or one that is blocked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowRecord {
    /// Its name.
    pub name: Name,
    /// What a failure means for the rest.
    pub on_failure: OnFailure,
    /// When its first step was admitted.
    pub created_at: Timestamp,
    /// The step that has its turn, if there is one.
    pub head: Option<TaskId>,
    /// That step's state.
    pub head_state: Option<State>,
    /// The step that failed and holds up the rest.
    pub blocked_by: Option<TaskId>,
    /// Unfinished steps, counted up to [`COUNT_MAX`].
    pub steps: u64,
}

/// What stands around a task at its gates, for the answer to "why is it not running?".
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GateView {
    /// Its job, if it has one and the job is known.
    pub job: Option<JobRecord>,
    /// A few of the tasks that have the job's room.
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
    fn a_delay_lets_one_through_at_a_time_and_says_when_the_next_may_start() {
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
    fn a_step_enters_where_its_time_and_its_job_say() {
        assert_eq!(entry(false, None, at(5)), State::Ready);
        assert_eq!(entry(true, None, at(5)), State::Held);
        assert_eq!(entry(true, Some(at(6)), at(5)), State::Scheduled);
        assert_eq!(entry(true, Some(at(5)), at(5)), State::Held);
    }
}
