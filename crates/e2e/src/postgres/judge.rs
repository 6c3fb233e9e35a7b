//! The judge: checks the database after a fault, and the requests that the target saw.
//!
//! Every acknowledged task is done, once; none ran after its settlement was acknowledged; none is stranded;
//! every claim is accounted for. The judge reads the tables directly, without the code under test.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::{Place, until};
use crate::target::Target;

/// Most findings that are printed.
const SHOWN_MAX: usize = 20;

/// Counts of a check without findings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judged {
    /// Claims of each finished task.
    pub leases: BTreeMap<String, u32>,
    /// Crashes that were counted for tasks.
    pub crashes: u64,
    /// Tasks that were handed back unfinished.
    pub released: u64,
}

impl Judged {
    /// How many tasks were claimed more than once.
    pub fn claimed_again(&self) -> usize {
        self.leases.values().filter(|lease| **lease > 1).count()
    }
}

/// Ended tasks, one per line: id, state, lease, attempt, most attempts, whether it ended after its start, how
/// many ended attempts are recorded, whether all leases rise by one or begin an epoch, how many attempts
/// crashed, how many were handed back.
const ENDED: &str = "
SELECT
  windlass.id_text(h.id), h.state, h.lease, h.attempt, h.max_attempts, h.ended_at >= h.started_at,
  jsonb_array_length(coalesce(h.log, '[]')),
  NOT EXISTS (
    SELECT 1
    FROM (
      SELECT n.lease, lag(n.lease, 1, 0::bigint) OVER (ORDER BY n.place) AS before
      FROM (
        SELECT (l.entry ->> 1)::bigint AS lease, l.place
        FROM jsonb_array_elements(coalesce(h.log, '[]')) WITH ORDINALITY AS l (entry, place)
        UNION ALL
        SELECT h.lease::bigint, 9007199254740991
      ) AS n
    ) AS n
    WHERE n.lease <> n.before + 1 AND (n.lease <= n.before OR n.lease % 1024 <> 0)
  ),
  (SELECT count(*) FROM jsonb_array_elements(coalesce(h.log, '[]')) AS l (entry) WHERE (l.entry ->> 5)::integer = 4),
  (SELECT count(*) FROM jsonb_array_elements(coalesce(h.log, '[]')) AS l (entry) WHERE (l.entry ->> 5)::integer = 3)
FROM windlass.history AS h
ORDER BY h.id";

/// Waits until no task is unfinished, and checks.
///
/// # Errors
/// With every broken promise, or if tasks stay unfinished.
pub async fn judge(place: &Place, acknowledged: &BTreeSet<String>, target: &Target) -> Result<Judged> {
    judge_after_crashes(place, acknowledged, target, 0).await
}

/// The same after `server_crashes` crashes of the server itself. Claims do not wait for the disk, so each
/// crash may have forgotten an answered claim, and a task may have run once more per crash than the store
/// knows.
///
/// # Errors
/// As [`judge`].
pub async fn judge_after_crashes(
    place: &Place,
    acknowledged: &BTreeSet<String>,
    target: &Target,
    server_crashes: u32,
) -> Result<Judged> {
    let rest = until("every task has ended", || {
        Ok(place.count("SELECT count(*) FROM windlass.task WHERE state <> 6")? == 0)
    });
    if let Err(error) = rest.await {
        let left = place.ask(
            "SELECT windlass.id_text(id), state, lease, attempt, crashes, worker, due_at, now_ms - claimed_at, log
             FROM windlass.task, (SELECT windlass.now_ms()) AS clock (now_ms) ORDER BY id LIMIT 20",
        )?;
        bail!("{error}\nstranded:\n{left}\n{}", audited(place)?.join("\n"));
    }
    let mut findings = Findings(Vec::new());
    let judged = ended(place, acknowledged, server_crashes, &mut findings)?;
    for dead in place.ask("SELECT windlass.id_text(id), error FROM windlass.task WHERE state = 6")?.lines() {
        findings.add(format!("{dead}: dead"));
    }
    let doubles = place.ask(
        "SELECT key, count(*) FROM windlass.history WHERE key IS NOT NULL GROUP BY key HAVING count(*) > 1",
    )?;
    for double in doubles.lines() {
        findings.add(format!("key {double}: several tasks"));
    }
    arrivals(&judged, target, server_crashes, &mut findings);
    findings.0.extend(audited(place)?);
    findings.end()?;
    Ok(judged)
}

