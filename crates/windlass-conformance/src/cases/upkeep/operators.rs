//! Bulk runs, and the last calls that changed something.

use std::time::Duration;

use windlass_core::{
    CallRecord, Error, NewCall, Operators, RunRow,
    operators::{CALLS_KEPT, RUN_MAX_BYTES, RUNS_KEPT, RUNS_MAX, StillRuns},
};

use crate::{cases::rig::Rig, harness::Harness};

/// Whether this store keeps runs and calls: a store behind a server must not show them.
async fn keeps_runs(harness: &dyn Harness, rig: &Rig<'_>) -> bool {
    if !harness.keeps_tokens() {
        let looked = rig.store.operators().running_runs().await;
        assert!(matches!(looked, Err(Error::Unsupported(_))), "{looked:?}");
    }
    harness.keeps_tokens()
}

fn unread(run: &RunRow, other: &RunRow) -> RunRow {
    RunRow { read_at: other.read_at, ..run.clone() }
}

async fn end(operators: &dyn Operators, run: &RunRow) {
    let ended = operators.save_run(run.id, run.version, StillRuns::No, "ended").await.unwrap().unwrap();
    assert!(!ended.is_running);
}

fn call(about: &str, age: Duration) -> NewCall {
    NewCall {
        age,
        who: "token a (ci)".into(),
        call: "POST /v1/tasks/{id}/cancel".into(),
        about: about.into(),
        result: "done".into(),
    }
}

fn abouts(calls: &[CallRecord]) -> Vec<&str> {
    calls.iter().map(|call| call.about.as_str()).collect()
}

pub async fn a_run_is_found_as_it_was_started(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    if !keeps_runs(harness, &rig).await {
        return;
    }
    let operators = rig.store.operators();
    assert_eq!(operators.run(1).await, Ok(None));
    let first = operators.start_run("{\"a\":1}").await.unwrap();
    assert!(first.is_running && first.text == "{\"a\":1}", "{first:?}");
    assert_eq!((first.started_at, first.idle_for()), (first.updated_at, Duration::ZERO));
    harness.advance(Duration::from_secs(3)).await;
    let second = operators.start_run("two").await.unwrap();
    assert!(second.id > first.id);
    let found = operators.run(first.id).await.unwrap().unwrap();
    assert_eq!(unread(&found, &first), first);
    assert!(found.idle_for() >= Duration::from_secs(3));
    let ids = |runs: Vec<RunRow>| runs.into_iter().map(|run| run.id).collect::<Vec<_>>();
    assert_eq!(ids(operators.runs(10).await.unwrap()), [second.id, first.id]);
    assert_eq!(ids(operators.runs(1).await.unwrap()), [second.id]);
    assert_eq!(ids(operators.running_runs().await.unwrap()), [first.id, second.id]);
}

pub async fn a_run_is_saved_only_in_the_version_that_was_read(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    if !keeps_runs(harness, &rig).await {
        return;
    }
    let operators = rig.store.operators();
    let run = operators.start_run("a").await.unwrap();
    harness.advance(Duration::from_secs(1)).await;
    let saved = operators.save_run(run.id, run.version, StillRuns::Yes, "b").await.unwrap().unwrap();
    assert!(saved.version > run.version && saved.text == "b" && saved.is_running);
    assert!(saved.updated_at > run.updated_at && saved.started_at == run.started_at);
    assert_eq!(operators.save_run(run.id, run.version, StillRuns::Yes, "c").await, Ok(None));
    assert_eq!(operators.save_run(run.id + 1, 1, StillRuns::Yes, "c").await, Ok(None));
    let found = operators.run(run.id).await.unwrap().unwrap();
    assert_eq!(unread(&found, &saved), saved);
}

pub async fn of_two_that_save_a_run_at_once_one_wins(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    if !keeps_runs(harness, &rig).await {
        return;
    }
    let operators = rig.store.operators();
    let run = operators.start_run("a").await.unwrap();
    let (one, two) = tokio::join!(
        operators.save_run(run.id, run.version, StillRuns::Yes, "one"),
        operators.save_run(run.id, run.version, StillRuns::No, "two"),
    );
    assert_eq!(one.unwrap().is_some(), two.unwrap().is_none());
}

