//! Jobs: how full each one is, and its limits.

use std::time::Duration;

use maud::{Markup, html};
use serde_json::json;
use windlass_core::{JobState, why::human};

use super::super::{
    chart::bar,
    parts::{Button, Tone, badge, count, empty, table, time, top},
    recent::Sheet,
    viewer::{Ask, Viewer, encoded},
};
use crate::{
    api::JobView,
    http::NamesQuery,
    operations::{DURATION_MAX_MS, Result},
};

const SET: &str = "PUT /v1/jobs/{name}";

pub(in super::super) async fn jobs(ask: &Ask) -> Result<Sheet> {
    let viewer = &ask.viewer;
    let query: NamesQuery = ask.query()?;
    let page = ask.operations().jobs(query.after()?.as_ref(), query.limit()?).await?;
    let body = html! {
        (top(&html! { "Jobs" }, &html! {}))
        @if page.jobs.is_empty() {
            (empty("There is no job. A job is a name that tasks share, with a limit for how many of them run at once.", "windlass jobs set api.example.com --concurrency 4"))
        } @else {
            (table("Jobs", &html! {
                th scope="col" { "Job" } th scope="col" { "State" } th scope="col" { "Running" } th.n scope="col" { "Ready" } th.n scope="col" { "Held" }
                th scope="col" { "Delay" } th scope="col" { "Actions" }
            }, &html! { @for job in &page.jobs { (row(viewer, job)) } }))
            @if let Some(next) = &page.next { a.button rel="next" href=(viewer.link(&format!("/jobs?after={}", encoded(next.as_str())))) { "More" } }
        }
    };
    Ok(Sheet::new("Jobs", body))
}

pub(in super::super) async fn job(ask: &Ask) -> Result<Sheet> {
    let viewer = &ask.viewer;
    let job = ask.operations().job(ask.name()?).await?;
    let name = job.job.as_str();
    let body = html! {
        (top(&html! { "Job " (name) " " (state(job.state)) }, &actions(viewer, &job)))
        section.panel {
            dl {
                dt { "Running" } dd { (occupancy(&job)) }
                dt { "Ready" } dd { (tasks(viewer, name, "ready", job.ready, false)) }
                dt { "Held" } dd { (tasks(viewer, name, "held", job.held, job.held_at_least)) }
                dt { "Delay between starts" } dd { (delay(&job)) @if let Some(at) = job.last_start_at.filter(|_| job.delay_ms.is_some()) { span.soft { ", last start " } (time(at)) } }
                dt { "Made" } dd { (time(job.created_at)) }
            }
        }
        a.button href=(viewer.link(&format!("/tasks?job={}", encoded(name)))) { "Its tasks" }
    };
    Ok(Sheet::new(format!("Job {name}"), body))
}

fn row(viewer: &Viewer, job: &JobView) -> Markup {
    let name = job.job.as_str();
    html! {
        tr data-key=(name) {
            th scope="row" { a href=(viewer.at("/jobs", name)) { (name) } }
            td { (state(job.state)) }
            td { (occupancy(job)) }
            td.n { (tasks(viewer, name, "ready", job.ready, false)) }
            td.n { (tasks(viewer, name, "held", job.held, job.held_at_least)) }
            td { (delay(job)) }
            td { div.actions { (actions(viewer, job)) } }
        }
    }
}

/// How many of its tasks are in a state, with a link to them.
fn tasks(viewer: &Viewer, job: &str, state: &str, n: u64, at_least: bool) -> Markup {
    html! {
        @if n == 0 { span.soft { "0" } } @else {
            a href=(viewer.link(&format!("/tasks?state={state}&job={}", encoded(job)))) { @if at_least { "≥ " } (count(n)) }
        }
    }
}

fn occupancy(job: &JobView) -> Markup {
    html! {
        @match job.concurrency {
            Some(limit) => {
                @let text = format!("{} of {limit}", job.running);
                (text) (bar(job.running, u64::from(limit), &text))
            },
            None => { (count(job.running)) ", no limit" },
        }
    }
}

fn delay(job: &JobView) -> String {
    job.delay_ms.map_or_else(|| "–".into(), |ms| human(Duration::from_millis(ms)))
}

fn state(state: JobState) -> Markup {
    match state {
        JobState::Active => badge(Tone::Good, "▶", "active"),
        JobState::Paused => badge(Tone::Warn, "‖", "paused"),
        JobState::Cancelled => badge(Tone::Bad, "⊘", "cancelled"),
        JobState::Removing => badge(Tone::Warn, "…", "removing"),
    }
}

/// A form behind a summary that changes one thing of a job.
fn form(viewer: &Viewer, path: &str, (what, name): (&str, &str), label: &str, field: &Markup) -> Markup {
    html! {
        details.more data-keep={ (what) " " (name) } {
            summary { (label) }
            form.send data-call="PUT" data-url=(viewer.link(path)) { (field) button.main type="submit" { "Set" } }
        }
    }
}

fn actions(viewer: &Viewer, job: &JobView) -> Markup {
    let name = job.job.as_str();
    let path = format!("/v1/jobs/{}", encoded(name));
    let set = |label, state: JobState| Button::new(label, SET, path.clone()).body(json!({ "state": state }));
    html! {
        @if viewer.may(SET) {
            (form(viewer, &path, ("limit", name), "Limit…", &html! {
                label { "Running at once (empty: no limit)" input name="concurrency" data-kind="number-or-null" type="number" min="0" step="1" value=[job.concurrency]; }
            }))
            (form(viewer, &path, ("delay", name), "Delay…", &html! {
                label { "Least milliseconds between two starts (empty: none)" input name="delay_ms" data-kind="number-or-null" type="number" min="0" max=(DURATION_MAX_MS) step="1" value=[job.delay_ms]; }
            }))
        }
        @match job.state {
            JobState::Active => (set("Pause", JobState::Paused).ask(format!("Pause the job {name}? None of its tasks starts until it is resumed.")).show(viewer)),
            JobState::Paused | JobState::Cancelled => (set("Resume", JobState::Active).show(viewer)),
            JobState::Removing => {},
        }
        @if matches!(job.state, JobState::Active | JobState::Paused) {
            (set("Cancel", JobState::Cancelled).tone(Tone::Bad).ask(format!("Cancel the job {name}? Its tasks that wait are cancelled, and new ones too.")).show(viewer))
        }
    }
}
