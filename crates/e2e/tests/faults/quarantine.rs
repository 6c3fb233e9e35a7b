//! POISON-CONTAINED: a task that takes its process down, again and again.

use std::path::Path;

use e2e::process::{self, Said};

/// Far more restarts than it can take: three crashes of the culprit, each after some of its neighbours.
const RESTARTS_MAX: usize = 20;

fn aborter(store: &Path, what: &str, number: &str) -> Said {
    let mut command = process::command(env!("CARGO_BIN_EXE_aborter"));
    command.arg(format!("sqlite:{}", store.display())).args([what, number]);
    process::run(command).unwrap()
}

#[test]
fn one_task_that_aborts_the_process_costs_its_199_neighbours_nothing() {
    quarantine("enqueue");
}

#[test]
fn one_task_that_overflows_its_stack_costs_its_199_neighbours_nothing() {
    quarantine("enqueue-overflow");
}

fn quarantine(enqueue: &str) {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("windlass.db");
    assert_eq!(aborter(&store, enqueue, "200").code, Some(0));

    let first = aborter(&store, "first", "100");
    assert_eq!(first.code, None, "the culprit ends the first worker: {first:?}");
    let mut deaths = 1;
    let last = loop {
        let said = aborter(&store, "run", "100");
        if said.code == Some(0) {
            break said;
        }
        assert_eq!(said.code, None, "only the culprit ends a worker: {said:?}");
        deaths += 1;
        assert!(deaths < RESTARTS_MAX, "the culprit is never found");
    };
    println!("{deaths} deaths");

    let tasks: Vec<&str> = last.stdout.lines().collect();
    assert_eq!(tasks.len(), 200, "{last:?}");
    let done: Vec<_> = tasks.iter().filter(|line| line.starts_with("done")).collect();
    assert_eq!(done.len(), 199, "{tasks:#?}");
    // The one attempt is the one that succeeded: none was spent on the crashes.
    assert!(done.iter().all(|line| line.starts_with("done attempt 1 ")), "{tasks:#?}");
    let dead: Vec<_> = tasks.iter().filter(|line| line.starts_with("dead")).collect();
    assert_eq!(dead.len(), 1, "{tasks:#?}");
    assert!(dead[0].contains("crash") || dead[0].contains("process died"), "the reason is kept: {dead:?}");
    assert_eq!(deaths, 3, "max_crashes deaths, and not one more");
}
