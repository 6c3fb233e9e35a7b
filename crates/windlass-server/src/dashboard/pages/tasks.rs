//! The list of tasks, newest first, by filter.

use maud::{Markup, html};
use serde_json::json;
use windlass_core::{Name, why::human};

use super::{
    super::{
        filters::Chosen,
        parts::{Button, Tone, cut, empty, list, name_link, state, task_link, time, time_or, top},
        recent::Sheet,
        viewer::{Ask, Viewer},
    },
    runs::START,
};
use crate::{api::TaskSummary, http::ListQuery, operations::Result};

/// Tasks on a page.
const ROWS: u32 = 50;

pub(in super::super) async fn tasks(ask: &Ask) -> Result<Sheet> {
    let viewer = &ask.viewer;
    let chosen = Chosen::read(ask.uri.query().unwrap_or_default());
    let query: ListQuery = ask.query()?;
    let after = query.after()?;
    let page = ask.operations().summaries(query.filter()?, after, Some(ROWS)).await?;
    let older = page.next.map(|next| chosen.query(&[("after", &next.to_string())]));
    let body = html! {
        (top(&html! { "Tasks" }, &bulk(viewer, &chosen)))
        (chosen.form(viewer, "/tasks"))
        @if page.tasks.is_empty() {
            (nothing(&chosen, older.is_some()))
        } @else {
            (list("Tasks", &head(), &html! { @for task in &page.tasks { (row(viewer, task)) } }))
        }
        @if let Some(at) = page.looked_back_to { p.soft { "Looked at every task back to " (time(at)) " and stopped there." } }
        div.actions {
            @if after.is_some() { a.button href=(viewer.link(&format!("/tasks?{}", chosen.query(&[])))) { "Newest" } }
            @if let Some(older) = older {
                a.button rel="next" href=(viewer.link(&format!("/tasks?{older}"))) { @if page.looked_back_to.is_some() { "Look further back" } @else { "Older" } }
            }
        }
        (export(viewer, &chosen))
        (picked(viewer))
    };
    Ok(Sheet::new("Tasks", body))
}

fn nothing(chosen: &Chosen, may_be_older: bool) -> Markup {
    if may_be_older {
        empty("No task of those that were looked at matches this filter.", "")
    } else if chosen.is_empty() {
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
        th scope="col" { span.unseen { "Select" } } th scope="col" { "Task" } th scope="col" { "State" } th scope="col" { "Kind" } th scope="col" { "Queue" }
        th scope="col" { "Job or workflow" } th.n scope="col" { "Attempt" } th scope="col" { "Added" }
        th scope="col" { "Started" } th.n scope="col" { "Ran" } th scope="col" { "Error" }
    }
}

fn row(viewer: &Viewer, task: &TaskSummary) -> Markup {
    let id = task.id.to_string();
    html! {
        tr data-key=(id) {
            td { input type="checkbox" data-pick=(id) data-keep={ "pick " (id) } aria-label={ "Select " (id) }; }
            th scope="row" { (task_link(viewer, task.id)) }
            td { (state(task.state)) }
            td.kind { (task.kind) }
            td { (name_link(viewer, "/queues", Some(task.queue.as_str()))) }
            td { (gates(viewer, task)) }
            td.n { (task.attempt) " of " (task.max_attempts) }
            td { (time(task.enqueued_at)) }
            td.line { (time_or(task.started_at, "–")) @if let Some(worker) = &task.worker { " " span.soft.small { "on " (worker) } } }
            td.n { @if let (Some(from), Some(to)) = (task.started_at, task.ended_at) { (human(to.since(from))) } }
            td.wide { @if let Some(error) = &task.error { (cut(error, 120)) } }
        }
    }
}

/// What the task shares with others: its job, its workflow, both or neither.
fn gates(viewer: &Viewer, task: &TaskSummary) -> Markup {
    html! {
        @if let Some(job) = &task.job { (name_link(viewer, "/jobs", Some(job.as_str()))) }
        @if task.job.is_some() && task.workflow.is_some() { br; }
        @if task.workflow.is_some() || task.job.is_none() { (name_link(viewer, "/workflows", task.workflow.as_ref().map(Name::as_str))) }
    }
}

/// Links to everything that the filter matches, as files.
fn export(viewer: &Viewer, chosen: &Chosen) -> Markup {
    let link = |format| viewer.link(&format!("/v1/tasks/export?{}", chosen.query(&[("format", format)])));
    html! {
        @if viewer.may("GET /v1/tasks/export") {
            div.actions.exports {
                a.button href=(link("csv")) download="windlass-tasks.csv" { "Export CSV" }
                a.button href=(link("ndjson")) download="windlass-tasks.ndjson" { "Export NDJSON" }
                span.soft.small { "every task that this filter matches, without payloads" }
            }
        }
    }
}

/// Actions on everything that matches.
fn bulk(viewer: &Viewer, chosen: &Chosen) -> Markup {
    let button = |label, action: &str, tone| {
        let body = json!({ "action": action, "filter": chosen.json() });
        Button::new(label, START, "/v1/runs".into()).body(body).tone(tone)
    };
    html! {
        @if chosen.get("state") == Some("dead") {
            (button("Retry all that match…", "retry", Tone::Plain).ask("Retry every dead task that this filter matches?").show(viewer))
            (button("Remove all that match…", "remove", Tone::Bad).ask("Remove every dead task that this filter matches, for good?").show(viewer))
        }
        @if !chosen.is_empty() && !matches!(chosen.get("state"), Some("done" | "dead" | "cancelled")) {
            (button("Cancel all that match…", "cancel", Tone::Bad).ask("Cancel every task that this filter matches and that has not ended?").show(viewer))
        }
    }
}

/// Actions on the tasks that the viewer has selected. The script shows them and fills in the ids.
fn picked(viewer: &Viewer) -> Markup {
    let button = |label, action: &str, tone| {
        let body = json!({ "action": action, "filter": { "ids": [] } });
        Button::new(label, START, "/v1/runs".into()).body(body).tone(tone)
    };
    html! {
        div.selected.actions id="picked" data-keep="picked" hidden {
            strong { span id="picked-count" { "0" } " selected" }
            (button("Retry them", "retry", Tone::Plain).ask("Retry the selected tasks that are dead?").show(viewer))
            (button("Cancel them", "cancel", Tone::Bad).ask("Cancel the selected tasks that have not ended?").show(viewer))
            (button("Remove them", "remove", Tone::Bad).ask("Remove the selected tasks that are dead, for good?").show(viewer))
        }
    }
}
