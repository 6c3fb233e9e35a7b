//! One task: why it is where it is, its attempts, and what can be done.

use std::time::Duration;

use maud::{Markup, html};
use serde_json::json;
use windlass_core::{Name, State, task::AttemptResult, why::human};

use super::super::{
    chart::{Stretch, time_line},
    parts::{Button, Tone, badge, copy, cut, name_link, now, state, table, task_link, time, time_or, top},
    recent::Sheet,
    viewer::{Ask, Viewer, encoded},
};
use crate::{
    api::{AttemptView, ErrorDetail, TaskView, WhyView},
    operations::Result,
};

pub(in super::super) async fn task(ask: &Ask) -> Result<Sheet> {
    let viewer = &ask.viewer;
    let id = ask.name()?.parse().map_err(|error| ErrorDetail::invalid(format!("{error}")))?;
    let (task, why) = (ask.operations().task(id).await?, ask.operations().why(id).await?);
    let title = format!("Task {id}");
    let body = html! {
        (top(&html! { span.mono { (id) } " " (state(task.state)) }, &actions(viewer, &task)))
        (why_panel(viewer, &task, &why))
        div.two {
            section.panel aria-labelledby="facts" { h2 id="facts" { "Task" } (facts(viewer, &task)) }
            section.panel aria-labelledby="content" {
                h2 { "Payload and output" }
                p.soft { "Not loaded until you ask: they may be large, or not for every eye." }
                div.actions {
                    button type="button" data-show="payload" data-url=(viewer.at("/v1/tasks", &id.to_string())) { "Show the payload" }
                    @if task.output.is_some() {
                        button type="button" data-show="output" data-url=(viewer.at("/v1/tasks", &id.to_string())) { "Show the output" }
                    }
                }
                div data-keep="shown" id="shown" {}
                (again(viewer, &task))
                h2 { "On the command line" }
                (copy(&format!("windlass tasks show {id}")))
                (copy(&format!("windlass tasks why {id}")))
            }
        }
        section aria-labelledby="attempts" { h2 id="attempts" { "Attempts" } (attempts(&task)) }
    };
    Ok(Sheet::new(title, body))
}

fn why_panel(viewer: &Viewer, task: &TaskView, why: &WhyView) -> Markup {
    let tone = match why.state {
        State::Dead => "why bad",
        State::Held | State::Waiting => "why warn",
        State::Done => "why good",
        _ => "why",
    };
    html! {
        div class=(tone) data-why=(why.code) {
            p { strong { (why.sentence) } }
            @match why.hint.as_deref() {
                Some(hint) if hint.starts_with("windlass ") => (copy(hint)),
                Some(hint) => p { (hint) },
                None => {},
            }
            div.actions { (remedy(viewer, task, &why.code)) }
        }
    }
}

/// The button that removes the reason why a task does not run.
fn remedy(viewer: &Viewer, task: &TaskView, code: &str) -> Markup {
    let job = task.job.as_ref().map(Name::as_str).unwrap_or_default();
    let workflow = task.workflow.as_ref().map(Name::as_str).unwrap_or_default();
    match code {
        "queue_paused" => {
            let path = format!("/v1/queues/{}/resume", encoded(task.queue.as_str()));
            Button::new("Resume the queue", "POST /v1/queues/{name}/resume", path)
                .tone(Tone::Live)
                .show(viewer)
        }
        "job_paused" | "job_cancelled" => {
            let button =
                Button::new("Resume the job", "PUT /v1/jobs/{name}", format!("/v1/jobs/{}", encoded(job)));
            button.body(json!({ "state": "active" })).tone(Tone::Live).show(viewer)
        }
        "job_limit" | "job_window" | "job_delay" => {
            html! { a.button href=(viewer.at("/jobs", job)) { "See the job and its limit" } }
        }
        "workflow" | "workflow_blocked" => {
            html! { a.button href=(viewer.at("/workflows", workflow)) { "See the workflow" } }
        }
        "no_worker" | "no_free_slot" | "held_back" => {
            html! { a.button href=(viewer.link("/workers")) { "See the workers" } }
        }
        _ => html! {},
    }
}

fn actions(viewer: &Viewer, task: &TaskView) -> Markup {
    let path = |action: &str| format!("/v1/tasks/{}/{action}", task.id);
    let retry = |label| Button::new(label, "POST /v1/tasks/{id}/retry", path("retry"));
    html! {
        @match task.state {
            State::Dead => (retry("Retry now").tone(Tone::Live).show(viewer)),
            State::Done | State::Cancelled => (retry("Run it again").ask("Add a new task that repeats this one?").show(viewer)),
            _ => (Button::new("Cancel", "POST /v1/tasks/{id}/cancel", path("cancel"))
                .ask("Cancel this task? If it runs, its worker is asked to stop it.").tone(Tone::Bad).show(viewer)),
        }
        @if task.state == State::Dead {
            (Button::new("Remove", "DELETE /v1/tasks/{id}", format!("/v1/tasks/{}", task.id))
                .ask("Remove this dead task for good?").tone(Tone::Bad).show(viewer))
        }
    }
}

