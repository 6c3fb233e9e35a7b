//! Bulk runs: progress, report, and how to stop one.

use std::time::Duration;

use maud::{Markup, html};
use serde_json::Value;
use windlass_core::why::human;

use super::super::{
    chart::bar,
    parts::{Button, Tone, badge, count, cut, empty, table, task_link, time, top},
    recent::Sheet,
    viewer::{Ask, Viewer},
};
use crate::{
    api::{RunAction, RunState, RunView, TaskFilter},
    operations::Result,
};

/// The call that starts a run.
pub(super) const START: &str = "POST /v1/runs";

pub(in super::super) async fn runs(ask: &Ask) -> Result<Sheet> {
    let viewer = &ask.viewer;
    let runs = ask.operations().runs().await?.runs;
    let body = html! {
        (top(&html! { "Bulk runs" }, &html! {}))
        @if runs.is_empty() {
            (empty(
                "There is no bulk run. It retries, cancels or removes every task that a filter matches, over a time that you choose: from the lists of tasks and of dead tasks, or so:",
                "windlass tasks retry --state dead --over 10m"
            ))
        } @else {
            (table("Bulk runs", &head(), &html! { @for run in &runs { (row(viewer, run)) } }))
        }
    };
    Ok(Sheet::new("Bulk runs", body))
}

fn head() -> Markup {
    html! {
        th scope="col" { "Run" } th scope="col" { "State" } th scope="col" { "Progress" } th scope="col" { "What" } th scope="col" { "Over" }
        th scope="col" { "Started" } th scope="col" { "By" } th scope="col" { "Last change" } th scope="col" { "Actions" }
    }
}

fn row(viewer: &Viewer, run: &RunView) -> Markup {
    html! {
        tr data-key=(run.id) {
            th scope="row" { (run.id) }
            td { (state(run.state)) @if let Some(by) = &run.stopped_by { div.soft.small { "by " (by) } } }
            td { (progress(viewer, run)) }
            td.wide { (what(run.action)) " " span.soft { (chosen(&run.filter)) } }
            td { @if run.over_ms == 0 { "at once" } @else { (human(Duration::from_millis(run.over_ms))) } }
            td { (time(run.started_at)) }
            td { (run.by) }
            td { (time(run.updated_at)) }
            td { @if !run.has_ended() {
                (Button::new("Stop", "POST /v1/runs/{id}/stop", format!("/v1/runs/{}/stop", run.id)).tone(Tone::Bad)
                    .ask(format!("Stop run {}? What it has not changed stays as it is.", run.id)).show(viewer))
            } }
        }
    }
}

fn progress(viewer: &Viewer, run: &RunView) -> Markup {
    let more = if run.more { " or more" } else { "" };
    let text = format!("{} of {}{more} changed", count(run.changed), count(run.matched));
    html! {
        (text) (bar(run.changed + run.refused, run.matched, &text))
        @if let Some(failure) = &run.failure { p.small { strong { (failure.message) } } }
        @if run.refused > 0 {
            details.more data-keep={ "refused " (run.id) " " (run.refused) } {
                summary { (count(run.refused)) " could not be changed" }
                ul { @for refusal in &run.refusals { li { (task_link(viewer, refusal.id)) " " (refusal.error.message) } } }
            }
        }
    }
}

fn state(state: RunState) -> Markup {
    let (tone, sign) = match state {
        RunState::Running => (Tone::Live, "▶"),
        RunState::Done => (Tone::Good, "✓"),
        RunState::Stopped => (Tone::Warn, "⊘"),
        RunState::Failed => (Tone::Bad, "✕"),
    };
    badge(tone, sign, state.as_str())
}

fn what(action: RunAction) -> &'static str {
    match action {
        RunAction::Retry => "Retry",
        RunAction::Cancel => "Cancel",
        RunAction::Remove => "Remove",
    }
}

/// The filter in a few words.
fn chosen(filter: &TaskFilter) -> String {
    let Ok(Value::Object(fields)) = serde_json::to_value(filter) else { return String::new() };
    let word = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => format!("{} of them", values.len()),
        value => value.to_string(),
    };
    let words: Vec<_> = fields.iter().map(|(name, value)| format!("{name} {}", word(value))).collect();
    if words.is_empty() { "all".to_owned() } else { cut(&words.join(", "), 160) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_told_in_a_few_words() {
        let told = |json: &str| chosen(&serde_json::from_str(json).unwrap());
        assert_eq!(told("{}"), "all");
        assert_eq!(told(r#"{"kind":"http","state":"dead"}"#), "kind http, state dead");
        assert_eq!(told(r#"{"ids":["01JD3M8K2ZQ4R"]}"#), "ids 1 of them");
    }
}
