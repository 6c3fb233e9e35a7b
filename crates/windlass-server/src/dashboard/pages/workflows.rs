//! Workflows: their head, what blocks them, and what can be done.

use maud::{Markup, html};

use super::super::{
    parts::{Button, Tone, badge, count, empty, name_link, state, table, task_link, time, top},
    recent::Sheet,
    viewer::{Ask, Viewer, encoded},
};
use crate::{api::WorkflowView, http::WorkflowsQuery, operations::Result};

pub(in super::super) async fn workflows(ask: &Ask) -> Result<Sheet> {
    let viewer = &ask.viewer;
    let query: WorkflowsQuery = ask.query()?;
    let blocked = query.blocked()?;
    let names = query.page();
    let page = ask.operations().workflows(blocked, names.after()?.as_ref(), names.limit()?).await?;
    let body = html! {
        (top(&html! { "Workflows" }, &html! {
            @if blocked { a.button href=(viewer.link("/workflows")) { "All" } }
            @else { a.button href=(viewer.link("/workflows?blocked=true")) { "Only blocked ones" } }
        }))
        @if page.workflows.is_empty() {
            @if blocked { (empty("No workflow is blocked.", "")) }
            @else { (empty("No workflow has an unfinished step. Tasks of one workflow run in the order in which they were added.", "windlass enqueue echo --workflow order-1")) }
        } @else {
            (table("Workflows", &html! {
                th scope="col" { "Workflow" } th scope="col" { "State" } th.n scope="col" { "Steps left" } th scope="col" { "Head" } th scope="col" { "Made" } th scope="col" { "Actions" }
            }, &html! { @for workflow in &page.workflows { (row(viewer, workflow)) } }))
            @if let Some(next) = &page.next {
                a.button rel="next" href=(viewer.link(&format!("/workflows?blocked={blocked}&after={}", encoded(next.as_str())))) { "More" }
            }
        }
    };
    Ok(Sheet::new("Workflows", body))
}

pub(in super::super) async fn workflow(ask: &Ask) -> Result<Sheet> {
    let viewer = &ask.viewer;
    let workflow = ask.operations().workflow(ask.name()?).await?;
    let name = workflow.workflow.as_str();
    let body = html! {
        (top(&html! { "Workflow " (name) " " (condition(&workflow)) }, &actions(viewer, &workflow)))
        @if let Some(culprit) = workflow.blocked_by {
            div.why.bad { p { strong { "It stands still because step " (task_link(viewer, culprit)) " is dead." } } p { "Retry that step, skip it, or cancel the rest." } }
        }
        section.panel {
            dl {
                dt { "Steps left" } dd { (count(workflow.steps)) }
                dt { "Head" } dd { @if let Some(head) = workflow.head { (task_link(viewer, head)) " " } @if let Some(of) = workflow.head_state { (state(of)) } }
                dt { "When a step fails" } dd { @match workflow.on_failure { Some(policy) => (policy.as_str()), None => "–" } }
                dt { "Made" } dd { (time(workflow.created_at)) }
                @if let Some(ended) = &workflow.ended {
                    dt { "Ended" } dd { (count(ended.done)) " done, " (count(ended.dead)) " dead, " (count(ended.cancelled)) " cancelled" @if ended.more { ", and more" } }
                }
            }
        }
        a.button href=(viewer.link(&format!("/tasks?workflow={}", encoded(name)))) { "Its tasks" }
    };
    Ok(Sheet::new(format!("Workflow {name}"), body))
}

fn row(viewer: &Viewer, workflow: &WorkflowView) -> Markup {
    let name = workflow.workflow.as_str();
    html! {
        tr data-key=(name) {
            th scope="row" { (name_link(viewer, "/workflows", Some(name))) }
            td { (condition(workflow)) }
            td.n { (count(workflow.steps)) }
            td { @if let Some(head) = workflow.head { (task_link(viewer, head)) " " } @if let Some(of) = workflow.head_state { (state(of)) } }
            td { (time(workflow.created_at)) }
            td { div.actions { (actions(viewer, workflow)) } }
        }
    }
}

fn condition(workflow: &WorkflowView) -> Markup {
    if workflow.blocked_by.is_some() {
        badge(Tone::Bad, "✕", "blocked")
    } else if workflow.steps == 0 {
        badge(Tone::Good, "✓", "ended")
    } else {
        badge(Tone::Live, "▶", "going on")
    }
}

fn actions(viewer: &Viewer, workflow: &WorkflowView) -> Markup {
    let name = workflow.workflow.as_str();
    let path = |action: &str| format!("/v1/workflows/{}/{action}", encoded(name));
    html! {
        @if workflow.blocked_by.is_some() {
            (Button::new("Retry the step", "POST /v1/workflows/{name}/retry", path("retry")).tone(Tone::Live).show(viewer))
            (Button::new("Skip the step", "POST /v1/workflows/{name}/skip", path("skip"))
                .ask(format!("Skip the dead step of {name}? The next step runs as if it had succeeded.")).show(viewer))
        }
        @if workflow.steps > 0 {
            (Button::new("Cancel the rest", "POST /v1/workflows/{name}/cancel", path("cancel")).tone(Tone::Bad)
                .ask(format!("Cancel every step of {name} that has not ended?")).show(viewer))
        }
    }
}
