//! Workflows: tasks one after another.

use serde::{Deserialize, Serialize};
use windlass_core::{Name, OnFailure, State, TaskId, Timestamp, WorkflowRecord};

/// A workflow that has unfinished steps or is blocked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowView {
    /// Its name.
    pub workflow: Name,
    /// What a failure means for the rest.
    pub on_failure: OnFailure,
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
    /// When its first step was admitted.
    pub created_at: Timestamp,
}

impl From<WorkflowRecord> for WorkflowView {
    fn from(workflow: WorkflowRecord) -> Self {
        Self {
            workflow: workflow.name,
            on_failure: workflow.on_failure,
            steps: workflow.steps,
            head: workflow.head,
            head_state: workflow.head_state,
            blocked_by: workflow.blocked_by,
            created_at: workflow.created_at,
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