struct Findings(Vec<String>);

impl Findings {
    fn add(&mut self, finding: String) {
        self.0.push(finding);
    }

    fn end(self) -> Result<()> {
        let mut text = String::new();
        for finding in self.0.iter().take(SHOWN_MAX) {
            let _ = writeln!(text, "  {finding}");
        }
        ensure!(self.0.is_empty(), "{} promises were broken:\n{text}", self.0.len());
        Ok(())
    }
}

/// One line of [`ENDED`].
struct Ended<'a> {
    id: &'a str,
    is_done: bool,
    numbers: [u32; 4],
    are_times_right: bool,
    are_leases_right: bool,
    crashes: u64,
    released: u64,
}

impl<'a> Ended<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let mut fields = line.split('|');
        let (id, state) = (fields.next()?, fields.next()?);
        let mut number = || fields.next()?.parse::<u32>().ok();
        let (lease, attempt, most) = (number()?, number()?, number()?);
        let are_times_right = fields.next()? == "t";
        let noted = fields.next()?.parse().ok()?;
        let are_leases_right = fields.next()? == "t";
        let (crashes, released) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        let numbers = [lease, attempt, most, noted];
        Some(Self {
            id,
            is_done: state == "5",
            numbers,
            are_times_right,
            are_leases_right,
            crashes,
            released,
        })
    }
}

/// Checks the history.
fn ended(
    place: &Place,
    acknowledged: &BTreeSet<String>,
    server_crashes: u32,
    findings: &mut Findings,
) -> Result<Judged> {
    let mut judged = Judged::default();
    let text = place.ask(ENDED)?;
    for line in text.lines() {
        let task = Ended::read(line).with_context(|| format!("cannot read {line:?}"))?;
        let [lease, attempt, most, noted] = task.numbers;
        let (id, claims) = (task.id, noted + 1);
        if judged.leases.insert(id.to_owned(), claims).is_some() {
            findings.add(format!("{id}: ended twice"));
        }
        if !task.is_done {
            findings.add(format!("{id}: ended otherwise than done"));
        }
        if attempt == 0 || attempt > lease || attempt > most {
            findings.add(format!("{id}: attempt {attempt} of {most} under lease {lease}"));
        }
        // Every claim but the last has a recorded end, one after the other (ONE-LEASE). After a crash of the
        // server the numbers continue in a new epoch.
        if !task.are_leases_right || server_crashes == 0 && claims != lease {
            findings.add(format!("{id}: {lease} claims, and {noted} ends of others before the last"));
        }
        if !task.are_times_right {
            findings.add(format!("{id}: ended before it started"));
        }
        judged.crashes += task.crashes;
        judged.released += task.released;
    }
    for id in acknowledged.iter().filter(|id| !judged.leases.contains_key(*id)) {
        findings.add(format!("{id}: acknowledged and lost"));
    }
    ensure!(!judged.leases.is_empty(), "no task has ended, so nothing was shown");
    Ok(judged)
}

/// A task reaches the target at most once per claim, and never after the watcher has seen it done.
fn arrivals(judged: &Judged, target: &Target, server_crashes: u32, findings: &mut Findings) {
    let book = target.book();
    for (id, times) in &book.arrivals {
        let claims = judged.leases.get(id).copied().unwrap_or_default();
        if *times > claims + server_crashes {
            findings.add(format!("{id}: ran {times} times with {claims} claims"));
        }
    }
    for id in &book.came_after_done {
        findings.add(format!("{id}: ran after it was done"));
    }
}

/// The findings of `windlass doctor --audit`.
fn audited(place: &Place) -> Result<Vec<String>> {
    let said = place.say(["doctor", "--audit", "--json"])?;
    let report: Value = serde_json::from_str(&said.stdout).with_context(|| format!("{said:?}"))?;
    let checks = report.get("checks").and_then(Value::as_array).context("the doctor's checks")?;
    let field = |check: &Value, name| check.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let of_audit: Vec<&Value> = checks.iter().filter(|check| field(check, "name") == "audit").collect();
    ensure!(!of_audit.is_empty(), "the doctor did not look at tasks: {said:?}");
    Ok(of_audit
        .into_iter()
        .filter(|check| field(check, "level") != "ok")
        .map(|check| field(check, "detail"))
        .collect())
}
