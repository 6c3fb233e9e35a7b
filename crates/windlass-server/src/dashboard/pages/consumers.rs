//! Consumers of RabbitMQ: what their processes report to this server.

use maud::{Markup, html};

use super::super::{
    chart::bar,
    parts::{Tone, badge, copy, count, empty, table, time, top},
    recent::Sheet,
    viewer::Ask,
};
use crate::{
    api::{ConsumerProcess, ConsumerState, ConsumerView},
    operations::Result,
};

#[expect(clippy::unused_async, reason = "pages are drawn by asynchronous functions")]
pub(in super::super) async fn consumers(ask: &Ask) -> Result<Sheet> {
    let processes = ask.operations().consumers().processes;
    let body = html! {
        (top(&html! { "Consumers" }, &html! {}))
        @if processes.is_empty() {
            (empty("No process with consumers of RabbitMQ reports to this server.", "windlass consume"))
        } @else {
            (table("Consumers", &html! {
                th scope="col" { "Queue" } th scope="col" { "State" } th.n scope="col" { "Depth" } th scope="col" { "Busy of allowed" }
                th.n scope="col" { "Prefetch" } th.n scope="col" { "Taken" } th.n scope="col" { "Again" } th.n scope="col" { "Rejected" } th.n scope="col" { "Reconnects" }
                th scope="col" { "Process" } th scope="col" { "Seen" }
            }, &html! {
                @for process in &processes { @for consumer in &process.consumers { (row(process, consumer)) } }
            }))
        }
        (unknown())
    };
    Ok(Sheet::new("Consumers", body))
}

fn row(process: &ConsumerProcess, consumer: &ConsumerView) -> Markup {
    let busy = format!("{} of {}", consumer.busy, consumer.allowed);
    let name = process.process.as_ref().map_or("this server", |name| name.as_str());
    html! {
        tr data-key={ (name) " " (consumer.queue) " " (consumer.event_type) } {
            th scope="row" { (consumer.queue) @if !consumer.event_type.is_empty() { br; span.soft.small { (consumer.event_type) } } }
            td { (condition(process, consumer)) }
            td.n { @match consumer.queue_messages { Some(depth) => (count(depth)), None => span.soft { "not known" } } }
            td { (busy) @if consumer.allowed < consumer.workers { span.soft.small { ", " (count(consumer.workers)) " configured" } } (bar(consumer.busy, consumer.allowed, &busy)) }
            td.n { (count(consumer.prefetch)) }
            td.n { (count(consumer.deliveries)) }
            td.n { (count(consumer.redeliveries)) }
            td.n { (count(consumer.rejected)) }
            td.n { (count(consumer.reconnects)) }
            td.wide { @if process.host.is_empty() { (name) } @else { (process.host) } br; span.soft.small { "pid\u{a0}" (process.pid) ", " (process.version) } }
            td { @if process.process.is_some() { (time(process.seen_at)) } @else { span.soft { "now" } } }
        }
    }
}

fn condition(process: &ConsumerProcess, consumer: &ConsumerView) -> Markup {
    if !process.live {
        return badge(Tone::Warn, "?", "not heard of");
    }
    match consumer.state {
        ConsumerState::Consuming => badge(Tone::Good, "▶", "consuming"),
        ConsumerState::Reconnecting => badge(Tone::Bad, "↻", "reconnecting"),
        ConsumerState::Stopping => badge(Tone::Warn, "↓", "stopping"),
    }
}

/// What this page cannot know.
fn unknown() -> Markup {
    html! {
        section.panel aria-labelledby="unknown" {
            h2 id="unknown" { "What is not here" }
            p { "A consuming process reports to the server that it sends its tasks to, or that it finds at the usual address. A server keeps this in memory: it shows the processes that report to it, not those that report to another server of the fleet, and after a restart it waits for the next reports (5 s)." }
            p { "A process without a server, for example one that only posts messages to HTTP, has its figures in its own " code { "/metrics" } " alone:" }
            (copy("windlass consume --metrics-listen 127.0.0.1:9187"))
            (copy("curl -s http://127.0.0.1:9187/metrics"))
            p.soft { "Counts are of each process since it started; “again” are messages that the broker delivered once more. The depth is the broker's own figure, as it last answered." }
        }
    }
}
