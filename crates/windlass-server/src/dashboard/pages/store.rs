//! The store: its size, its disk, and what the audit finds.

use std::time::Duration;

use maud::{Markup, html};
use windlass_core::why::human;

use super::super::{
    parts::{Button, Tone, badge, bytes, copy, count, table, task_link, time, top},
    recent::Sheet,
    viewer::{Ask, Viewer},
};
use crate::{
    api::{Audit, InfoView},
    operations::Result,
};

pub(in super::super) async fn store(ask: &Ask) -> Result<Sheet> {
    let info = ask.operations().info().await?;
    let (store, health) = (&info.store, ask.operations().vitals().ready().await);
    let body = html! {
        (top(&html! { "Store" }, &html! {}))
        div.two {
            section.panel aria-labelledby="what" {
                h2 id="what" { @match store.backend.as_str() { "sqlite" => "SQLite", "postgresql" => "PostgreSQL", other => (other) } }
                dl {
                    dt { "Where" } dd.mono { (store.location) }
                    dt { "Version" } dd { (store.engine_version) ", schema " (store.schema_version) }
                    dt { "Size" } dd { (bytes(store.bytes)) }
                    dt { "Write-ahead log" } dd { (bytes(store.wal_bytes)) }
                    dt { "Free disk" } dd { (bytes(store.free_disk_bytes)) }
                    dt { "History" } dd { (count(store.history_rows)) " ended tasks, " (bytes(store.history_bytes)) }
                    dt { "Acknowledged is on disk" } dd { @if store.durable { (badge(Tone::Good, "✓", "yes")) } @else { (badge(Tone::Warn, "!", "no")) } }
                }
            }
            section.panel aria-labelledby="health" {
                h2 id="health" { "This server" }
                dl {
                    dt { "Ready" } dd { @if health.ok { (badge(Tone::Good, "✓", "yes")) } @else { (badge(Tone::Bad, "✕", "no")) } }
                    @for check in &health.checks { dt { (check.name) } dd { @if check.ok { "fine" } @else { strong { @match &check.detail { Some(detail) => (detail), None => "not fine" } } } } }
                    dt { "Version" } dd { (info.version) ", pid " (info.pid) }
                }
            }
        }
        section.panel aria-labelledby="connections" { h2 id="connections" { "Connections and duties" } (connections(&info)) }
        section aria-labelledby="audit" { (audit(ask)) }
    };
    Ok(Sheet::new("Store", body))
}

/// What to do about a broken promise, besides reporting it.
fn what_to_do(promise: &str) -> &'static str {
    match promise {
        "NO-STRANDED" => {
            "No event will move this task on. Look at it again in a minute: a worker's duties may find it. Then cancel it and run it again."
        }
        "ONE-TERMINAL" | "ENQ-IDEMPOTENT" => {
            "The task may have run twice. Compare what its handler has done with what it should have done."
        }
        "ONE-LEASE" | "SLOT-BALANCED" => {
            "Look at the worker of this task. If it runs what it should not, stop that process."
        }
        "LIMIT" => "More tasks of this job run than its limit allows. Pause the job until they have ended.",
        "WF-ORDER" => "A step may have run before an earlier one. Cancel the workflow if its order matters.",
        "ATTEMPT-BOUND" => "The task has had more attempts than it was granted. Cancel it if it still runs.",
        _ => "Keep a copy of the store and report it.",
    }
}

/// The connections of this process, and who does the duties of the store.
fn connections(info: &InfoView) -> Markup {
    html! {
        @if info.connections.is_empty() {
            p.soft { "This store does not count connections." }
        } @else {
            (table("Connections of this process", &html! {
                th scope="col" { "For" } th scope="col" { "In use" } th.n scope="col" { "Uses" } th.n scope="col" { "Waited for, each" }
            }, &html! {
                @for pool in &info.connections {
                    tr {
                        th scope="row" { (pool.name) }
                        td { (pool.busy) " of " (pool.size) }
                        td.n { (count(pool.uses)) }
                        td.n { (human(Duration::from_millis(pool.waited_ms / pool.uses.max(1)))) }
                    }
                }
            }))
        }
        p.soft {
            @if info.store.backend == "postgresql" { "One worker of the fleet leads: it removes old history, counts and vacuums. Which term it is in, dead rows and held snapshots are not known to this page:" }
            @else { "The worker of this process does the duties of the store: due tasks, schedules, old history. More:" }
        }
        (copy("windlass doctor"))
    }
}

/// The last audit, and a button for another. An audit reads every task, so the page itself never asks for one.
fn audit(ask: &Ask) -> Markup {
    let (last, asked) = ask.operations().known_audits();
    let question =
        "An audit reads every task of the store. With millions of tasks it takes minutes. Start one?";
    let button = Button::new("Audit now", "GET /v1/audit", "/v1/audit".to_owned()).ask(question);
    html! {
        div.top { h2 id="audit" { "Audit" } div.actions { (button.show(&ask.viewer)) } }
        @match (last, asked) {
            (None, _) => p.soft { "This server knows of no audit yet." },
            (Some(last), Some((audit, at))) if last.at == at => {
                p.soft { "Audited " (time(at)) "." }
                (findings(&ask.viewer, &audit))
            },
            (Some(last), _) if last.findings == 0 => {
                p.soft { "The worker of this server audited " (time(last.at)) "." }
                (findings(&ask.viewer, &Audit::default()))
            },
            (Some(last), _) => {
                p.soft { "The worker of this server audited " (time(last.at)) "." }
                div.why.bad { p { strong { (last.findings) " findings." } " Audit now to see them." } }
            },
        }
    }
}

fn findings(viewer: &Viewer, audit: &Audit) -> Markup {
    html! {
        @if audit.findings.is_empty() {
            div.why.good { p { strong { "✓ The audit found nothing." } " Every task is where a worker, a gate or a time will move it on." } }
        } @else {
            div.why.bad { p { strong { (audit.findings.len()) " findings." } " Keep the store as it is, and report them with a copy." } (copy("windlass doctor")) }
            (table("Findings", &html! { th scope="col" { "Promise" } th scope="col" { "Task" } th scope="col" { "What was found" } th scope="col" { "What to do" } }, &html! {
                @for finding in &audit.findings {
                    tr {
                        td { (finding.promise) } td { @if let Some(task) = finding.task { (task_link(viewer, task)) } } td.wide { (finding.detail) }
                        td.wide { (what_to_do(&finding.promise)) }
                    }
                }
            }))
        }
    }
}
