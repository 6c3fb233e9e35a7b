//! Dead tasks by cause.

use maud::{Markup, html};
use serde_json::json;

use super::{
    super::{
        chart::columns,
        parts::{Button, count, empty, table, task_link, time_or, top},
        recent::Sheet,
        viewer::{Ask, Viewer, encoded},
    },
    runs::START,
};
use crate::{api::DeadGroup, http::ListQuery, operations::Result};

pub(in super::super) async fn dead(ask: &Ask) -> Result<Sheet> {
    let viewer = &ask.viewer;
    let query: ListQuery = ask.query()?;
    let groups = ask.operations().dead_groups(query.filter()?).await?;
    let body = html! {
        (top(&html! { "Dead tasks by cause" }, &html! { a.button href=(viewer.link("/tasks?state=dead")) { "As a list" } }))
        @if groups.groups.is_empty() && groups.more {
            (empty("None of the newest dead tasks matches. Older ones were not looked at.", ""))
        } @else if groups.groups.is_empty() {
            (empty("No task is dead.", ""))
        } @else {
            (table("Causes", &head(), &html! { @for group in &groups.groups { (row(viewer, group)) } }))
            p.soft.small { "# stands for digits: tasks whose errors differ only in them have one cause." }
            @if groups.more { p.soft { "The newest " (count(groups.looked_at)) " dead tasks were looked at; there are more." } }
        }
    };
    Ok(Sheet::new("Dead tasks", body))
}

fn head() -> Markup {
    html! {
        th scope="col" { "Cause" } th scope="col" { "Kind" } th.n scope="col" { "Tasks" } th scope="col" { "First" } th scope="col" { "Last" } th scope="col" { "When" }
        th scope="col" { "Example" } th scope="col" { "Actions" }
    }
}

/// The cause without "attempt # of #: ", with which the error of every last attempt begins.
fn without_attempt(cause: &str) -> &str {
    cause.strip_prefix("attempt # of #: ").unwrap_or(cause)
}

fn row(viewer: &Viewer, group: &DeadGroup) -> Markup {
    let (kind, cause) = (encoded(group.kind.as_str()), encoded(&group.error));
    let tasks = viewer.link(&format!("/tasks?state=dead&kind={kind}&cause={cause}"));
    html! {
        tr data-key={ (group.kind) " " (group.error) } {
            th.wide scope="row" { (without_attempt(&group.error)) }
            td.kind { (group.kind) }
            td.n { a href=(tasks) { (count(group.count)) } }
            td { (time_or(group.first_ended_at, "–")) }
            td { (time_or(group.last_ended_at, "–")) }
            td { (columns(&group.counts, "deaths over time, from the first of all groups to the last")) }
            td { (task_link(viewer, group.example)) }
            td { div.actions {
                (Button::new("Retry…", START, "/v1/runs".into())
                    .body(json!({ "action": "retry", "filter": { "state": "dead", "kind": group.kind, "cause": group.error } }))
                    .ask(format!("Retry every dead task of the kind {} with this cause?", group.kind)).show(viewer))
            } }
        }
    }
}
