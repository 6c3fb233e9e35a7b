//! The list of tasks, newest first, by filter.

use maud::{Markup, html};
use serde_json::json;

use super::super::{
    filters::{Chosen, form_pairs},
    parts::{Button, Tone, cut, empty, list, name_link, state, task_link, time, time_or, top},
    recent::Sheet,
    viewer::{Ask, Viewer},
};
use crate::{api::TaskView, operations::Result};

/// Tasks on a page.
const ROWS: u32 = 50;

pub(in super::super) async fn tasks(ask: &Ask) -> Result<Sheet> {
    let viewer = &ask.viewer;
    let query = ask.uri.query().unwrap_or_default();
    let chosen = Chosen::read(query);
    let after = form_pairs(query).find(|(name, _)| name == "after").map(|(_, id)| id);
    let filter = serde_json::from_value(chosen.json())
        .map_err(|error| crate::api::ErrorDetail::invalid(format!("the filter: {error}")))?;
    let after_id = after
        .as_deref()
        .map(str::parse)
        .transpose()
        .map_err(|error| crate::api::ErrorDetail::invalid(format!("after: {error}")))?;
    let page = ask.operations().tasks(filter, after_id, Some(ROWS)).await?;
    let body = html! {
        (top(&html! { "Tasks" }, &bulk(viewer, &chosen)))
        (chosen.form(viewer, "/tasks"))
        @if page.tasks.is_empty() {
            (nothing(&chosen))
        } @else {
            (list("Tasks", &head(), &html! { @for task in &page.tasks { (row(viewer, task)) } }))
            div.actions {
                @if after.is_some() { a.button href=(viewer.link(&format!("/tasks?{}", chosen.query(&[])))) { "Newest" } }
                @if let Some(next) = page.next {
                    a.button rel="next" href=(viewer.link(&format!("/tasks?{}", chosen.query(&[("after", &next.to_string())])))) { "Older" }
                }
            }
        }
    };
    Ok(Sheet::new("Tasks", body))
}

fn nothing(chosen: &Chosen) -> Markup {
    if chosen.is_empty() {
        empty("There is no task yet.", "windlass enqueue echo --payload '{\"hello\":\"world\"}'")
    } else {
        empty(
            "No task matches this filter. Tasks that are done leave the list after the time that history is kept.",
            "",
        )
    }
}

fn head() -> Markup {
    html! {
        th scope="col" { "Task" } th scope="col" { "State" } th scope="col" { "Kind" } th scope="col" { "Queue" }
        th scope="col" { "Job" } th scope="col" { "Workflow" } th.n scope="col" { "Attempt" } th scope="col" { "Added" }
        th scope="col" { "Started" } th scope="col" { "Error" }
    }
}

fn row(viewer: &Viewer, task: &TaskView) -> Markup {
    let id = task.id.to_string();
    html! {
        tr data-key=(id) {
            th scope="row" { (task_link(viewer, task.id)) }
            td { (state(task.state)) }
            td { (task.kind) }
            td { (name_link(viewer, "/queues", Some(task.queue.as_str()))) }
            td { (name_link(viewer, "/jobs", task.job.as_ref().map(|job| job.as_str()))) }
            td { (name_link(viewer, "/workflows", task.workflow.as_ref().map(|workflow| workflow.as_str()))) }
            td.n { (task.attempt) " of " (task.max_attempts) }
            td { (time(task.enqueued_at)) }
            td { (time_or(task.started_at, "–")) }
            td.wide { @if let Some(error) = &task.error { (cut(error, 120)) } }
        }
    }
}

/// Actions on everything that matches.
fn bulk(viewer: &Viewer, chosen: &Chosen) -> Markup {
    let button = |label, call: &'static str, tone| {
        let path = call.trim_start_matches("POST ").to_owned();
        Button::new(label, call, path).body(json!({ "filter": chosen.json() })).tone(tone)
    };
    html! {
        @if chosen.get("state") == Some("dead") {
            (button("Retry all that match…", "POST /v1/tasks/retry", Tone::Plain).ask("Retry every dead task that this filter matches?").show(viewer))
        }
        @if !chosen.is_empty() && !matches!(chosen.get("state"), Some("done" | "dead" | "cancelled")) {
            (button("Cancel all that match…", "POST /v1/tasks/cancel", Tone::Bad).ask("Cancel every task that this filter matches and that has not ended?").show(viewer))
        }
    }
}
