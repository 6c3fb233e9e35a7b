//! The overview: what goes on, and what needs attention.

use std::time::Duration;

use maud::{Markup, html};
use windlass_core::{State, why::human};

use super::super::{
    flow::{mark, rate},
    history,
    parts::{Tone, badge, count, empty, state, time, top},
    recent::Sheet,
    viewer::{Ask, Viewer},
};
use crate::{
    api::{Attention, Snapshot},
    operations::Result,
};

/// States with a card, in the order of a task's life.
const STATES: [State; 6] =
    [State::Ready, State::Running, State::Scheduled, State::Waiting, State::Held, State::Dead];

pub(in super::super) async fn overview(ask: &Ask) -> Result<Sheet> {
    let viewer = &ask.viewer;
    let snapshot = ask.operations().snapshot().await;
    let charts = history::charts(ask, None, snapshot.at, &snapshot.total.forecast.sentence).await?;
    let body = html! {
        (top(&html! { "Overview" }, &health(viewer, &snapshot)))
        @if !snapshot.store.ok {
            div.why.bad role="alert" { p { strong { "The store does not answer" } @if let Some(error) = &snapshot.store.error { ": " (error) } "." }
                p { "The figures are from " (time(snapshot.figures_at)) "." } }
        }
        (attention(viewer, &snapshot.attention))
        (cards(viewer, &snapshot))
        (charts)
        @if snapshot.queues.is_empty() {
            (empty("No task has been added yet.", "windlass enqueue echo --payload '{\"hello\":\"world\"}'"))
        }
    };
    Ok(Sheet::new("Overview", body))
}

/// The store and the last audit in two badges.
fn health(viewer: &Viewer, snapshot: &Snapshot) -> Markup {
    html! {
        @if snapshot.store.ok { (badge(Tone::Good, "✓", "store answers")) } @else { (badge(Tone::Bad, "✕", "store does not answer")) }
        a href=(viewer.link("/store")) {
            @match snapshot.audit {
                Some(audit) if audit.findings == 0 => (badge(Tone::Good, "✓", "audit found 0")),
                Some(audit) => (badge(Tone::Bad, "✕", &format!("audit found {}", audit.findings))),
                None => (badge(Tone::Plain, "?", "no audit yet")),
            }
        }
        @if let Some(audit) = snapshot.audit { span.soft { (time(audit.at)) } }
    }
}

fn attention(viewer: &Viewer, attention: &[Attention]) -> Markup {
    html! {
        @if !attention.is_empty() {
            section.panel aria-labelledby="attention" {
                h2 id="attention" { "Needs attention" }
                ul.attention {
                    @for one in attention {
                        li data-code=(one.code) { (one.sentence) " " a href=(place(viewer, one)) { "Look" span.unseen { " at " (one.about) " " @if let Some(name) = &one.name { (name) } } } }
                    }
                }
            }
        }
    }
}

/// The page on which something can be done about it.
fn place(viewer: &Viewer, attention: &Attention) -> String {
    match (attention.about.as_str(), attention.name.as_deref()) {
        ("queue", Some(name)) => viewer.at("/queues", name),
        ("job", Some(name)) => viewer.at("/jobs", name),
        ("workflow", Some(name)) => viewer.at("/workflows", name),
        ("schedule", Some(name)) => viewer.at("/schedules", name),
        ("worker", _) => viewer.link("/workers"),
        ("queue", None) => viewer.link("/queues"),
        ("job", None) => viewer.link("/jobs"),
        ("workflow", None) => viewer.link("/workflows?blocked=true"),
        _ => viewer.link("/store"),
    }
}

fn cards(viewer: &Viewer, snapshot: &Snapshot) -> Markup {
    let (flow, workers) = (&snapshot.total, snapshot.workers);
    html! {
        div.grid {
            @for of in STATES {
                a.card href=(viewer.link(&format!("/tasks?state={}", of.as_str()))) {
                    b { (mark(&flow.depth, of)) (count(flow.depth.count(of).n)) } (state(of))
                }
            }
            div.card { b { (rate(flow.in_per_s)) } span { "in each second" } }
            div.card { b { (rate(flow.done_per_s)) } span { "done each second" } }
            div.card { b { (rate(flow.failed_per_s)) } span { "attempts failed each second" } }
            div.card.words { b { (flow.oldest_ready_ms.map_or_else(|| "–".to_owned(), |ms| human(Duration::from_millis(ms)))) } span { "the oldest ready task has waited" } }
            a.card href=(viewer.link("/workers")) {
                b { (count(u64::from(workers.live))) } span { "live workers, " (count(workers.running)) " of " (count(workers.slots)) " slots busy" }
                @if workers.held_back > 0 { (badge(Tone::Warn, "‖", &format!("{} hold back", workers.held_back))) }
            }
        }
    }
}
