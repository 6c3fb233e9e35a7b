//! Look-ups: one task, pages of tasks, and why a task does not run.

use std::{
    collections::BTreeSet,
    time::{SystemTime, UNIX_EPOCH},
};

use windlass_core::{
    State, TaskId, TaskRecord, Timestamp, repeat,
    store::{Filter, PAGE_MAX, Page, Summaries, SummaryRecord},
    why::{Surroundings, why},
};

mod csv;
mod export;

use super::{Operations, Result};
use crate::api::{ErrorCode, ErrorDetail, SummaryPage, TaskFilter, TaskPage, TaskView, WhyView};

pub use export::{EXPORT_DEFAULT, EXPORT_MAX, Export};

/// Tasks on a page unless a limit is given.
pub const LIST_LIMIT_DEFAULT: u32 = 50;
/// Most bytes of payloads and outputs on a page, approximately. A page that reaches it is short and has a
/// next one.
pub const LIST_BYTES_MAX: usize = 8 << 20;
/// Rows of one read of the store: with the largest payloads they still fit in memory.
pub(super) const READ_ROWS: u32 = 100;
/// Reads of the store for one page of summaries by cause. Each reads up to a thousand errors.
const CAUSE_READS: u32 = 5;
/// Queues in which a key without a queue is looked up.
const KEY_QUEUES_MAX: usize = 100;

impl Operations {
    /// One task, with the tasks that it repeats and that repeats it.
    pub async fn task(&self, id: TaskId) -> Result<TaskView> {
        let mut view = self.view(self.record(id).await?);
        if matches!(view.state, State::Done | State::Cancelled) {
            view.repeated_by = self.store.key_holder(&view.queue, &repeat::key_of(id)).await?;
        }
        Ok(view)
    }

    /// One page of tasks, newest first, older than `after` if given.
    pub async fn tasks(
        &self,
        filter: TaskFilter,
        after: Option<TaskId>,
        limit: Option<u32>,
    ) -> Result<TaskPage> {
        let page = self.records(&filter.checked()?, after, limit).await?;
        Ok(TaskPage { tasks: page.tasks.into_iter().map(|task| self.view(task)).collect(), next: page.next })
    }

    /// One page of summaries, newest first, older than `after` if given: no payload is even read.
    ///
    /// A task that its key still belongs to is found by the key, however old it is. Without a queue it is on the
    /// first page, and again on the page that looks back as far.
    pub async fn summaries(
        &self,
        filter: TaskFilter,
        after: Option<TaskId>,
        limit: Option<u32>,
    ) -> Result<SummaryPage> {
        let (filter, limit) = (filter.checked()?, page_limit(limit)?);
        let mut page = Summaries { tasks: Vec::new(), next: after };
        let reads = if filter.cause.is_some() { CAUSE_READS } else { 1 };
        for _ in 0..reads {
            let left = limit - page.tasks.len() as u32;
            let read = self.store.summaries(&filter, page.next, left).await?;
            page.tasks.extend(read.tasks);
            page.next = read.next;
            if page.next.is_none() || page.tasks.len() as u32 >= limit {
                break;
            }
        }
        let is_full = page.tasks.len() as u32 >= limit;
        let looked_back_to = page.next.filter(|_| !is_full && filter.ids.is_none()).map(TaskId::enqueued_at);
        if after.is_none() && page.next.is_some() && !is_full {
            page.tasks.extend(self.holders(&filter, page.next, limit - page.tasks.len() as u32).await?);
        }
        let tasks = page.tasks.into_iter().map(Into::into).collect();
        Ok(SummaryPage { tasks, next: page.next, looked_back_to })
    }

    /// The tasks that the key of a filter belongs to in any queue, below `after`.
    async fn holders(
        &self,
        filter: &Filter,
        after: Option<TaskId>,
        limit: u32,
    ) -> Result<Vec<SummaryRecord>> {
        let (Some(key), None, None) = (&filter.key, &filter.queue, &filter.ids) else {
            return Ok(Vec::new());
        };
        let lanes = self.store.lane_records().await?;
        let queues: BTreeSet<_> = lanes.into_iter().map(|lane| lane.queue).collect();
        let mut ids = Vec::new();
        for queue in queues.iter().take(KEY_QUEUES_MAX) {
            ids.extend(self.store.key_holder(queue, key).await?);
        }
        let found = Filter { ids: Some(ids), ..filter.clone() };
        Ok(self.store.summaries(&found, after, limit).await?.tasks)
    }

    /// The same as the store keeps them: the payloads still contain secrets.
    pub(crate) async fn records(
        &self,
        filter: &Filter,
        after: Option<TaskId>,
        limit: Option<u32>,
    ) -> Result<Page> {
        let limit = page_limit(limit)?;
        let mut page = Page { tasks: Vec::new(), next: after };
        let mut bytes = 0;
        loop {
            let wanted = (limit - page.tasks.len() as u32).min(READ_ROWS);
            let read = self.store.tasks(filter, page.next, wanted).await?;
            page.next = read.next;
            let is_full = read.tasks.len() as u32 >= wanted;
            let mut rest = read.tasks.into_iter();
            while let Some(task) = rest.next() {
                let id = task.id;
                bytes += task.payload.len() + task.output.as_ref().map_or(0, windlass_core::Payload::len);
                page.tasks.push(task);
                if bytes > LIST_BYTES_MAX && (rest.len() > 0 || page.next.is_some()) {
                    page.next = Some(id);
                    return Ok(page);
                }
            }
            // The store looks at a bounded number of rows per call. A short read ends the page, so that a
            // filter that matches little costs the caller more pages and not the server a long loop.
            if page.next.is_none() || !is_full || page.tasks.len() as u32 >= limit {
                return Ok(page);
            }
        }
    }

    /// Why a task is not running, or that it is, or that it has ended.
    pub async fn why(&self, id: TaskId) -> Result<WhyView> {
        let task = self.record(id).await?;
        let around = Surroundings::of(&task, &*self.store, wall_clock()).await?;
        let why = why(&task, &around);
        Ok(WhyView { id, state: task.state, code: why.code, sentence: why.sentence, hint: why.hint })
    }

    pub(crate) async fn record(&self, id: TaskId) -> Result<TaskRecord> {
        self.store.task(id).await?.ok_or_else(|| missing(id))
    }
}

/// How many rows a page may have.
pub(crate) fn page_limit(limit: Option<u32>) -> Result<u32> {
    match limit.unwrap_or(LIST_LIMIT_DEFAULT) {
        limit @ 1..=PAGE_MAX => Ok(limit),
        limit => Err(ErrorDetail::invalid(format!("limit is {limit}; it must be 1 to {PAGE_MAX}"))
            .hint("use `after` with the answer's `next` for more")),
    }
}

/// The error for a task that does not exist.
pub(super) fn missing(id: TaskId) -> ErrorDetail {
    ErrorDetail::new(ErrorCode::NotFound, format!("task {id} not found"))
        .hint("it never existed, or its history has been removed (history_days)")
}

/// The wall clock, only for sentences such as "due in 5 s"; no decision uses it.
fn wall_clock() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_ms(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
