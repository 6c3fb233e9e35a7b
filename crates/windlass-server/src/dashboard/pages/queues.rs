//! Queues: how many tasks of each state, and pause and resume.

use std::time::Duration;

use maud::{Markup, html};
use windlass_core::{Depth, Name, State, why::human};

use super::super::{
    chart::{Curve, curves},
    flow::{mark, rate},
    history,
    parts::{Button, Tone, badge, count, empty, name_link, table, top},
    recent::Sheet,
    viewer::{Ask, Viewer, encoded},
};
use crate::{
    api::{ErrorCode, ErrorDetail, QueueFlow, Series, SeriesPoint, WorkerView},
    operations::Result,
};

/// States that a queue has a figure for, in the order of the columns.
const STATES: [State; 6] =
    [State::Ready, State::Running, State::Scheduled, State::Waiting, State::Held, State::Dead];

pub(in super::super) async fn queues(ask: &Ask) -> Result<Sheet> {
    let viewer = &ask.viewer;
    let snapshot = ask.operations().snapshot().await;
    let mut lines = Vec::with_capacity(snapshot.queues.len());
    for queue in &snapshot.queues {
        let from = Some(snapshot.at.before(Duration::from_hours(1)));
        let series = ask.operations().series(Some(queue.queue.clone()), from).await;
        lines.push((queue, series));
    }
    let body = html! {
        (top(&html! { "Queues" }, &html! {}))
        @if lines.is_empty() {
            (empty("No task has been added yet, so there is no queue.", "windlass enqueue echo --payload '{\"hello\":\"world\"}'"))
        } @else {
            (table("Queues", &html! {
                (head("Queue"))
                th.n scope="col" { "Oldest" } th.n scope="col" { "In/s" } th.n scope="col" { "Out/s" } th scope="col" { "Backlog" } th scope="col" { "Clears" }
                th scope="col" { "Actions" }
            }, &html! { @for (queue, series) in &lines { (row(viewer, queue, series)) } }))
            @if snapshot.more_queues > 0 { p.soft { (count(snapshot.more_queues)) " more queues have less to do and are not shown." } }
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
    let snapshot = ask.operations().snapshot().await;
    let flow = snapshot.queues.iter().find(|flow| flow.queue.as_str() == name);
    let sentence = flow.map_or("too little known yet", |flow| flow.flow.forecast.sentence.as_str());
    let charts = history::charts(ask, Some(name), snapshot.at, sentence).await?;
    let workers = ask.operations().workers().await?.workers;
    let serving: Vec<_> = workers.iter().filter(|worker| worker.live && serves(worker, name)).collect();
    let body = html! {
        (top(&html! { "Queue " (name) " " (paused(queue.paused)) }, &html! { (actions(viewer, name, queue.paused)) (purge(viewer, name)) }))
        @if let Some(flow) = flow { (about(flow)) }
        (charts)
        h2 { "Kinds" }
        (table("Kinds of this queue", &head("Kind"), &html! {
            @for kind in &queue.kinds {
                tr {
                    th scope="row" { (kind.kind) }
                    (figures(viewer, &kind.depth, name, Some(kind.kind.as_str())))
                }
            }
        }))
        h2 { "Workers that serve it" }
        @if serving.is_empty() {
            div.why.warn { p { "No live worker serves this queue." } p { "Start one with " code { "windlass worker --queues " (name) } "." } }
        } @else {
            ul { @for worker in serving { li { (worker.worker_id) " on " (worker.host) ", " (worker.in_flight) " of " (worker.max_capacity) " slots" } } }
        }
    };
    Ok(Sheet::new(format!("Queue {name}"), body))
}

/// How a queue moves, in a sentence and in figures.
fn about(queue: &QueueFlow) -> Markup {
    let flow = &queue.flow;
    html! {
        @if queue.paused { div.why.warn { p { "This queue is paused: no worker starts a task of it." } } }
        @if !queue.kinds_without_worker.is_empty() {
            div.why.warn { p { "No live worker handles " strong { (names(&queue.kinds_without_worker)) } " here, and there are such tasks to do." } }
        }
        div.grid {
            div.card { b { (flow.forecast.sentence) } span { "forecast for the backlog" } }
            div.card { b { (rate(flow.in_per_s)) } span { "in each second" } }
            div.card { b { (rate(flow.out_per_s)) } span { "out each second" } }
            div.card { b { (rate(flow.failed_per_s)) } span { "attempts failed each second" } }
            div.card { b { (oldest(flow.oldest_ready_ms)) } span { "the oldest ready task has waited" } }
        }
    }
}

fn oldest(ready_ms: Option<u64>) -> String {
    ready_ms.map_or_else(|| "–".to_owned(), |ms| human(Duration::from_millis(ms)))
}

/// Removes what waits and what is dead. Its question says first how much that is.
fn purge(viewer: &Viewer, name: &str) -> Markup {
    Button::new("Purge…", "POST /v1/queues/{name}/purge", format!("/v1/queues/{}/purge", encoded(name)))
        .tone(Tone::Bad)
        .dry()
        .ask(format!(
            "Cancel every task of the queue {name} that has not started, and remove its dead ones for good?"
        ))
        .show(viewer)
}

/// Whether a worker serves a queue. One that names no queue serves all.
fn serves(worker: &WorkerView, queue: &str) -> bool {
    worker.queues.is_empty() || worker.queues.iter().any(|served| served.as_str() == queue)
}

fn head(first: &str) -> Markup {
    html! {
        th scope="col" { (first) }
        @for state in STATES { th.n scope="col" { (state.as_str()) } }
    }
}

fn row(viewer: &Viewer, queue: &QueueFlow, series: &Series) -> Markup {
    let (name, flow) = (queue.queue.as_str(), &queue.flow);
    // A minute is one point: the drawing is seven letters wide.
    let minute = |points: &[SeriesPoint]| {
        points.iter().map(|point| point.backlog as f64).sum::<f64>() / points.len() as f64
    };
    let backlog: Vec<_> = series.points.chunks(12).map(minute).collect();
    html! {
        tr data-key=(name) {
            th scope="row" {
                (name_link(viewer, "/queues", Some(name))) " " (paused(queue.paused))
                @if !queue.kinds_without_worker.is_empty() {
                    (badge(Tone::Bad, "!", "no worker for")) " " span.small { (names(&queue.kinds_without_worker)) }
                }
            }
            (figures(viewer, &flow.depth, name, None))
            td.n { (oldest(flow.oldest_ready_ms)) }
            td.n { (rate(flow.in_per_s)) }
            td.n { (rate(flow.out_per_s)) }
            td { @if backlog.len() > 1 { (curves(&[Curve { class: "a", values: &backlog }], (100, 24), "spark", &format!("backlog of {name} over the last hour"))) } }
            td { (flow.forecast.sentence) }
            td { div.actions { (actions(viewer, name, queue.paused)) } }
        }
    }
}

fn names(names: &[Name]) -> String {
    names.iter().map(Name::as_str).collect::<Vec<_>>().join(", ")
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

fn tasks_of(viewer: &Viewer, state: State, queue: &str, kind: Option<&str>) -> String {
    let kind = kind.map(|kind| format!("&kind={}", encoded(kind))).unwrap_or_default();
    viewer.link(&format!("/tasks?state={}&queue={}{kind}", state.as_str(), encoded(queue)))
}

fn paused(is_paused: bool) -> Markup {
    html! { @if is_paused { (badge(Tone::Warn, "‖", "paused")) } }
}

fn actions(viewer: &Viewer, name: &str, is_paused: bool) -> Markup {
    let path = |action: &str| format!("/v1/queues/{}/{action}", encoded(name));
    if is_paused {
        return Button::new("Resume", "POST /v1/queues/{name}/resume", path("resume")).show(viewer);
    }
    Button::new("Pause", "POST /v1/queues/{name}/pause", path("pause"))
        .ask(format!("Pause the queue {name}? Running tasks end; no further one starts, on any worker."))
        .show(viewer)
}
