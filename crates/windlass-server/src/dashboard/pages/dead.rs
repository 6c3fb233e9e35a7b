//! Dead tasks by cause.

use maud::{Markup, html};
use serde_json::json;

use super::super::{
    filters::Chosen,
    parts::{Button, Tone, count, empty, table, task_link, time_or, top},
    recent::Sheet,
    viewer::{Ask, Viewer, encoded},
};
use crate::{
    api::{DeadGroup, ErrorDetail},
    operations::Result,
};

pub(in super::super) async fn dead(ask: &Ask) -> Result<Sheet> {
    let viewer = &ask.viewer;
    let chosen = Chosen::read(ask.uri.query().unwrap_or_default());
    let filter = serde_json::from_value(chosen.json())
        .map_err(|error| ErrorDetail::invalid(format!("the filter: {error}")))?;
    let groups = ask.operations().dead_groups(filter).await?;
    let body = html! {
        (top(&html! { "Dead tasks by cause" }, &html! { a.button href=(viewer.link("/tasks?state=dead")) { "As a list" } }))
        @if groups.groups.is_empty() {
            (empty("No task is dead.", ""))
        } @else {
            (table("Causes", &head(), &html! { @for group in &groups.groups { (row(viewer, group)) } }))
            @if groups.more { p.soft { "The newest " (count(groups.looked_at)) " dead tasks were looked at; there are more." } }
        }
    };
    Ok(Sheet::new("Dead tasks", body))
}

fn head() -> Markup {
    html! {
        th scope="col" { "Cause" } th scope="col" { "Kind" } th.n scope="col" { "Tasks" } th scope="col" { "Last" }
        th scope="col" { "Example" } th scope="col" { "Actions" }
    }
}

fn row(viewer: &Viewer, group: &DeadGroup) -> Markup {
    html! {
        tr data-key={ (group.kind) " " (group.error) } {
            th.wide scope="row" { (group.error) }
            td { (group.kind) }
            td.n { a href=(viewer.link(&format!("/tasks?state=dead&kind={}", encoded(group.kind.as_str())))) { (count(group.count)) } }
            td { (time_or(group.last_ended_at, "–")) }
            td { (task_link(viewer, group.example)) }
            td { div.actions {
                (Button::new("Retry…", "POST /v1/tasks/retry", "/v1/tasks/retry".into())
                    .body(json!({ "filter": { "state": "dead", "kind": group.kind } })).tone(Tone::Plain)
                    .ask(format!("Retry every dead task of the kind {}?", group.kind)).show(viewer))
            } }
        }
    }
}
