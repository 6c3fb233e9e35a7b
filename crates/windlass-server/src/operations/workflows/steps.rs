//! The steps of a workflow, in their order.

use windlass_core::{
    Name, TaskId, WorkflowRecord,
    store::{Filter, SummaryRecord},
};

use super::{super::list::page_limit, Operations, Result, missing};
use crate::api::{StepView, Steps};

/// Reads of the store for one page. Each looks at up to 20,000 tasks of all workflows.
const READS_MAX: usize = 5;

impl Operations {
    /// One page of the steps of a workflow that are kept, the newest page first; on the page the oldest step
    /// comes first. The first page also has the head and the step that blocks, however old they are.
    pub async fn workflow_steps(
        &self,
        workflow: &str,
        after: Option<TaskId>,
        limit: Option<u32>,
    ) -> Result<Steps> {
        let (name, limit) = (Name::new("workflow", workflow)?, page_limit(limit)?);
        let record = self.store.gates().workflow(&name).await?;
        let filter = Filter { workflow: Some(name.clone()), ..Filter::default() };
        let (mut found, mut next) = (Vec::new(), after);
        for _ in 0..READS_MAX {
            let page = self.store.summaries(&filter, next, limit - found.len() as u32).await?;
            found.extend(page.tasks);
            next = page.next;
            if next.is_none() || found.len() as u32 >= limit {
                break;
            }
        }
        if found.is_empty() && record.is_none() && after.is_none() && next.is_none() {
            return Err(missing(&name));
        }
        let is_full = found.len() as u32 >= limit;
        let is_whole = after.is_none() && next.is_none();
        if after.is_none() && next.is_some() {
            found.extend(self.named_steps(record.as_ref(), &filter, &found).await?);
        }
        found.sort_unstable_by_key(|step| step.id);
        let first = if is_whole { Some(1) } else { None };
        let view = |(place, step): (u64, SummaryRecord)| StepView {
            number: first.map(|first: u64| first + place),
            head: record.as_ref().is_some_and(|record| record.head == Some(step.id)),
            blocks: record.as_ref().is_some_and(|record| record.blocked_by == Some(step.id)),
            task: step.into(),
        };
        Ok(Steps {
            workflow: name,
            steps: (0..).zip(found).map(view).collect(),
            next,
            looked_back_to: next.filter(|_| !is_full).map(TaskId::enqueued_at),
        })
    }

    /// The head of a workflow and the step that blocks it, if they are older than what was found.
    async fn named_steps(
        &self,
        record: Option<&WorkflowRecord>,
        filter: &Filter,
        found: &[SummaryRecord],
    ) -> Result<Vec<SummaryRecord>> {
        let named = record.into_iter().flat_map(|record| [record.head, record.blocked_by]).flatten();
        let ids: Vec<_> = named.filter(|id| found.iter().all(|step| step.id != *id)).collect();
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let limit = ids.len() as u32;
        Ok(self.store.summaries(&Filter { ids: Some(ids), ..filter.clone() }, None, limit).await?.tasks)
    }
}
