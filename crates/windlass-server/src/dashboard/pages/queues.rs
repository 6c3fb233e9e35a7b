//! Queues: how many tasks of each state, and pause and resume.

use std::time::Duration;

use maud::{Markup, html};
use windlass_core::{Depth, Name, State, Timestamp, why::human};

use super::super::{
    chart::spark,
    flow::{mark, rate},
    history,
    parts::{Button, Tone, badge, count, empty, name_link, state, table, task_link, top},
    recent::Sheet,
    viewer::{Ask, Viewer, encoded},
};
use crate::{
    api::{Cause, ErrorCode, ErrorDetail, QueueFlow, QueueWhy, WorkerView},
    operations::Result,
    watch::Backlogs,
};

/// States in which a task waits.
const WAITING: [State; 4] = [State::Ready, State::Held, State::Waiting, State::Scheduled];
/// How far back the curve of a queue goes.
const CURVE_OVER: Duration = Duration::from_hours(1);
/// About how many points it has. The page is sent again and again, with up to 500 curves.
const CURVE_POINTS: u32 = 60;
/// States that a queue has a figure for, in the order of the columns.
const STATES: [State; 6] =
    [State::Ready, State::Running, State::Scheduled, State::Waiting, State::Held, State::Dead];

pub(in super::super) async fn queues(ask: &Ask) -> Result<Sheet> {
    let viewer = &ask.viewer;
    let snapshot = ask.operations().snapshot().await;
    let backlogs = ask.operations().backlogs(CURVE_OVER, CURVE_POINTS).await;
    let span = Span::of(&backlogs);
    let body = html! {
        (top(&html! { "Queues" }, &html! {}))
        @if snapshot.queues.is_empty() {
            (empty("No task has been added yet, so there is no queue.", "windlass enqueue echo --payload '{\"hello\":\"world\"}'"))
        } @else {
            (table("Queues", &html! {
                (head("Queue"))
                th.n scope="col" { "Oldest" } th.n scope="col" { "In/s" } th.n scope="col" { "Out/s" } th scope="col" { "Backlog" } th scope="col" { "Clears" }
                th scope="col" { "Actions" }
            }, &html! { @for queue in &snapshot.queues { (row(viewer, queue, &span.curve(backlogs.get(&queue.queue)))) } }))
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
    let why_of = ask.operations().queue_why(name).await?;
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
        section aria-labelledby="why" { h2 id="why" { "Why its tasks wait" } (why(viewer, &why_of)) }
        h2 { "Workers that serve it" }
        @if serving.is_empty() {
            div.why.warn { p { "No live worker serves this queue." } p { "Start one with " code { "windlass worker --queues " (name) } "." } }
        } @else {
            ul { @for worker in serving { li { a.mono href=(viewer.link(&format!("/tasks?state=running&worker={}", worker.worker_id))) { (worker.worker_id) } " on " (worker.host) ", " (worker.in_flight) " of " (worker.max_capacity) " slots" } } }
        }
    };
    Ok(Sheet::new(format!("Queue {name}"), body))
}

/// The causes for which the newest tasks wait.
fn why(viewer: &Viewer, why: &QueueWhy) -> Markup {
    let waiting: u64 = WAITING.iter().map(|state| why.depth.count(*state).n).sum();
    html! {
        @if waiting == 0 {
            p.soft { "No task waits." }
        } @else if why.looked_at == 0 {
            p.soft { (count(waiting)) " wait. None of them is among the newest tasks of all queues that were looked at." }
        } @else {
            p.soft {
                @if why.looked_at < waiting { "Of the " (count(why.looked_at)) " newest that were looked at; " (count(waiting)) " wait in all." }
                @else { "All " (count(why.looked_at)) " that wait." }
            }
            (table("Causes", &html! {
                th.n scope="col" { "Tasks" } th scope="col" { "State" } th scope="col" { "Why" } th scope="col" { "What changes it" } th scope="col" { "Example" }
            }, &html! {
                @for cause in &why.causes {
                    tr data-why=(cause.code) {
                        td.n { (count(cause.count)) }
                        td { (state(cause.state)) }
                        td.wide { (cause.sentence) }
                        td { (remedy(viewer, why, cause)) @if let Some(hint) = &cause.hint { div.small { @if hint.starts_with("windlass ") { code { (hint) } } @else { (hint) } } } }
                        td { (task_link(viewer, cause.example)) }
                    }
                }
            }))
        }
    }
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
            div.card.words { b { (flow.forecast.sentence) } span { "forecast for the backlog" } }
            div.card { b { (rate(flow.in_per_s)) } span { "in each second" } }
            div.card { b { (rate(flow.out_per_s)) } span { "out each second" } }
            div.card { b { (rate(flow.failed_per_s)) } span { "attempts failed each second" } }
            div.card { b { (oldest(flow.oldest_ready_ms)) } span { "the oldest ready task has waited" } }
        }
    }
}

/// The button or the page that changes a cause.
fn remedy(viewer: &Viewer, why: &QueueWhy, cause: &Cause) -> Markup {
    let link = |to: String, text: &str| html! { a.button href=(to) { (text) } };
    let scheduled = || viewer.link(&format!("/tasks?state=scheduled&queue={}", encoded(why.queue.as_str())));
    match (cause.code.as_str(), &cause.job) {
        ("queue_paused", _) => actions(viewer, why.queue.as_str(), true),
        (_, Some(job)) => link(viewer.at("/jobs", job.as_str()), "See the job"),
        ("workflow", _) => link(viewer.link("/workflows"), "See workflows"),
        ("workflow_blocked", _) => link(viewer.link("/workflows?blocked=true"), "See blocked workflows"),
        ("no_worker" | "no_free_slot" | "held_back" | "suspect", _) => {
            link(viewer.link("/workers"), "See the workers")
        }
        ("not_due" | "retry_wait", _) => link(scheduled(), "See the tasks"),
        _ => html! {},
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

/// The time that the curves of all queues show.
struct Span {
    first: Timestamp,
    last: Timestamp,
}

impl Span {
    /// From the first point of all queues to the last.
    fn of(backlogs: &Backlogs) -> Self {
        let times = || backlogs.values().flatten().map(|(at, _)| *at);
        Self { first: times().min().unwrap_or_default(), last: times().max().unwrap_or_default() }
    }

    /// The points of one queue, each at its time.
    fn curve(&self, points: Option<&Vec<(Timestamp, u64)>>) -> Vec<(f64, u64)> {
        let whole = self.last.since(self.first).as_secs_f64().max(1.0);
        let place = |at: &Timestamp| at.since(self.first).as_secs_f64() / whole;
        points.into_iter().flatten().map(|(at, backlog)| (place(at), *backlog)).collect()
    }
}

fn row(viewer: &Viewer, queue: &QueueFlow, backlog: &[(f64, u64)]) -> Markup {
    let (name, flow) = (queue.queue.as_str(), &queue.flow);
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
            td { @if backlog.len() > 1 { (spark(backlog, &format!("backlog of {name} in the last hour"))) } }
            td.words { (flow.forecast.sentence) }
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
