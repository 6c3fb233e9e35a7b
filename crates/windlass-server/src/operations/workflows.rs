//! Workflows: look, retry, skip, cancel.

use windlass_core::{Error, Name, State, TaskId, WorkflowAction, store::Filter};

use super::{
    Operations, Result,
    list::{READ_ROWS, page_limit},
};
use crate::api::{EndedSteps, ErrorCode, ErrorDetail, WorkflowChange, WorkflowView, Workflows};

mod steps;

/// Reads of the list of tasks that search for the steps of an ended workflow. A read looks at up to 20,000
/// tasks, so the search covers at most a million.
const ENDED_READS_MAX: usize = 50;

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

    /// One workflow: unfinished or blocked, or ended and still in the history.
    pub async fn workflow(&self, workflow: &str) -> Result<WorkflowView> {
        let name = Name::new("workflow", workflow)?;
        match self.store.gates().workflow(&name).await? {
            Some(found) => Ok(found.into()),
            None => self.ended_workflow(&name).await?.ok_or_else(|| missing(&name)),
        }
    }

    /// A workflow that has only ended steps. Each read looks at a bounded number of the newest tasks, so
    /// older steps may be missed.
    async fn ended_workflow(&self, name: &Name) -> Result<Option<WorkflowView>> {
        let filter = Filter { workflow: Some(name.clone()), ..Filter::default() };
        let (mut ended, mut oldest, mut after) = (EndedSteps::default(), None, None);
        for _ in 0..ENDED_READS_MAX {
            let page = self.store.tasks(&filter, after, READ_ROWS).await?;
            for step in &page.tasks {
                match step.state {
                    State::Done => ended.done += 1,
                    State::Dead => ended.dead += 1,
                    State::Cancelled => ended.cancelled += 1,
                    // A step was appended meanwhile; the next query finds the workflow itself.
                    _ => continue,
                }
                ended.last_ended_at = ended.last_ended_at.max(step.ended_at);
                oldest = Some(step.id);
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        ended.more = after.is_some();
        Ok(oldest.map(|oldest: TaskId| WorkflowView {
            workflow: name.clone(),
            on_failure: None,
            steps: 0,
            head: None,
            head_state: None,
            blocked_by: None,
            created_at: oldest.enqueued_at(),
            ended: Some(ended),
        }))
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
        .hint("a workflow exists while it has unfinished steps or is blocked, and afterwards as long as its steps are kept")
}
