//! Workers: how busy each one is, and why one holds back.

use std::time::Duration;

use maud::{Markup, html};
use windlass_core::{Name, Timestamp, worker::SLOTS_MAX};

use super::super::{
    chart::{bar, share},
    parts::{Tone, badge, copy, cut, empty, now, table, time, top},
    recent::Sheet,
    viewer::{Ask, Viewer, encoded},
};
use crate::{
    api::{WorkerState, WorkerView},
    operations::Result,
};

const SET: &str = "PUT /v1/workers/{id}";
/// Letters of a list of kinds or queues.
const NAMES_MAX: usize = 120;

pub(in super::super) async fn workers(ask: &Ask) -> Result<Sheet> {
    let viewer = &ask.viewer;
    let workers = ask.operations().workers().await?.workers;
    let body = html! {
        (top(&html! { "Workers" }, &html! {}))
        @if workers.is_empty() {
            (empty("No worker is registered. Tasks wait until one is.", "windlass worker"))
        } @else {
            (table("Workers", &html! {
                th scope="col" { "Worker" } th scope="col" { "State" } th scope="col" { "Slots" } th scope="col" { "Memory" } th scope="col" { "Holds back?" }
                th scope="col" { "Serves" } th scope="col" { "Seen" } th scope="col" { "Actions" }
            }, &html! { @for worker in &workers { (row(viewer, worker)) } }))
        }
    };
    Ok(Sheet::new("Workers", body))
}

fn row(viewer: &Viewer, worker: &WorkerView) -> Markup {
    let slots = format!("{} of {}", worker.in_flight, worker.max_capacity);
    let memory = format!("{:.0} %", worker.memory_usage * 100.0);
    html! {
        tr data-key=(worker.worker_id) {
            th scope="row" { span.mono { (worker.worker_id) } br; span.soft.small { (worker.host) ", pid " (worker.pid) ", " (worker.version) } }
            td { (condition(worker.state)) }
            td { a href=(tasks_of(viewer, worker)) { (slots) } (bar(u64::from(worker.in_flight), u64::from(worker.max_capacity), &slots)) }
            td { (memory) (share(worker.memory_usage, &memory)) }
            td {
                @if worker.factor < 1.0 {
                    (badge(Tone::Warn, "‖", &format!("takes {:.0} % of its slots", worker.factor * 100.0)))
                    @for reason in worker.reason.split('+').filter(|reason| !reason.is_empty()) { p.small { (in_words(reason)) } }
                } @else { span.soft { "no" } }
            }
            td.wide { (cut(&names(&worker.kinds), NAMES_MAX)) br; span.soft.small { @if worker.queues.is_empty() { "every queue" } @else { "queues: " (cut(&names(&worker.queues), NAMES_MAX)) } } }
            td { (time(seen(worker))) }
            td { (slots_form(viewer, worker)) (drain(worker)) }
        }
    }
}

/// The tasks that a worker runs, or those that it ran last.
fn tasks_of(viewer: &Viewer, worker: &WorkerView) -> String {
    let state = if worker.in_flight > 0 { "state=running&" } else { "" };
    viewer.link(&format!("/tasks?{state}worker={}", encoded(&worker.worker_id)))
}

/// A reason of admission control as a sentence.
fn in_words(reason: &str) -> &str {
    match reason {
        "start" => "It is new and takes more with every round of tasks.",
        "memory" => "Memory is short: it takes fewer tasks until there is room.",
        "memory_stop" => "Memory is nearly full: no task starts while another one runs.",
        "latency" => "Tasks are slower than the threshold of their kind.",
        other => other,
    }
}

/// How to drain a worker: only its own process can do that.
fn drain(worker: &WorkerView) -> Markup {
    html! {
        @if worker.live && !worker.draining {
            details.more data-keep={ "drain " (worker.worker_id) } {
                summary { "Drain…" }
                p.small { "Tell its process to stop: it claims nothing more, finishes its tasks and ends. On " (worker.host) ":" }
                (copy(&format!("kill -TERM {}", worker.pid)))
            }
        }
    }
}

fn names(names: &[Name]) -> String {
    names.iter().map(Name::as_str).collect::<Vec<_>>().join(", ")
}

/// When the worker was last seen, to the second, so that the page does not change between two reports.
fn seen(worker: &WorkerView) -> Timestamp {
    let at = now().before(Duration::from_millis(worker.seen_ago_ms)).as_ms();
    Timestamp::from_ms(at - at.rem_euclid(1_000))
}

fn condition(state: WorkerState) -> Markup {
    match state {
        WorkerState::Live => badge(Tone::Good, "▶", "live"),
        WorkerState::Draining => badge(Tone::Warn, "↓", "draining"),
        WorkerState::Stale => badge(Tone::Warn, "?", "not heard of"),
        WorkerState::Gone => badge(Tone::Bad, "✕", "gone"),
    }
}

fn slots_form(viewer: &Viewer, worker: &WorkerView) -> Markup {
    html! {
        @if viewer.may(SET) && worker.live && !worker.draining {
            details.more data-keep={ "slots " (worker.worker_id) } {
                summary { "Slots…" }
                form.send data-call="PUT" data-url=(viewer.link(&format!("/v1/workers/{}", encoded(&worker.worker_id)))) {
                    label { "Tasks at once" input name="slots" data-kind="number" type="number" min="1" max=(SLOTS_MAX) step="1" required value=(worker.max_capacity); }
                    button.main type="submit" { "Set" }
                }
            }
        }
    }
}
