//! `windlass doctor`: checks the store, the server and this machine, and says what is wrong.

mod access;
mod amqp;
mod postgres;

use std::{collections::BTreeSet, time::Duration};

use clap::Args;
use serde::Serialize;
use windlass_core::store::{Finding, StoreInfo};
use windlass_server::api::{Queues, TaskFilter, Workers};

use crate::{
    backend::{
        Backend,
        connect::{self, Choice},
    },
    config::{Settings, table},
    duration,
    failure::Exit,
    output::{Colour, text},
    session::Session,
    store::{self, Place},
};

/// Files that a process needs besides one for each running task.
const OTHER_FILES: u64 = 64;
/// How far the newest task may lie ahead of this machine's clock.
const CLOCK_TOLERANCE: Duration = Duration::from_mins(1);
/// A write-ahead log of this size is no longer being checkpointed.
const WAL_LARGE_BYTES: u64 = 512 << 20;

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Also look at every task for a broken promise; reads the whole store
    #[arg(long)]
    audit: bool,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Level {
    Ok,
    Note,
    Wrong,
}

/// One finding.
#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    level: Level,
    detail: String,
}

/// The findings so far.
#[derive(Debug, Default)]
struct Report {
    checks: Vec<Check>,
}

impl Report {
    fn add(&mut self, name: &'static str, level: Level, detail: impl Into<String>) {
        self.checks.push(Check { name, level, detail: detail.into() });
    }
}

/// Runs it.
pub async fn run(session: &Session, args: &DoctorArgs) -> anyhow::Result<Exit> {
    let settings = &session.settings;
    let mut report = Report::default();
    let choice = Choice::of(settings)?;
    let server = choice.server_to_watch(settings).await?;
    match &server {
        Some(server) => {
            let health = server.health().await?;
            let level = if health.ok { Level::Ok } else { Level::Wrong };
            let state = health.reason.unwrap_or_else(|| "ready".to_owned());
            report.add("server", level, format!("{} (version {}): {state}", server.place(), health.version));
        }
        None => report.add("server", Level::Note, no_server(&choice, settings)),
    }
    let has_server = server.is_some();
    if !has_server && !args.audit && amqp::is_all_there_is(settings)? {
        report.add("store", Level::Note, "none yet; consumers that only post need none");
        files_check(&mut report, settings);
        amqp::checks(&mut report, settings).await?;
        return show(session, &report);
    }
    let backend: Box<dyn Backend> = match server {
        Some(server) => Box::new(server),
        None => session.backend().await?,
    };
    let info = backend.info().await?;
    let (queues, workers) = (backend.queues().await?, backend.workers().await?);
    let newest = backend.tasks(&TaskFilter::default(), None, 1).await?;
    access::checks(&mut report, settings, backend.as_ref(), has_server).await;
    let audit = if args.audit { Some(backend.audit().await?) } else { None };
    backend.close().await?;

    store_checks(&mut report, settings, &info.store);
    if let Place::Postgres(location) = store::place(settings)? {
        let live = workers.workers.iter().filter(|worker| worker.live).count();
        postgres::checks(&mut report, settings, &location, live).await?;
    }
    clock_check(&mut report, newest.tasks.first().map(|task| task.enqueued_at));
    files_check(&mut report, settings);
    kinds_check(&mut report, &queues, &workers, has_server);
    amqp::checks(&mut report, settings).await?;
    if let Some(audit) = audit {
        audit_checks(&mut report, audit.findings);
    }
    show(session, &report)
}

/// Why doctor reads the store itself. Servers of a database can run on any machine, so "none at this
/// address" does not mean "none at all".
fn no_server(choice: &Choice, settings: &Settings) -> String {
    match choice {
        Choice::Store(Place::Postgres(_)) => format!(
            "none for this store at {}; looking at the store itself. A server elsewhere can be named with --server",
            connect::default_server(settings)
        ),
        _ => "none runs; looking at the store itself".to_owned(),
    }
}

fn store_checks(report: &mut Report, settings: &Settings, store: &StoreInfo) {
    let durable = if store.durable { "durable" } else { "not durable against a power cut" };
    report.add(
        "store",
        Level::Ok,
        format!(
            "{}, {}, {durable}, {} finished tasks kept ({})",
            store.location,
            text::bytes(store.bytes),
            text::count(store.history_rows),
            text::bytes(store.history_bytes)
        ),
    );
    report.add("schema", Level::Ok, format!("version {}", store.schema_version));
    report.add("engine", Level::Ok, format!("{} {}", store.backend, store.engine_version));
    if store.backend == "postgresql" {
        // The log and the disk belong to the server.
        return;
    }
    let wal = if store.wal_bytes > WAL_LARGE_BYTES { Level::Wrong } else { Level::Ok };
    report.add("log", wal, format!("{} of write-ahead log", text::bytes(store.wal_bytes)));
    let least = reserve(settings);
    if store.free_disk_bytes < least {
        let detail = format!(
            "{} free, below {}: new tasks are refused; free some disk",
            text::bytes(store.free_disk_bytes),
            text::bytes(least)
        );
        report.add("disk", Level::Wrong, detail);
    } else {
        report.add("disk", Level::Ok, format!("{} free", text::bytes(store.free_disk_bytes)));
    }
}

