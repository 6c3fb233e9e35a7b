//! `windlass tasks show` and `windlass tasks why`.

use windlass_core::TaskId;
use windlass_server::api::{EncodingView, TaskView};

use crate::{
    failure::Exit,
    output::{Output, table::Table, text},
    session::Session,
};

/// Says why a task is not running.
pub async fn why(session: &Session, id: TaskId) -> anyhow::Result<Exit> {
    let backend = session.backend().await?;
    let why = backend.why(id).await?;
    backend.close().await?;
    let out = session.out;
    if out.is_json() {
        out.json(&why)?;
        return Ok(Exit::Done);
    }
    out.line(text::clean(&why.sentence))?;
    if let Some(hint) = &why.hint {
        out.note(format!("hint: {}", text::clean(hint)));
    }
    Ok(Exit::Done)
}

/// Shows everything about a task.
pub async fn show(session: &Session, id: TaskId) -> anyhow::Result<Exit> {
    let backend = session.backend().await?;
    let task = backend.task(id).await?;
    backend.close().await?;
    let out = session.out;
    if out.is_json() {
        out.json(&task)?;
        return Ok(Exit::Done);
    }
    for (name, value) in facts(out, &task) {
        out.line(format!("{name:<10} {value}"))?;
    }
    if !task.attempts.is_empty() {
        out.line("")?;
        for line in attempts(out, &task) {
            out.line(line)?;
        }
    }
    Ok(Exit::Done)
}

fn facts(out: Output, task: &TaskView) -> Vec<(&'static str, String)> {
    let name = |name: &Option<windlass_core::Name>| name.as_ref().map(|name| text::clean(name.as_str()));
    let at = |at: Option<windlass_core::Timestamp>| at.map(|at| text::time(out, at));
    let word = |word: &Option<String>| word.as_deref().map(text::clean);
    let attempt = match task.crashes {
        0 => format!("{} of {}", task.attempt, task.max_attempts),
        crashes => format!("{} of {} ({crashes} crashes)", task.attempt, task.max_attempts),
    };
    let output =
        task.output.as_ref().map(|output| value(output.get(), task.output_encoding.unwrap_or_default()));
    [
        ("id", Some(task.id.to_string())),
        ("state", Some(text::state(out, task.state))),
        ("kind", Some(text::clean(task.kind.as_str()))),
        ("queue", Some(text::clean(task.queue.as_str()))),
        ("job", name(&task.job)),
        ("workflow", name(&task.workflow)),
        ("key", word(&task.key)),
        ("repeats", task.repeats.map(|id| id.to_string())),
        ("repeated", task.repeated_by.map(|id| format!("by {id}"))),
        ("priority", (task.priority != 0).then(|| task.priority.to_string())),
        ("attempt", Some(attempt)),
        ("timeout", task.timeout_ms.map(|ms| format!("{ms} ms"))),
        ("enqueued", Some(text::time(out, task.enqueued_at))),
        ("due", at(task.due_at)),
        ("started", at(task.started_at)),
        ("ended", at(task.ended_at)),
        ("worker", word(&task.worker)),
        ("progress", word(&task.progress)),
        ("cancel", word(&task.cancel_requested)),
        ("error", word(&task.error)),
        ("payload", Some(value(task.payload.get(), task.payload_encoding))),
        ("output", output),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name, value?)))
    .collect()
}

/// A payload on one line. The terminal obeys nothing in it: JSON text escapes control characters, and
/// [`text::clean`] removes the rest.
fn value(json: &str, encoding: EncodingView) -> String {
    match encoding {
        EncodingView::Json => text::clean(json),
        EncodingView::Bytes => format!("bytes {}", text::clean(json)),
    }
}

fn attempts(out: Output, task: &TaskView) -> Vec<String> {
    let mut table = Table::new(&["ATTEMPT", "RESULT", "WORKER", "STARTED", "ENDED", "ERROR"]);
    for attempt in &task.attempts {
        let result = serde_json::to_value(attempt.result).ok();
        table.row(vec![
            attempt.attempt.to_string(),
            result.as_ref().and_then(|result| result.as_str()).unwrap_or("?").to_owned(),
            attempt.worker.clone().unwrap_or_else(|| "-".to_owned()),
            attempt.started_at.map_or_else(|| "-".to_owned(), |at| text::time(out, at)),
            text::time(out, attempt.ended_at),
            attempt.error.as_deref().map(text::clean).unwrap_or_default(),
        ]);
    }
    table.lines()
}