pub async fn a_run_that_has_ended_stays_ended(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    if !keeps_runs(harness, &rig).await {
        return;
    }
    let operators = rig.store.operators();
    let run = operators.start_run("a").await.unwrap();
    end(operators, &run).await;
    assert_eq!(operators.running_runs().await, Ok(vec![]));
    let ended = operators.run(run.id).await.unwrap().unwrap();
    let saved = operators.save_run(run.id, ended.version, StillRuns::Yes, "late").await.unwrap().unwrap();
    assert!(!saved.is_running && saved.text == "late");
    assert_eq!(operators.running_runs().await, Ok(vec![]));
}

pub async fn runs_at_work_are_bounded(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    if !keeps_runs(harness, &rig).await {
        return;
    }
    let operators = rig.store.operators();
    let mut runs = Vec::new();
    for _ in 0..RUNS_MAX {
        runs.push(operators.start_run("a").await.unwrap());
    }
    let refused = operators.start_run("b").await;
    assert!(matches!(refused, Err(Error::Conflict(_))), "{refused:?}");
    end(operators, &runs[0]).await;
    operators.start_run("c").await.unwrap();
    let long = "x".repeat(RUN_MAX_BYTES + 1);
    let refused = operators.save_run(runs[1].id, runs[1].version, StillRuns::Yes, &long).await;
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
}

pub async fn ended_runs_are_bounded_and_the_oldest_goes(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    if !keeps_runs(harness, &rig).await {
        return;
    }
    let operators = rig.store.operators();
    let at_work = operators.start_run("a").await.unwrap();
    let first = operators.start_run("b").await.unwrap();
    end(operators, &first).await;
    for _ in 0..RUNS_KEPT {
        let run = operators.start_run("c").await.unwrap();
        end(operators, &run).await;
    }
    operators.start_run("d").await.unwrap();
    assert_eq!(operators.run(first.id).await, Ok(None));
    assert!(operators.run(at_work.id).await.unwrap().is_some(), "one that is at work stays");
    assert_eq!(operators.runs(1_000).await.unwrap().len(), RUNS_KEPT as usize + 2);
}

pub async fn calls_are_listed_newest_first(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    if !keeps_runs(harness, &rig).await {
        return;
    }
    let operators = rig.store.operators();
    operators.note_calls(&[]).await.unwrap();
    assert_eq!(operators.calls(None, 10).await, Ok(vec![]));
    let before = harness.now().await;
    operators.note_calls(&[call("/a", Duration::from_hours(1)), call("/b", Duration::ZERO)]).await.unwrap();
    operators.note_calls(&[call("/c", Duration::ZERO)]).await.unwrap();
    let calls = operators.calls(None, 10).await.unwrap();
    assert_eq!(abouts(&calls), ["/c", "/b", "/a"]);
    assert_eq!(abouts(&operators.calls(Some(calls[1].id), 10).await.unwrap()), ["/a"]);
    assert_eq!(abouts(&operators.calls(None, 2).await.unwrap()), ["/c", "/b"]);
    let CallRecord { who, call, result, at, .. } = &calls[2];
    assert_eq!((&**who, &**call, &**result), ("token a (ci)", "POST /v1/tasks/{id}/cancel", "done"));
    assert!(*at < before && calls[1].at.since(*at) >= Duration::from_mins(59), "{calls:?}");
}

pub async fn calls_are_bounded_and_the_oldest_go(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    if !keeps_runs(harness, &rig).await {
        return;
    }
    let operators = rig.store.operators();
    let many = |first: u32, n: u32| {
        (first..first + n).map(|n| call(&n.to_string(), Duration::ZERO)).collect::<Vec<_>>()
    };
    operators.note_calls(&many(0, 600)).await.unwrap();
    operators.note_calls(&many(600, 600)).await.unwrap();
    let calls = operators.calls(None, 2_000).await.unwrap();
    assert_eq!(calls.len(), CALLS_KEPT as usize);
    assert_eq!((calls[0].about.as_str(), calls[999].about.as_str()), ("1199", "200"));
}

pub async fn runs_and_calls_are_there_after_a_restart(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    if !keeps_runs(harness, &rig).await {
        return;
    }
    let run = rig.store.operators().start_run("a").await.unwrap();
    rig.store.operators().note_calls(&[call("/a", Duration::ZERO)]).await.unwrap();
    let Some(rig) = rig.reopen().await else { return };
    let operators = rig.store.operators();
    let found = operators.run(run.id).await.unwrap().unwrap();
    assert_eq!(unread(&found, &run), run);
    assert_eq!(abouts(&operators.calls(None, 10).await.unwrap()), ["/a"]);
    assert!(operators.start_run("b").await.unwrap().id > run.id);
}
