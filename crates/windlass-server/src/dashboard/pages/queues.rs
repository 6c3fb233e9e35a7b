//! Queues: how many tasks of each state, and pause and resume.

use maud::{Markup, html};
use windlass_core::{Depth, State};

use super::super::{
    parts::{Button, Tone, badge, count, empty, name_link, table, top},
    recent::Sheet,
    viewer::{Ask, Viewer, encoded},
};
use crate::{
    api::{ErrorCode, ErrorDetail, QueueView, WorkerView},
    operations::Result,
};

/// States that a queue has a figure for, in the order of the columns.
const STATES: [State; 6] =
    [State::Ready, State::Running, State::Scheduled, State::Waiting, State::Held, State::Dead];

pub(in super::super) async fn queues(ask: &Ask) -> Result<Sheet> {
    let viewer = &ask.viewer;
    let queues = ask.operations().queues().await?.queues;
    let body = html! {
        (top(&html! { "Queues" }, &html! {}))
        @if queues.is_empty() {
            (empty("No task has been added yet, so there is no queue.", "windlass enqueue echo --payload '{\"hello\":\"world\"}'"))
        } @else {
            (table("Queues", &head("Queue"), &html! {
                @for queue in &queues { (row(viewer, queue)) }
            }))
        }
    };
    Ok(Sheet::new("Queues", body))
}

pub(in super::super) async fn queue(ask: &Ask) -> Result<Sheet> {
    let (viewer, name) = (&ask.viewer, ask.name()?);
    let queues = ask.operations().queues().await?.queues;
    let queue = queues
        .iter()
        .find(|queue| queue.queue.as_str() == name)
        .ok_or_else(|| ErrorDetail::new(ErrorCode::NotFound, format!("there is no queue {name:?}")))?;
    let workers = ask.operations().workers().await?.workers;
    let serving: Vec<_> = workers.iter().filter(|worker| worker.live && serves(worker, name)).collect();
    let body = html! {
        (top(&html! { "Queue " (name) " " (paused(queue)) }, &actions(viewer, queue)))
        (table("Kinds of this queue", &head("Kind"), &html! {
            @for kind in &queue.kinds {
                tr {
                    th scope="row" { (kind.kind) }
                    (figures(viewer, &kind.depth, name, Some(kind.kind.as_str())))
                    td {}
                }
            }
        }))
        h2 { "Workers that serve it" }
        @if serving.is_empty() {
            div.why.warn { p { "No live worker serves this queue." } p { "Start one with " code { "windlass worker --queue " (name) } "." } }
        } @else {
            ul { @for worker in serving { li { (worker.worker_id) " on " (worker.host) ", " (worker.in_flight) " of " (worker.max_capacity) " slots" } } }
        }
    };
    Ok(Sheet::new(format!("Queue {name}"), body))
}

/// Whether a worker serves a queue. One that names no queue serves all.
fn serves(worker: &WorkerView, queue: &str) -> bool {
    worker.queues.is_empty() || worker.queues.iter().any(|served| served.as_str() == queue)
}

fn head(first: &str) -> Markup {
    html! {
        th scope="col" { (first) }
        @for state in STATES { th.n scope="col" { (state.as_str()) } }
        th scope="col" { "Actions" }
    }
}

fn row(viewer: &Viewer, queue: &QueueView) -> Markup {
    let name = queue.queue.as_str();
    let mut whole = Depth::default();
    for kind in &queue.kinds {
        whole.add(&kind.depth);
    }
    html! {
        tr data-key=(name) {
            th scope="row" { (name_link(viewer, "/queues", Some(name))) " " (paused(queue)) }
            (figures(viewer, &whole, name, None))
            td { div.actions { (actions(viewer, queue)) } }
        }
    }
}

fn figures(viewer: &Viewer, depth: &Depth, queue: &str, kind: Option<&str>) -> Markup {
    html! {
        @for state in STATES {
            td.n {
                @let figure = depth.count(state);
                @if figure.n == 0 { span.soft { "0" } } @else {
                    a href=(tasks_of(viewer, state, queue, kind)) { (mark(depth, state)) (count(figure.n)) }
                }
            }
        }
    }
}

/// What stands before a figure that is not exact.
fn mark(depth: &Depth, state: State) -> &'static str {
    if depth.at_least.contains(state) {
        "≥ "
    } else if depth.about.contains(state) {
        "≈ "
    } else {
        ""
    }
}

fn tasks_of(viewer: &Viewer, state: State, queue: &str, kind: Option<&str>) -> String {
    let kind = kind.map(|kind| format!("&kind={}", encoded(kind))).unwrap_or_default();
    viewer.link(&format!("/tasks?state={}&queue={}{kind}", state.as_str(), encoded(queue)))
}

fn paused(queue: &QueueView) -> Markup {
    html! { @if queue.paused { (badge(Tone::Warn, "‖", "paused")) } }
}

fn actions(viewer: &Viewer, queue: &QueueView) -> Markup {
    let name = queue.queue.as_str();
    let path = |action: &str| format!("/v1/queues/{}/{action}", encoded(name));
    if queue.paused {
        return Button::new("Resume", "POST /v1/queues/{name}/resume", path("resume")).show(viewer);
    }
    Button::new("Pause", "POST /v1/queues/{name}/pause", path("pause"))
        .ask(format!("Pause the queue {name}? Running tasks end; no further one starts, on any worker."))
        .show(viewer)
}