/// The free disk space that the store keeps: the larger of the bytes and the share, computed as the store
/// does it.
fn reserve(settings: &Settings) -> u64 {
    let bytes = settings.number(&table::MIN_FREE_DISK_BYTES);
    let Some(path) = store::path(settings).ok().flatten() else { return bytes };
    let whole = rustix::fs::statvfs(&path).map_or(0, |disk| disk.f_blocks.saturating_mul(disk.f_frsize));
    bytes.max(whole / 100 * settings.number(&table::MIN_FREE_DISK_PERCENT))
}

fn clock_check(report: &mut Report, newest: Option<windlass_core::Timestamp>) {
    let now = duration::now();
    let ahead = newest.map(|newest| newest.since(now)).unwrap_or_default();
    if ahead > CLOCK_TOLERANCE {
        let detail = format!(
            "{now}, but the newest task was enqueued {} later: the clock went back; set it right",
            windlass_core::why::human(ahead)
        );
        report.add("clock", Level::Wrong, detail);
    } else {
        report.add("clock", Level::Ok, now.to_string());
    }
}

fn files_check(report: &mut Report, settings: &Settings) {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let needed = u64::from(settings.slots.number) + OTHER_FILES;
    match limit {
        Some(limit) if limit < needed => report.add(
            "open files",
            Level::Note,
            format!("at most {limit}, but {needed} may be needed for every slot to hold a connection; raise `ulimit -n`"),
        ),
        Some(limit) => report.add("open files", Level::Ok, format!("at most {limit}")),
        None => report.add("open files", Level::Ok, "no limit"),
    }
}

/// Checks for kinds whose tasks no live worker can run.
fn kinds_check(report: &mut Report, queues: &Queues, workers: &Workers, has_server: bool) {
    let handled: BTreeSet<_> =
        workers.workers.iter().filter(|worker| worker.live).flat_map(|worker| &worker.kinds).collect();
    let stranded: BTreeSet<_> = queues
        .queues
        .iter()
        .flat_map(|queue| &queue.kinds)
        .filter(|lane| {
            lane.depth.ready + lane.depth.scheduled + lane.depth.held > 0 && !handled.contains(&lane.kind)
        })
        .map(|lane| text::clean(lane.kind.as_str()))
        .collect();
    if stranded.is_empty() {
        report.add("kinds", Level::Ok, "every kind with tasks has a live worker");
        return;
    }
    let names = stranded.into_iter().collect::<Vec<_>>().join(", ");
    let level = if has_server { Level::Wrong } else { Level::Note };
    report.add("kinds", level, format!("tasks wait and no live worker handles their kind: {names}"));
}

/// The finding counts of the audit, by the first word of a finding's detail.
const COUNTED: [&str; 3] = ["leaked", "over-admitted", "stranded"];

/// Audits every task.
fn audit_checks(report: &mut Report, findings: Vec<Finding>) {
    let level = if findings.is_empty() { Level::Ok } else { Level::Wrong };
    report.add("audit", level, figures(&findings));
    for finding in findings {
        let task = finding.task.map_or_else(String::new, |task| format!("task {task}: "));
        report.add("audit", Level::Wrong, format!("{}: {task}{}", finding.promise, finding.detail));
    }
}

/// `leaked 0 · over-admitted 0 · stranded 0`, and the number of other findings.
fn figures(findings: &[Finding]) -> String {
    let of = |word: &str| findings.iter().filter(|finding| finding.detail.starts_with(word)).count();
    let mut figures: Vec<String> = COUNTED.iter().map(|word| format!("{word} {}", of(word))).collect();
    let others = findings.len() - COUNTED.iter().map(|word| of(word)).sum::<usize>();
    if others > 0 {
        figures.push(format!("other findings {others}"));
    }
    figures.join(" · ")
}

fn show(session: &Session, report: &Report) -> anyhow::Result<Exit> {
    let out = session.out;
    let wrong = report.checks.iter().filter(|check| check.level == Level::Wrong).count();
    if out.is_json() {
        out.json(&serde_json::json!({"ok": wrong == 0, "checks": report.checks}))?;
    } else {
        for check in &report.checks {
            let mark = match check.level {
                Level::Ok => out.paint(Colour::Green, "ok   "),
                Level::Note => out.paint(Colour::Yellow, "note "),
                Level::Wrong => out.paint(Colour::Red, "WRONG"),
            };
            out.line(format!("{mark}  {:<11}  {}", check.name, text::clean(&check.detail)))?;
        }
    }
    Ok(if wrong == 0 { Exit::Done } else { Exit::Failed })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(promise: &str, detail: &str) -> Finding {
        Finding { task: None, promise: promise.to_owned(), detail: detail.to_owned() }
    }

    #[test]
    fn the_audit_counts_what_is_leaked_over_admitted_and_stranded() {
        assert_eq!(figures(&[]), "leaked 0 · over-admitted 0 · stranded 0");
        let findings = [
            finding("SLOT-BALANCED", "leaked: running under a worker that has ended"),
            finding("NO-STRANDED", "stranded: waiting with nothing before it"),
            finding("NO-STRANDED", "stranded: held while its job j has room"),
            finding("LIMIT", "over-admitted: job j has 4 ready or running, its limit is 3"),
            finding("WF-ORDER", "has its turn behind an unfinished step"),
        ];
        assert_eq!(figures(&findings), "leaked 1 · over-admitted 1 · stranded 2 · other findings 1");
        let mut report = Report::default();
        audit_checks(&mut report, findings.to_vec());
        assert_eq!(report.checks.len(), 6);
        assert!(report.checks.iter().all(|check| check.level == Level::Wrong));
    }
}
