//! Jobs: how full each one is, and its limits.

use std::time::Duration;

use maud::{Markup, html};
use serde_json::json;
use windlass_core::{JobState, why::human};

use super::super::{
    chart::bar,
    parts::{Button, Tone, badge, count, empty, table, top},
    recent::Sheet,
    viewer::{Ask, Viewer, encoded},
};
use crate::{api::JobView, http::NamesQuery, operations::Result};

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
    let tasks = |state: &str| viewer.link(&format!("/tasks?state={state}&job={}", encoded(name)));
    let body = html! {
        (top(&html! { "Job " (name) " " (state(job.state)) }, &actions(viewer, &job)))
        section.panel {
            dl {
                dt { "Running" } dd { (occupancy(&job)) }
                dt { "Ready" } dd { a href=(tasks("ready")) { (count(job.ready)) } }
                dt { "Held" } dd { a href=(tasks("held")) { @if job.held_at_least { "≥ " } (count(job.held)) } }
                dt { "Delay between starts" } dd { (delay(&job)) }
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
            td.n { (count(job.ready)) }
            td.n { @if job.held_at_least { "≥ " } (count(job.held)) }
            td { (delay(job)) }
            td { div.actions { (actions(viewer, job)) } }
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

fn actions(viewer: &Viewer, job: &JobView) -> Markup {
    let name = job.job.as_str();
    let path = format!("/v1/jobs/{}", encoded(name));
    let set = |label, state: JobState| Button::new(label, SET, path.clone()).body(json!({ "state": state }));
    html! {
        @if viewer.may(SET) {
            details.more data-keep={ "limit " (name) } {
                summary { "Limit…" }
                form.send data-call="PUT" data-url=(viewer.link(&path)) {
                    label { "Running at once (empty: no limit)" input name="concurrency" data-kind="number-or-null" type="number" min="0" step="1" value=[job.concurrency]; }
                    button.main type="submit" { "Set" }
                }
            }
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
