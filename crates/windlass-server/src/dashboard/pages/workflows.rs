//! Workflows: their head, what blocks them, and what can be done.

use maud::{Markup, html};
use windlass_core::{State, TaskId};

use super::super::{
    parts::{Button, Tone, badge, count, cut, empty, name_link, state, table, task_link, time, time_or, top},
    recent::Sheet,
    viewer::{Ask, Viewer, encoded},
};
use crate::{
    api::{StepView, Steps, WorkflowView},
    http::{PageQuery, WorkflowsQuery},
    operations::Result,
};

/// Steps on a page.
const STEPS: u32 = 100;

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
    let query: PageQuery = ask.query()?;
    let after = query.after_task()?;
    let workflow = ask.operations().workflow(ask.name()?).await?;
    let name = workflow.workflow.as_str();
    let steps = ask.operations().workflow_steps(name, after, Some(STEPS)).await?;
    let body = html! {
        (top(&html! { "Workflow " (name) " " (condition(&workflow)) }, &actions(viewer, &workflow)))
        @if let Some(culprit) = workflow.blocked_by {
            (blocked(viewer, culprit, &steps))
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
        section aria-labelledby="steps" {
            h2 id="steps" { "Steps" }
            (step_table(viewer, &steps))
            @if let Some(at) = steps.looked_back_to { p.soft { "Looked at every task back to " (time(at)) " and stopped there." } }
            div.actions {
                @if after.is_some() { a.button href=(viewer.at("/workflows", name)) { "Newest steps" } }
                @if let Some(next) = steps.next {
                    a.button rel="next" href=(format!("{}?after={next}", viewer.at("/workflows", name))) { "Older steps" }
                }
                a.button href=(viewer.link(&format!("/tasks?workflow={}", encoded(name)))) { "Its tasks with filters" }
            }
        }
    };
    Ok(Sheet::new(format!("Workflow {name}"), body))
}

/// The step that blocks the rest, with its error.
fn blocked(viewer: &Viewer, culprit: TaskId, steps: &Steps) -> Markup {
    let step = steps.steps.iter().map(|step| &step.task).find(|step| step.id == culprit);
    let end = step.map_or("dead", |step| step.state.as_str());
    html! {
        div.why.bad {
            p { strong { "It stands still because step " (task_link(viewer, culprit)) " is " (end) "." } }
            @if let Some(error) = step.and_then(|step| step.error.as_deref()) { p { (error) } }
            p { @if end == "cancelled" { "Skip that step, or cancel the rest." } @else { "Retry that step, skip it, or cancel the rest." } }
        }
    }
}

fn step_table(viewer: &Viewer, steps: &Steps) -> Markup {
    html! {
        @if steps.steps.is_empty() {
            (empty("None of its steps was found among the tasks that were looked at.", ""))
        } @else {
            (table("Steps, in their order", &html! {
                th.n scope="col" { "Step" } th scope="col" { "Task" } th scope="col" { "State" } th scope="col" { "Kind" } th.n scope="col" { "Attempt" }
                th scope="col" { "Added" } th scope="col" { "Started" } th scope="col" { "Ended" } th scope="col" { "Error" }
            }, &html! { @for step in &steps.steps { (step_row(viewer, step)) } }))
        }
    }
}

fn step_row(viewer: &Viewer, step: &StepView) -> Markup {
    let task = &step.task;
    html! {
        tr data-key=(task.id) {
            td.n { @match step.number { Some(number) => (number), None => span.soft { "–" } } }
            th scope="row" {
                (task_link(viewer, task.id))
                @if step.head { " " (badge(Tone::Live, "→", if task.state == State::Waiting { "next" } else { "its turn" })) }
                @if step.blocks { " " (badge(Tone::Bad, "✕", "blocks the rest")) }
            }
            td { (state(task.state)) }
            td.kind { (task.kind) }
            td.n { (task.attempt) " of " (task.max_attempts) }
            td { (time(task.enqueued_at)) }
            td { (time_or(task.started_at, "–")) }
            td { (time_or(task.ended_at, "–")) }
            td.wide { @if let Some(error) = &task.error { (cut(error, 160)) } }
        }
    }
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
