//! Schedules: when each one fires next, and what it did last.

use maud::{Markup, html};
use windlass::schedule::Missed;

use super::super::{
    parts::{Button, Tone, badge, copy, cut, empty, name_link, state, table, task_link, time, top},
    recent::Sheet,
    viewer::{Ask, Viewer, encoded},
};
use crate::{
    api::{ScheduleView, ScheduledTask},
    operations::Result,
};

/// Letters of a payload that are shown.
const PAYLOAD_MAX: usize = 400;

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

pub(in super::super) async fn schedule(ask: &Ask) -> Result<Sheet> {
    let viewer = &ask.viewer;
    let schedule = ask.operations().schedule(ask.name()?).await?;
    let name = schedule.name.as_str();
    let body = html! {
        (top(&html! { "Schedule " (name) " " (condition(&schedule)) }, &html! { (actions(viewer, &schedule)) (remove(viewer, name)) }))
        @if let Some(error) = &schedule.error {
            div.why.bad { p { strong { "It cannot be read, so it does not fire: " } (error) } p { "Set it anew." } }
        }
        (passed(&schedule))
        div.two {
            section.panel aria-labelledby="when" { h2 id="when" { "When" } (when(&schedule)) }
            section.panel aria-labelledby="last" {
                h2 id="last" { "Last tick" }
                (last(viewer, &schedule))
                h2 { "On the command line" }
                (copy(&format!("windlass schedules show {}", windlass_core::why::word(&schedule.name))))
            }
        }
        @if let Some(task) = &schedule.task {
            section.panel aria-labelledby="task" { h2 id="task" { "Task of each tick" } (task_facts(viewer, task)) }
        }
    };
    Ok(Sheet::new(format!("Schedule {name}"), body))
}

fn passed(schedule: &ScheduleView) -> Markup {
    html! {
        @if let Some(passed) = &schedule.passed {
            div.why.warn data-passed=(passed.count) {
                p { strong { (passed.sentence) "." } }
                p {
                    "The first was due " (time(passed.first_at))
                    @if passed.last_at > passed.first_at { ", the last " @if passed.at_least { "one counted " } (time(passed.last_at)) }
                    ". They are counted by the present expression."
                }
            }
        }
    }
}

fn when(schedule: &ScheduleView) -> Markup {
    html! {
        dl {
            @if let Some(words) = &schedule.words { dt { "In words" } dd { strong { (words) } } }
            @if let Some(cron) = &schedule.cron { dt { "Expression" } dd { code { (cron) } } }
            @if let Some(zone) = &schedule.tz { dt { "Time zone" } dd { (zone) } }
            dt { "Next ticks" }
            dd {
                @if schedule.paused { "none while it is paused" } @else if schedule.next.is_empty() { "none any more" }
                @for (place, tick) in schedule.next.iter().enumerate() {
                    div { (time(*tick)) @if let Some(local) = schedule.next_local.get(place) { span.soft { ": " (wall(local)) @if let Some(zone) = &schedule.tz { " in " (zone) } } } }
                }
            }
            @if let Some(missed) = schedule.missed { dt { "Missed ticks" } dd { (policy(missed)) } }
        }
    }
}

/// The time on the wall of the schedule's zone: `2027-02-01 03:00`, with seconds if they matter.
fn wall(local: &str) -> String {
    let (text, seconds) = (local.get(..16).unwrap_or(local), local.get(16..19).unwrap_or_default());
    let seconds = if seconds == ":00" { "" } else { seconds };
    format!("{}{seconds}", text.replace('T', " "))
}

fn policy(missed: Missed) -> &'static str {
    match missed {
        Missed::Once => "one task makes up for all of them (once)",
        Missed::Skip => "a tick that is more than a minute late is skipped (skip)",
    }
}

fn last(viewer: &Viewer, schedule: &ScheduleView) -> Markup {
    html! {
        dl {
            dt { "Tick" } dd { @if let Some(at) = schedule.last_at { (time(at)) } @else { "it has not fired yet" } }
            @if let Some(task) = schedule.last_task {
                dt { "Its task" }
                dd { (task_link(viewer, task)) " " @match schedule.last_task_state { Some(of) => (state(of)), None => span.soft { "no longer kept" } } }
                dt { "Added" } dd { (time(task.enqueued_at())) }
            }
        }
    }
}

fn task_facts(viewer: &Viewer, task: &ScheduledTask) -> Markup {
    let name = |name: &Option<windlass_core::Name>| name.as_ref().map(ToString::to_string);
    html! {
        dl {
            dt { "Kind" } dd { (task.kind) }
            dt { "Queue" } dd { (name_link(viewer, "/queues", Some(task.queue.as_str()))) }
            @if task.priority != 0 { dt { "Priority" } dd { (task.priority) } }
            @if let Some(job) = name(&task.job) { dt { "Job" } dd { (name_link(viewer, "/jobs", Some(&job))) } }
            @if let Some(workflow) = name(&task.workflow) { dt { "Workflow" } dd { (name_link(viewer, "/workflows", Some(&workflow))) } }
            @if let Some(attempts) = task.max_attempts { dt { "Attempts" } dd { (attempts) } }
        }
        details data-keep="payload" { summary { "Payload" } pre tabindex="0" { (cut(task.payload.get(), PAYLOAD_MAX)) } }
    }
}

fn row(viewer: &Viewer, schedule: &ScheduleView) -> Markup {
    let name = schedule.name.as_str();
    html! {
        tr data-key=(name) {
            th scope="row" { (name_link(viewer, "/schedules", Some(name))) }
            td {
                (condition(schedule))
                @if let Some(passed) = &schedule.passed { br; (badge(Tone::Warn, "!", &missed(passed.count, passed.at_least))) }
            }
            td {
                @if let Some(words) = &schedule.words { (words) }
                @if let Some(zone) = &schedule.tz { br; span.soft.small { (zone) } }
                @if let Some(error) = &schedule.error { p { (error) } }
            }
            td { @for (place, next) in schedule.next.iter().enumerate() { @if place > 0 { br; } (time(*next)) } @if schedule.next.is_empty() { span.soft { "none" } } }
            td {
                @if let Some(at) = schedule.last_at { (time(at)) } @else { span.soft { "not yet" } }
                @if let Some(task) = schedule.last_task { br; (task_link(viewer, task)) @if let Some(of) = schedule.last_task_state { " " (state(of)) } }
            }
            td { @if let Some(task) = &schedule.task { (task.kind) br; span.soft.small { "queue " (task.queue) } } }
            td { div.actions { (actions(viewer, schedule)) } }
        }
    }
}

fn missed(count: u32, at_least: bool) -> String {
    let (sign, noun) = (if at_least { "≥ " } else { "" }, if count == 1 { "tick" } else { "ticks" });
    format!("{sign}{count} {noun} missed")
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

fn remove(viewer: &Viewer, name: &str) -> Markup {
    let button =
        Button::new("Remove", "DELETE /v1/schedules/{name}", format!("/v1/schedules/{}", encoded(name)));
    let question = format!("Remove the schedule {name}? Tasks that it has added stay.");
    button.ask(question).then("/schedules").tone(Tone::Bad).show(viewer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_on_the_wall_has_seconds_only_if_they_matter() {
        assert_eq!(wall("2027-02-01T03:00:00+01:00"), "2027-02-01 03:00");
        assert_eq!(wall("2027-02-01T03:00:15+01:00"), "2027-02-01 03:00:15");
        assert_eq!(wall("?"), "?");
    }
}
