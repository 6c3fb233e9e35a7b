//! All tasks that a filter matches, as a stream of pieces of text: one page of the store at a time.
//!
//! Between two pieces the export holds nothing but the place where it goes on. So a reader that is slow holds no
//! lock, no transaction and no more than one page.

use serde::Serialize;
use windlass_core::{
    TaskId,
    store::{Filter, SummaryRecord},
};

use super::{super::Operations, Result, csv};
use crate::api::{ErrorDetail, ExportFormat, ExportRequest, TaskSummary};

/// Tasks of an export unless a limit is given.
pub const EXPORT_DEFAULT: u32 = 100_000;
/// Most tasks of one export.
pub const EXPORT_MAX: u32 = 1_000_000;
/// Tasks of one piece.
const PIECE_ROWS: u32 = 500;
/// The same with payloads: the store's page is bounded in bytes too.
const PIECE_ROWS_WHOLE: u32 = 100;

/// An export that has begun.
#[derive(Debug)]
pub struct Export {
    operations: Operations,
    filter: Filter,
    format: ExportFormat,
    payload: bool,
    left: u32,
    written: u64,
    next: Next,
}

/// What comes next.
#[derive(Debug, Clone, Copy)]
enum Next {
    /// The first piece, with the tasks below this one.
    First(Option<TaskId>),
    /// The tasks below this one.
    Below(TaskId),
    /// Nothing.
    End,
}

impl Operations {
    /// Begins an export. Nothing is read before its first piece.
    ///
    /// # Errors
    /// `invalid` (400) if the request breaks a rule.
    pub fn export(&self, request: ExportRequest) -> Result<Export> {
        let ExportRequest { filter, format, payload, after, limit } = request;
        if payload && format == ExportFormat::Csv {
            return Err(ErrorDetail::invalid("payload is only for format=ndjson")
                .hint("a payload is JSON of any shape; ask for format=ndjson"));
        }
        let left = limit.unwrap_or(EXPORT_DEFAULT);
        if !(1..=EXPORT_MAX).contains(&left) {
            return Err(ErrorDetail::invalid(format!("limit is {left}; it must be 1 to {EXPORT_MAX}"))
                .hint("go on with `after` from the last line of the export"));
        }
        Ok(Export {
            operations: self.clone(),
            filter: filter.checked()?,
            format,
            payload,
            left,
            written: 0,
            next: Next::First(after),
        })
    }
}

impl Export {
    /// The next piece; `None` at the end. A piece may be empty: a filter that matches little takes many reads.
    /// Cancel safe: a call that is dropped is made again by the next one.
    ///
    /// # Errors
    /// The store's. The export can go on afterwards with another call.
    pub async fn next(&mut self) -> Result<Option<String>> {
        let (after, mut text) = match self.next {
            Next::End => return Ok(None),
            Next::First(after) => (after, self.head()),
            Next::Below(after) => (Some(after), String::new()),
        };
        let (lines, next) =
            if self.payload { self.whole(after).await? } else { self.summaries(after).await? };
        let left = self.left.saturating_sub(lines.len() as u32);
        let is_cut = match next {
            Some(after) if left == 0 => self.has_more(after).await?,
            _ => false,
        };
        // From here on nothing waits: a call that was dropped before has changed nothing.
        self.left = left;
        self.written += lines.len() as u64;
        text.extend(lines);
        self.next = match next {
            None => Next::End,
            Some(after) if is_cut => {
                text += &self.cut(after, "this is the limit");
                Next::End
            }
            Some(_) if left == 0 => Next::End,
            Some(after) => Next::Below(after),
        };
        Ok(Some(text))
    }

    /// Whether there may be tasks below this one.
    async fn has_more(&self, after: TaskId) -> Result<bool> {
        let page = self.operations.store.summaries(&self.filter, Some(after), 1).await?;
        Ok(!page.tasks.is_empty() || page.next.is_some())
    }

    /// The last line of an export that ends early: how far it got, and where to go on.
    pub fn cut_off(&self, why: &str) -> String {
        match self.next {
            Next::Below(after) => self.cut(after, why),
            Next::First(_) | Next::End => String::new(),
        }
    }

    fn cut(&self, after: TaskId, why: &str) -> String {
        let written = self.written;
        match self.format {
            ExportFormat::Csv => format!("# cut after {written} tasks: {why}; go on with after={after}\r\n"),
            ExportFormat::Ndjson => {
                json_line(&serde_json::json!({"cut": {"tasks": written, "why": why, "after": after}}))
            }
        }
    }

    fn head(&self) -> String {
        match self.format {
            ExportFormat::Csv => csv::HEAD.to_owned(),
            ExportFormat::Ndjson => String::new(),
        }
    }

    async fn summaries(&self, after: Option<TaskId>) -> Result<(Vec<String>, Option<TaskId>)> {
        let page = self.operations.store.summaries(&self.filter, after, self.left.min(PIECE_ROWS)).await?;
        let line = |task: SummaryRecord| match self.format {
            ExportFormat::Csv => csv::line(&TaskSummary::from(task)),
            ExportFormat::Ndjson => json_line(&TaskSummary::from(task)),
        };
        Ok((page.tasks.into_iter().map(line).collect(), page.next))
    }

    async fn whole(&self, after: Option<TaskId>) -> Result<(Vec<String>, Option<TaskId>)> {
        let rows = self.left.min(PIECE_ROWS_WHOLE);
        let page = self.operations.records(&self.filter, after, Some(rows)).await?;
        let line = |task| json_line(&self.operations.view(task));
        Ok((page.tasks.into_iter().map(line).collect(), page.next))
    }
}

fn json_line(value: &impl Serialize) -> String {
    // Our own types always have a JSON form.
    serde_json::to_string(value).map(|json| json + "\n").unwrap_or_default()
}
