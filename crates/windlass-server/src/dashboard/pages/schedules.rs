//! Schedules: when each one fires next, and what it did last.

use maud::{Markup, html};

use super::super::{
    parts::{Button, Tone, badge, empty, table, task_link, time, top},
    recent::Sheet,
    viewer::{Ask, Viewer, encoded},
};
use crate::{api::ScheduleView, operations::Result};

pub(in super::super) async fn schedules(ask: &Ask) -> Result<Sheet> {
    let viewer = &ask.viewer;
    let schedules = ask.operations().schedules().await?.schedules;
    let body = html! {
        (top(&html! { "Schedules" }, &html! {}))
        @if schedules.is_empty() {
            (empty("There is no schedule. A schedule adds a task at the times of a cron expression.", "windlass schedules set nightly --cron '0 3 * * *' --tz Europe/Berlin report"))
        } @else {
            (table("Schedules", &html! {
                th scope="col" { "Schedule" } th scope="col" { "State" } th scope="col" { "When" } th scope="col" { "Next" } th scope="col" { "Last" }
                th scope="col" { "Task" } th scope="col" { "Actions" }
            }, &html! { @for schedule in &schedules { (row(viewer, schedule)) } }))
        }
    };
    Ok(Sheet::new("Schedules", body))
}

fn row(viewer: &Viewer, schedule: &ScheduleView) -> Markup {
    let name = schedule.name.as_str();
    html! {
        tr data-key=(name) {
            th scope="row" { (name) }
            td { (condition(schedule)) }
            td {
                @if let Some(cron) = &schedule.cron { code { (cron) } }
                @if let Some(zone) = &schedule.tz { br; span.soft.small { (zone) } }
                @if let Some(error) = &schedule.error { p { (error) } }
                @for warning in &schedule.warnings { p.soft { (warning) } }
            }
            td { @for (place, next) in schedule.next.iter().take(3).enumerate() { @if place > 0 { br; } (time(*next)) } @if schedule.next.is_empty() { span.soft { "never" } } }
            td {
                @if let Some(at) = schedule.last_at { (time(at)) } @else { span.soft { "never" } }
                @if let Some(task) = schedule.last_task { br; (task_link(viewer, task)) }
            }
            td { @if let Some(task) = &schedule.task { (task.kind) br; span.soft.small { "queue " (task.queue) } } }
            td { div.actions { (actions(viewer, schedule)) } }
        }
    }
}

fn condition(schedule: &ScheduleView) -> Markup {
    if schedule.error.is_some() {
        badge(Tone::Bad, "✕", "broken")
    } else if schedule.paused {
        badge(Tone::Warn, "‖", "paused")
    } else {
        badge(Tone::Good, "▶", "on")
    }
}

fn actions(viewer: &Viewer, schedule: &ScheduleView) -> Markup {
    let name = schedule.name.as_str();
    let path = |action: &str| format!("/v1/schedules/{}/{action}", encoded(name));
    html! {
        (Button::new("Run now", "POST /v1/schedules/{name}/run", path("run"))
            .ask(format!("Add one task of the schedule {name} now? Its next times stay as they are.")).show(viewer))
        @if schedule.paused {
            (Button::new("Resume", "POST /v1/schedules/{name}/resume", path("resume")).show(viewer))
        } @else {
            (Button::new("Pause", "POST /v1/schedules/{name}/pause", path("pause"))
                .ask(format!("Pause the schedule {name}? It adds no task until it is resumed.")).show(viewer))
        }
    }
}
