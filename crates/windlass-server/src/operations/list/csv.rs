//! Tasks as lines of CSV (RFC 4180).

use windlass_core::{Name, Timestamp};

use crate::api::TaskSummary;

/// The first line.
pub(super) const HEAD: &str = "id,state,kind,queue,priority,job,workflow,key,attempt,max_attempts,worker,error,progress,\
     enqueued_at,due_at,started_at,ended_at,cancel_requested\r\n";

/// One task as a line.
pub(super) fn line(task: &TaskSummary) -> String {
    let text = |text: Option<&str>| text.map(cell).unwrap_or_default();
    let time = |at: Option<Timestamp>| at.map(|at| at.to_string()).unwrap_or_default();
    let cells = [
        task.id.to_string(),
        task.state.as_str().to_owned(),
        cell(task.kind.as_str()),
        cell(task.queue.as_str()),
        // A number is a number, also below zero: only texts can be taken for a formula.
        task.priority.to_string(),
        text(task.job.as_ref().map(Name::as_str)),
        text(task.workflow.as_ref().map(Name::as_str)),
        text(task.key.as_deref()),
        task.attempt.to_string(),
        task.max_attempts.to_string(),
        text(task.worker.as_deref()),
        text(task.error.as_deref()),
        text(task.progress.as_deref()),
        task.enqueued_at.to_string(),
        time(task.due_at),
        time(task.started_at),
        time(task.ended_at),
        text(task.cancel_requested.as_deref()),
    ];
    format!("{}\r\n", cells.join(","))
}

/// A text as one cell. A spreadsheet takes a cell that begins with one of these signs for a formula, which can
/// run programs or send data away: an apostrophe before it makes it a text.
fn cell(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠']);
    let safe = if is_formula { format!("'{text}") } else { text.to_owned() };
    if is_formula || safe.contains([',', '"', '\r', '\n']) || safe != safe.trim() {
        return format!("\"{}\"", safe.replace('"', "\"\""));
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_quoted_where_it_must_be() {
        for (text, shown) in [
            ("plain", "plain"),
            ("a,b", "\"a,b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("two\nlines", "\"two\nlines\""),
            (" spaces ", "\" spaces \""),
            ("", ""),
        ] {
            assert_eq!(cell(text), shown);
        }
    }

    #[test]
    fn a_formula_becomes_a_text() {
        for text in ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", "=cmd|' /C calc'!A0"] {
            let shown = cell(text);
            assert!(shown.starts_with("\"'") && shown.ends_with('"'), "{shown}");
            assert_eq!(shown.trim_matches('"').replace("\"\"", "\""), format!("'{text}"));
        }
    }
}
