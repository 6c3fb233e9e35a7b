//! POISON-CONTAINED: a task that ends its process, again and again.

use std::{path::Path, time::Instant};

use e2e::process::{self, Said};

/// Most restarts that one culprit, or two of them, may cause.
const RESTARTS_MAX: usize = 25;

fn aborter(store: &Path, what: &str, number: &str) -> Said {
    let mut command = process::command(env!("CARGO_BIN_EXE_aborter"));
    command.arg(format!("sqlite:{}", store.display())).args([what, number]);
    process::run(command).unwrap()
}

#[test]
fn one_task_that_aborts_costs_199_others_no_attempt() {
    quarantine("enqueue", 1);
}

#[test]
fn one_task_that_overflows_costs_199_others_no_attempt() {
    quarantine("enqueue-overflow", 1);
}

#[test]
fn two_tasks_that_abort_the_process_are_both_found() {
    quarantine("enqueue-two", 2);
}

fn quarantine(enqueue: &str, culprits: usize) {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("windlass.db");
    let n = if crate::is_long() { 1_000 } else { 200 };
    let number = n.to_string();
    assert_eq!(aborter(&store, enqueue, &number).code, Some(0));

    let began = Instant::now();
    let first = aborter(&store, "first", &number);
    assert_eq!(first.code, None, "the culprit ends the first worker: {first:?}");
    let mut deaths = 1;
    let last = loop {
        let said = aborter(&store, "run", &number);
        if said.code == Some(0) {
            break said;
        }
        assert_eq!(said.code, None, "only the culprit ends a worker: {said:?}");
        deaths += 1;
        assert!(deaths <= RESTARTS_MAX, "the culprit is never found");
    };
    println!(
        "{culprits} of {n} tasks ended the process: {deaths} restarts, {:.1} s in all",
        began.elapsed().as_secs_f64()
    );

    let tasks: Vec<&str> = last.stdout.lines().collect();
    assert_eq!(tasks.len(), n, "{last:?}");
    let done: Vec<_> = tasks.iter().filter(|line| line.starts_with("done")).collect();
    assert_eq!(done.len(), n - culprits, "{tasks:#?}");
    // The one attempt is the one that succeeded: the crashes spent none.
    assert!(done.iter().all(|line| line.starts_with("done attempt 1 ")), "{tasks:#?}");
    let dead: Vec<_> = tasks.iter().filter(|line| line.starts_with("dead")).collect();
    assert_eq!(dead.len(), culprits, "{tasks:#?}");
    assert!(dead.iter().all(|line| line.contains("process died")), "the reason is kept: {dead:?}");
}
