//! Workflows: tasks one after another.

use serde::{Deserialize, Serialize};
use windlass_core::{Name, OnFailure, State, TaskId, Timestamp, WorkflowRecord};

use super::TaskSummary;

/// A workflow that has unfinished steps or is blocked, or one that has ended and whose steps are still kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowView {
    /// Its name.
    pub workflow: Name,
    /// What a failure means for the rest; absent once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<OnFailure>,
    /// Unfinished steps, counted up to 10,000.
    pub steps: u64,
    /// The step that has its turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<TaskId>,
    /// That step's state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_state: Option<State>,
    /// The step that failed and holds up the rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_by: Option<TaskId>,
    /// When its first step was admitted. Once it has ended: when the oldest kept step was enqueued.
    pub created_at: Timestamp,
    /// How its steps ended, if all have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<EndedSteps>,
}

/// One page of the steps of a workflow that are kept. The newest page is the first one; on a page the oldest
/// step comes first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Steps {
    /// The workflow.
    pub workflow: Name,
    /// Its steps, ended ones as long as they are in the history. If the first page has a next, it also has
    /// the head and the step that blocks, however old they are.
    pub steps: Vec<StepView>,
    /// The cursor of the page with older steps, for `after`; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<TaskId>,
    /// How far the server looked, if it stopped before the page was full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looked_back_to: Option<Timestamp>,
}

/// A step of a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepView {
    /// Its place among the steps that are kept, from 1; absent if there are more than one page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// Whether it is its turn.
    pub head: bool,
    /// Whether it failed and blocks the rest.
    pub blocks: bool,
    /// The task.
    #[serde(flatten)]
    pub task: TaskSummary,
}

/// How the steps of an ended workflow ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedSteps {
    /// Steps that succeeded.
    pub done: u64,
    /// Steps that are dead.
    pub dead: u64,
    /// Steps that were cancelled.
    pub cancelled: u64,
    /// When the last one ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_ended_at: Option<Timestamp>,
    /// Whether there may be older steps that the server did not read.
    pub more: bool,
}

impl From<WorkflowRecord> for WorkflowView {
    fn from(workflow: WorkflowRecord) -> Self {
        Self {
            workflow: workflow.name,
            on_failure: Some(workflow.on_failure),
            steps: workflow.steps,
            head: workflow.head,
            head_state: workflow.head_state,
            blocked_by: workflow.blocked_by,
            created_at: workflow.created_at,
            ended: None,
        }
    }
}

/// One page of workflows, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workflows {
    /// The workflows.
    pub workflows: Vec<WorkflowView>,
    /// The cursor of the next page, for `after`; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Name>,
}

/// The answer to retry, skip and cancel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowChange {
    /// The workflow.
    pub workflow: Name,
    /// Tasks that were changed.
    pub changed: u64,
}
