//! Jobs, workflows and queues.

use std::time::Duration;

use windlass_core::{
    Error, JobChange, JobRecord, JobState, Name, OnFailure, Timestamp, WorkflowAction, WorkflowRecord,
    depth::States,
    gate::GateView,
    store::{Depth, LaneRecord},
};

use super::{id_text, ms, some_task_id, task_id};
use crate::v1;

impl From<JobState> for v1::JobState {
    fn from(state: JobState) -> Self {
        match state {
            JobState::Active => Self::Active,
            JobState::Paused => Self::Paused,
            JobState::Cancelled => Self::Cancelled,
            JobState::Removing => Self::Removing,
        }
    }
}

impl v1::JobState {
    /// The state, if one is named.
    pub fn known(self) -> Option<JobState> {
        match self {
            Self::Unspecified => None,
            Self::Active => Some(JobState::Active),
            Self::Paused => Some(JobState::Paused),
            Self::Cancelled => Some(JobState::Cancelled),
            Self::Removing => Some(JobState::Removing),
        }
    }
}

impl From<JobRecord> for v1::Job {
    fn from(job: JobRecord) -> Self {
        Self {
            name: job.name.to_string(),
            state: v1::JobState::from(job.state).into(),
            concurrency: job.concurrency,
            delay_ms: job.delay.map(ms),
            created_at_ms: job.created_at.as_ms(),
            last_start_ms: job.last_start.map(Timestamp::as_ms),
            ready: job.ready,
            running: job.running,
            held: job.held,
        }
    }
}

impl TryFrom<v1::Job> for JobRecord {
    type Error = Error;

    fn try_from(job: v1::Job) -> Result<Self, Error> {
        Ok(Self {
            state: job.state().known().unwrap_or(JobState::Active),
            name: Name::stored("job", job.name)?,
            concurrency: job.concurrency,
            delay: job.delay_ms.map(Duration::from_millis),
            created_at: Timestamp::from_ms(job.created_at_ms),
            last_start: job.last_start_ms.map(Timestamp::from_ms),
            ready: job.ready,
            running: job.running,
            held: job.held,
        })
    }
}

impl v1::SetJobRequest {
    /// A change of a job.
    pub fn of(name: &Name, change: &JobChange) -> Self {
        Self {
            name: name.to_string(),
            concurrency: change.concurrency.flatten(),
            no_concurrency: change.concurrency == Some(None),
            delay_ms: change.delay.flatten().map(ms),
            no_delay: change.delay == Some(None),
            state: change.state.map_or(v1::JobState::Unspecified, Into::into).into(),
            now: change.now,
        }
    }

    /// The changes in this request.
    pub fn change(&self) -> JobChange {
        let either = |none: bool, some: Option<u64>| if none { Some(None) } else { some.map(Some) };
        let narrow = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        let concurrency = either(self.no_concurrency, self.concurrency.map(u64::from));
        JobChange {
            concurrency: concurrency.map(|limit| limit.map(narrow)),
            delay: either(self.no_delay, self.delay_ms).map(|delay| delay.map(Duration::from_millis)),
            state: self.state().known(),
            now: self.now,
        }
    }
}

impl From<WorkflowRecord> for v1::Workflow {
    fn from(workflow: WorkflowRecord) -> Self {
        Self {
            name: workflow.name.to_string(),
            on_failure: v1::OnFailure::from(Some(workflow.on_failure)).into(),
            created_at_ms: workflow.created_at.as_ms(),
            head: id_text(workflow.head),
            head_state: workflow.head_state.map_or(v1::TaskState::Unspecified, Into::into).into(),
            blocked_by: id_text(workflow.blocked_by),
            steps: workflow.steps,
        }
    }
}

impl TryFrom<v1::Workflow> for WorkflowRecord {
    type Error = Error;

    fn try_from(workflow: v1::Workflow) -> Result<Self, Error> {
        Ok(Self {
            on_failure: workflow.on_failure().known().unwrap_or(OnFailure::Block),
            head_state: workflow.head_state().known(),
            created_at: Timestamp::from_ms(workflow.created_at_ms),
            head: some_task_id(&workflow.head)?,
            blocked_by: some_task_id(&workflow.blocked_by)?,
            steps: workflow.steps,
            name: Name::stored("workflow", workflow.name)?,
        })
    }
}

impl From<WorkflowAction> for v1::WorkflowAction {
    fn from(action: WorkflowAction) -> Self {
        match action {
            WorkflowAction::Retry => Self::Retry,
            WorkflowAction::Skip => Self::Skip,
            WorkflowAction::Cancel => Self::Cancel,
        }
    }
}

impl v1::WorkflowAction {
    /// The action, if one is named.
    pub fn known(self) -> Option<WorkflowAction> {
        match self {
            Self::Unspecified => None,
            Self::Retry => Some(WorkflowAction::Retry),
            Self::Skip => Some(WorkflowAction::Skip),
            Self::Cancel => Some(WorkflowAction::Cancel),
        }
    }
}

impl From<GateView> for v1::GateView {
    fn from(view: GateView) -> Self {
        Self {
            job: view.job.map(Into::into),
            occupants: view.occupants.iter().map(ToString::to_string).collect(),
            workflow: view.workflow.map(Into::into),
        }
    }
}

impl TryFrom<v1::GateView> for GateView {
    type Error = Error;

    fn try_from(view: v1::GateView) -> Result<Self, Error> {
        Ok(Self {
            job: view.job.map(TryInto::try_into).transpose()?,
            occupants: view.occupants.iter().map(|id| task_id(id)).collect::<Result<_, _>>()?,
            workflow: view.workflow.map(TryInto::try_into).transpose()?,
        })
    }
}

impl From<LaneRecord> for v1::Queue {
    fn from(lane: LaneRecord) -> Self {
        let Depth { scheduled, waiting, held, ready, running, dead, at_least, about } = lane.depth;
        let codes = |states: States| states.iter().map(|state| v1::TaskState::from(state).into()).collect();
        Self {
            queue: lane.queue.to_string(),
            kind: lane.kind.to_string(),
            paused: lane.paused,
            scheduled,
            waiting,
            held,
            ready,
            running,
            dead,
            at_least: codes(at_least),
            about: codes(about),
        }
    }
}

impl TryFrom<v1::Queue> for LaneRecord {
    type Error = Error;

    fn try_from(lane: v1::Queue) -> Result<Self, Error> {
        let v1::Queue { scheduled, waiting, held, ready, running, dead, .. } = lane;
        let at_least = lane.at_least().filter_map(v1::TaskState::known).collect();
        let about = lane.about().filter_map(v1::TaskState::known).collect();
        Ok(Self {
            queue: Name::stored("queue", lane.queue)?,
            kind: Name::stored("kind", lane.kind)?,
            paused: lane.paused,
            depth: Depth { scheduled, waiting, held, ready, running, dead, at_least, about },
        })
    }
}