fn facts(viewer: &Viewer, task: &TaskView) -> Markup {
    html! {
        dl {
            dt { "Kind" } dd { (task.kind) }
            dt { "Queue" } dd { (name_link(viewer, "/queues", Some(task.queue.as_str()))) }
            dt { "Priority" } dd { (task.priority) }
            @if let Some(job) = &task.job { dt { "Job" } dd { (name_link(viewer, "/jobs", Some(job.as_str()))) } }
            @if let Some(workflow) = &task.workflow { dt { "Workflow" } dd { (name_link(viewer, "/workflows", Some(workflow.as_str()))) } }
            @if let Some(key) = &task.key { dt { "Key" } dd.mono { (key) } }
            dt { "Attempt" } dd { (task.attempt) " of " (task.max_attempts) @if task.crashes > 0 { ", " (task.crashes) " crashes" } }
            @if let Some(worker) = &task.worker { dt { "Worker" } dd.mono { (worker) } }
            @if let Some(ms) = task.timeout_ms { dt { "Time limit" } dd { (human(Duration::from_millis(ms))) } }
            dt { "Added" } dd { (time(task.enqueued_at)) }
            @if let Some(at) = task.due_at { dt { "Due" } dd { (time(at)) } }
            @if let Some(at) = task.started_at { dt { "Started" } dd { (time(at)) } }
            @if let Some(at) = task.ended_at { dt { "Ended" } dd { (time(at)) } }
            @if let Some(id) = task.repeats { dt { "Repeats" } dd { (task_link(viewer, id)) } }
            @if let Some(id) = task.repeated_by { dt { "Repeated by" } dd { (task_link(viewer, id)) } }
            @if let Some(progress) = &task.progress { dt { "Progress" } dd { (progress) } }
            @if let Some(reason) = &task.cancel_requested { dt { "Cancel asked for" } dd { (reason) } }
            @if let Some(error) = &task.error { dt { "Error" } dd { (error) } }
        }
    }
}

/// A form that adds the same task with another payload.
fn again(viewer: &Viewer, task: &TaskView) -> Markup {
    let body = json!({
        "kind": task.kind, "queue": task.queue, "priority": task.priority,
        "job": task.job, "workflow": task.workflow, "max_attempts": task.max_attempts,
    });
    html! {
        @if viewer.may("POST /v1/tasks") {
            details data-keep="again" {
                summary { "Add again with a changed payload" }
                form.send data-call="POST" data-url=(viewer.link("/v1/tasks")) data-body=(body) data-open=(viewer.link("/tasks/")) {
                    label { "Payload (JSON)" textarea name="payload" data-kind="json" data-load=(viewer.at("/v1/tasks", &task.id.to_string())) required spellcheck="false" {} }
                    button.main type="submit" { "Add" }
                }
            }
        }
    }
}

fn attempts(task: &TaskView) -> Markup {
    html! {
        @if task.attempts.is_empty() && task.started_at.is_none() {
            p.soft { "None yet." }
        } @else {
            (line(task))
            (table("Attempts", &html! {
                th.n scope="col" { "Attempt" } th scope="col" { "Result" } th scope="col" { "Started" } th.n scope="col" { "Ran" }
                th scope="col" { "Worker" } th scope="col" { "Error" }
            }, &html! {
                @for attempt in &task.attempts {
                    tr {
                        td.n { (attempt.attempt) }
                        td { (result(attempt.result)) }
                        td { (time_or(attempt.started_at, "–")) }
                        td.n { @if let Some(at) = attempt.started_at { (human(attempt.ended_at.since(at))) } }
                        td.mono { @if let Some(worker) = &attempt.worker { (cut(worker, 40)) } }
                        td.wide { @if let Some(error) = &attempt.error { (error) } }
                    }
                }
                @if task.state == State::Running {
                    tr { td.n { (task.attempt) } td { (state(State::Running)) } td { (time_or(task.started_at, "–")) } td {} td.mono { @if let Some(worker) = &task.worker { (cut(worker, 40)) } } td {} }
                }
            }))
        }
    }
}

/// When the task waited and when it ran.
fn line(task: &TaskView) -> Markup {
    let mut stretches: Vec<_> = task.attempts.iter().filter_map(stretch).collect();
    let last = if task.state.is_ended() { task.ended_at } else { None }.unwrap_or_else(now).as_ms();
    if let (State::Running, Some(at)) = (task.state, task.started_at) {
        stretches.push(Stretch {
            from_ms: at.as_ms(),
            to_ms: last,
            tone: Tone::Live,
            title: "running now".into(),
        });
    }
    let label = format!("{} attempts between the task's start and its end", stretches.len());
    html! { div data-keep-size { (time_line((task.enqueued_at.as_ms(), last), &stretches, &label)) } }
}

fn stretch(attempt: &AttemptView) -> Option<Stretch> {
    let from = attempt.started_at?;
    let ran = human(attempt.ended_at.since(from));
    let title = format!("attempt {}: {} after {ran}", attempt.attempt, word(attempt.result));
    Some(Stretch {
        from_ms: from.as_ms(),
        to_ms: attempt.ended_at.as_ms(),
        tone: tone(attempt.result),
        title,
    })
}

fn result(result: AttemptResult) -> Markup {
    let sign = match tone(result) {
        Tone::Good => "✓",
        Tone::Bad => "✕",
        Tone::Warn => "↻",
        Tone::Live | Tone::Plain => "·",
    };
    badge(tone(result), sign, word(result))
}

fn tone(result: AttemptResult) -> Tone {
    match result {
        AttemptResult::Done => Tone::Good,
        AttemptResult::Dead | AttemptResult::Crashed => Tone::Bad,
        AttemptResult::Retry => Tone::Warn,
        _ => Tone::Plain,
    }
}

fn word(result: AttemptResult) -> &'static str {
    match result {
        AttemptResult::Done => "done",
        AttemptResult::Retry => "failed, tried again",
        AttemptResult::Snoozed => "asked to be called later",
        AttemptResult::Released => "handed back",
        AttemptResult::Crashed => "its worker died",
        AttemptResult::Cancelled => "cancelled",
        AttemptResult::Dead => "failed for good",
        AttemptResult::Redriven => "got new attempts",
    }
}
