//! Workflows: look, retry, skip, cancel.

use windlass_core::{Error, Name, WorkflowAction};

use super::{Operations, Result, list::page_limit};
use crate::api::{ErrorCode, ErrorDetail, WorkflowChange, WorkflowView, Workflows};

impl Operations {
    /// One page of workflows by name, after `after` if given; only blocked ones if asked.
    pub async fn workflows(
        &self,
        blocked: bool,
        after: Option<&Name>,
        limit: Option<u32>,
    ) -> Result<Workflows> {
        let limit = page_limit(limit)?;
        let found = self.store.gates().workflows(blocked, after, limit).await?;
        let next =
            (found.len() as u32 >= limit).then(|| found.last().map(|last| last.name.clone())).flatten();
        Ok(Workflows { workflows: found.into_iter().map(WorkflowView::from).collect(), next })
    }

    /// One workflow that has unfinished steps or is blocked.
    pub async fn workflow(&self, workflow: &str) -> Result<WorkflowView> {
        let name = Name::new("workflow", workflow)?;
        let found = self.store.gates().workflow(&name).await?;
        found.map(WorkflowView::from).ok_or_else(|| missing(&name))
    }

    /// Retries or skips the step that blocks a workflow, or cancels its unfinished steps.
    pub async fn change_workflow(&self, workflow: &str, action: WorkflowAction) -> Result<WorkflowChange> {
        let name = Name::new("workflow", workflow)?;
        let gates = self.store.gates();
        match gates.change_workflow(&name, action).await {
            Ok(changed) => Ok(WorkflowChange { workflow: name, changed }),
            Err(Error::NotFound(_)) => Err(missing(&name)),
            Err(error @ Error::Conflict(_)) => {
                let is_blocked = gates.workflow(&name).await?.is_some_and(|found| found.blocked_by.is_some());
                let hint = match action {
                    WorkflowAction::Retry if is_blocked => "a cancelled step can be skipped, not retried",
                    _ => "only a workflow that is blocked can be retried or skipped",
                };
                Err(ErrorDetail::from(error).hint(hint))
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn missing(name: &Name) -> ErrorDetail {
    ErrorDetail::new(ErrorCode::NotFound, format!("workflow {name} not found"))
        .hint("a workflow is there while it has unfinished steps or is blocked")
}
