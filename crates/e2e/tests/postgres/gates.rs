//! LIMIT, WF-ORDER, SLOT-BALANCED and NO-STRANDED over a fleet: as the target saw it, and as the store
//! recorded it.

mod delay;
mod kill;
mod order;
mod stop;
mod unserved;

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use e2e::{
    postgres::{Judged, Place, client, judge},
    process::Process,
    target::Target,
};
use serde_json::{Value, json};
use windlass_core::{Name, NewTask, Payload, Store as _};

/// A fleet of workers with `slots` slots each.
async fn fleet(place: &Place, workers: usize, slots: u32) -> Vec<Process> {
    let mut fleet = Vec::new();
    for _ in 0..workers {
        fleet.push(place.worker(slots).await.unwrap());
    }
    fleet
}

/// A task that reaches the target.
fn task(target: &Target) -> NewTask {
    let payload = Payload::json(&json!({"url": target.url(), "timeout_ms": 600_000})).unwrap();
    NewTask::new("http", payload).unwrap()
}

/// A task of a job.
fn of_job(target: &Target, job: &str) -> NewTask {
    NewTask { job: Some(Name::new("job", job).unwrap()), ..task(target) }
}

/// A step of a workflow.
fn step(target: &Target, workflow: &str) -> NewTask {
    NewTask { workflow: Some(Name::new("workflow", workflow).unwrap()), ..task(target) }
}

/// Enqueues tasks in one call, and returns their ids in the order of the call.
async fn enqueue(place: &Place, tasks: Vec<NewTask>) -> Vec<String> {
    let store = client(place, place.url()).await.unwrap();
    let answers = store.enqueue(tasks).await.unwrap();
    answers.iter().map(|answer| answer.id.to_string()).collect()
}

/// The JSON output of a command that must succeed.
#[track_caller]
fn json_of(place: &Place, arguments: &[&str]) -> Value {
    let said = place.say(arguments.iter().copied().chain(["--json"])).unwrap();
    assert_eq!(said.code, Some(0), "{arguments:?}: {said:?}");
    serde_json::from_str(&said.stdout).unwrap()
}

#[track_caller]
fn limit(place: &Place, job: &str, concurrency: usize) {
    json_of(place, &["jobs", "set", job, "--concurrency", &concurrency.to_string()]);
}

/// LIMIT and WF-ORDER in one snapshot of the database: no job has more ready or running tasks than its limit,
/// and no workflow more than one.
fn check_snapshot(place: &Place) -> Result<()> {
    let over = place.ask(
        "SELECT 'job ' || t.job, count(*), max(j.concurrency) FROM windlass.task AS t JOIN windlass.job AS j ON j.name = t.job
         WHERE t.state IN (1, 2) GROUP BY t.job HAVING count(*) > max(j.concurrency)
         UNION ALL
         SELECT 'workflow ' || t.workflow, count(*), 1 FROM windlass.task AS t
         WHERE t.state IN (1, 2) AND t.workflow IS NOT NULL GROUP BY t.workflow HAVING count(*) > 1",
    )?;
    ensure!(over.is_empty(), "at once, and allowed: {over}");
    Ok(())
}

/// Waits until every task has ended, checks the gates all the time, and then judges.
async fn judge_gated(place: &Place, ids: &[String], target: &Target) -> Judged {
    let ended = || {
        check_snapshot(place)?;
        Ok(place.count("SELECT count(*) FROM windlass.task WHERE state <> 6")? == 0)
    };
    // The judge describes the tasks that have not ended in time.
    let looked = e2e::postgres::until("every task has ended", ended).await;
    let judged = judge(place, &ids.iter().cloned().collect::<BTreeSet<_>>(), target).await.unwrap();
    looked.unwrap();
    judged
}

/// SLOT-BALANCED: a job whose tasks have all ended has all its room back.
#[track_caller]
fn assert_at_rest(place: &Place, job: &str) {
    let shown = json_of(place, &["jobs", "show", job]);
    for count in ["ready", "running", "held"] {
        assert_eq!(shown[count], 0, "{shown}");
    }
}

/// The ids in the output of an enqueue command.
fn ids_of(said: &Value) -> Result<Vec<String>> {
    let ids = said["ids"].as_array().context("ids")?;
    ids.iter().map(|id| Ok(id.as_str().context("an id")?.to_owned())).collect()
}
