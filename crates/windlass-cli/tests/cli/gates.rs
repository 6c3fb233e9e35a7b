//! Jobs and workflows against a running `windlass up`.

use rusqlite::Connection;

use crate::support::{Running, windlass};

/// The payload of a task that runs until the test ends it.
const LONG: &str = r#"{"ms":3600000}"#;
/// The payload of an http task that is refused at once, because its target is this machine: the fastest
/// dead task.
const REFUSED_TARGET: &str = r#"{"url":"http://127.0.0.1:1/"}"#;

/// Enqueues long tasks of a job and returns their ids.
fn long_tasks(up: &Running, job: &str, count: &str) -> Vec<String> {
    let arguments = ["enqueue", "sleep", "--payload", LONG, "--job", job, "--count", count, "--json"];
    let ids = up.say(&arguments).done().json()["ids"].clone();
    ids.as_array().unwrap().iter().map(|id| id.as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_job_is_limited_and_a_held_task_says_what_it_waits_for() {
    let up = Running::up(&["--slots", "5"]);
    let said = up.say(&["enqueue", "echo", "--count", "2", "--job", "example.com"]).done();
    assert_eq!(
        said.stdout,
        "2 tasks enqueued (job example.com: no limit; `windlass jobs set example.com --concurrency 3` to set one)\n"
    );
    let said = up.say(&["jobs", "set", "site-7", "--concurrency", "2"]).done();
    assert!(
        said.stdout.contains("concurrency  2\n") && said.stdout.contains("delay        none\n"),
        "{said:?}"
    );
    let said = up.say(&["enqueue", "sleep", "--payload", LONG, "--count", "1", "--job", "site-7"]).done();
    assert_eq!(said.stdout, "1 task enqueued (job site-7: at most 2 at once)\n");
    let ids = long_tasks(&up, "site-7", "2");
    let said = up.say(&["tasks", "why", &ids[1]]).done();
    assert!(said.stdout.starts_with("held: job site-7 is at 2 of 2. Runs when one of "), "{said:?}");
    assert!(said.stdout.contains(&ids[0]), "{said:?}");
    assert!(said.stderr.contains("hint: windlass jobs set site-7 --concurrency 3"), "{said:?}");
    let why = up.say(&["tasks", "why", &ids[1], "--json"]).done().json();
    assert_eq!((&why["code"], &why["state"]), (&"job_limit".into(), &"held".into()));
    up.say(&["jobs", "set", "site-7", "--concurrency", "none", "--delay", "250ms"]).done();
    let job = up.say(&["jobs", "show", "site-7", "--json"]).done().json();
    assert_eq!((&job["delay_ms"], job.get("concurrency")), (&250.into(), None));
    let said = up.say(&["jobs", "ls"]).done();
    assert!(said.stdout.starts_with("JOB") && said.stdout.contains("250ms"), "{said:?}");
    assert_eq!(up.say(&["jobs", "ls", "--json"]).done().json()["jobs"].as_array().unwrap().len(), 2);
    let said = up.say(&["jobs", "ls", "--limit", "1"]).done();
    assert!(said.stdout.contains("example.com") && said.stderr.contains("--after example.com"), "{said:?}");
    let said = up.say(&["jobs", "ls", "--after", "example.com"]).done();
    assert!(said.stdout.contains("site-7") && !said.stdout.contains("example.com"), "{said:?}");
}

#[test]
fn the_enqueue_that_makes_a_job_gives_its_limit() {
    let up = Running::up(&["--slots", "5"]);
    let limited = |limit: &str| {
        up.say(&["enqueue", "echo", "--count", "2", "--job", "site-8", "--job-concurrency", limit])
            .done()
            .stdout
    };
    assert_eq!(limited("3"), "2 tasks enqueued (job site-8: at most 3 at once)\n");
    assert_eq!(limited("9"), "2 tasks enqueued (job site-8: at most 3 at once)\n", "it keeps its limit");
    up.say(&["enqueue", "echo", "--job-concurrency", "3"]).failed(2, &["--job <JOB>"]);
    up.say(&["enqueue", "echo", "--job", "j", "--job-concurrency", "0"]).failed(2, &["0"]);
}

#[test]
fn a_job_is_paused_resumed_cancelled_and_removed() {
    let up = Running::up(&["--slots", "5"]);
    let said = up.say(&["jobs", "pause", "j", "--create"]).done();
    assert!(said.stderr.contains("job j made, paused"), "before its first task: {said:?}");
    let ids = long_tasks(&up, "j", "2");
    let said = up.say(&["tasks", "why", &ids[0]]).done();
    assert_eq!(said.stdout, "held: job j is paused\n");
    assert!(up.say(&["jobs", "pause", "j"]).done().stderr.contains("job j already paused"));
    assert!(up.say(&["jobs", "resume", "j"]).done().stderr.contains("job j resumed"));
    let said = up.say(&["jobs", "cancel", "j", "--now"]).done();
    assert!(said.stderr.contains("job j cancelled"), "{said:?}");
    let said = up.say(&["tasks", "wait", &ids[0], &ids[1]]);
    assert_eq!(said.code, Some(6), "both have ended: {said:?}");
    let said = up.say(&["jobs", "rm", "j"]).done();
    assert!(said.stderr.contains("job j removed; 0 tasks cancelled"), "{said:?}");
    for arguments in
        [["jobs", "show", "j"], ["jobs", "resume", "j"], ["jobs", "cancel", "j"], ["jobs", "rm", "j"]]
    {
        up.say(&arguments).failed(3, &["job j not found"]);
    }
}

#[test]
fn removing_a_job_lets_its_running_tasks_end() {
    let up = Running::up(&["--slots", "5"]);
    let ids = long_tasks(&up, "j", "1");
    up.say(&["jobs", "set", "j", "--concurrency", "1"]).done();
    while up.say(&["tasks", "show", &ids[0], "--json"]).done().json()["state"] != "running" {}
    long_tasks(&up, "j", "3");
    let removed = up.say(&["jobs", "rm", "j", "--json"]).done().json();
    assert_eq!((&removed["cancelled"], &removed["running"]), (&3.into(), &1.into()));
    up.say(&["jobs", "pause", "j"]).failed(4, &["job j is being removed"]);
    // The task may have ended before the answer.
    let said = up.say(&["jobs", "rm", "j", "--now"]).done();
    assert!(said.stderr.contains("asked to end") || said.stderr.contains("job j removed"), "{said:?}");
    assert_eq!(up.say(&["tasks", "wait", &ids[0]]).code, Some(6));
}

#[test]
fn a_blocked_workflow_is_retried_skipped_and_goes_on() {
    let up = Running::up(&[]);
    let first = up.enqueue(&["http", "--payload", REFUSED_TARGET, "--workflow", "order-42"]);
    let second = up.enqueue(&["echo", "--payload", "2", "--workflow", "order-42"]);
    assert_eq!(up.say(&["tasks", "wait", &first]).code, Some(6));
    let said = up.say(&["workflows", "ls", "--blocked"]).done();
    assert!(said.stdout.contains("order-42") && said.stdout.contains(&first), "{said:?}");
    let said = up.say(&["tasks", "why", &second]).done();
    assert_eq!(said.stdout, format!("waiting: its workflow order-42 is blocked by {first}, which is dead\n"));
    assert!(said.stderr.contains("windlass workflows retry order-42"), "{said:?}");
    let said = up.say(&["workflows", "show", "order-42"]).done();
    assert!(said.stdout.contains("blocked by") && said.stdout.contains("on failure  block"), "{said:?}");
    let said = up.say(&["workflows", "retry", "order-42"]).done();
    assert!(said.stderr.contains("tried again"), "{said:?}");
    assert_eq!(up.say(&["tasks", "wait", &first]).code, Some(6));
    let said = up.say(&["workflows", "skip", "order-42"]).done();
    assert!(said.stderr.contains("goes on with the next step"), "{said:?}");
    up.say(&["tasks", "wait", &second]).done();
    assert!(up.say(&["workflows", "show", "order-42"]).done().stdout.contains("1 done, 1 dead"));
    for verb in ["retry", "skip", "cancel"] {
        up.say(&["workflows", verb, "order-42"]).failed(3, &["workflow order-42 not found"]);
    }
}

#[test]
fn a_step_names_the_one_before_and_all_are_cancelled() {
    let up = Running::up(&[]);
    let policy = ["--workflow", "w", "--on-failure", "skip"];
    let first = up.enqueue(&[&["sleep", "--payload", LONG][..], &policy].concat());
    let second = up.enqueue(&["echo", "--workflow", "w"]);
    let said = up.say(&["tasks", "why", &second]).done();
    assert!(said.stdout.starts_with(&format!("waiting: behind task {first} of its workflow w")), "{said:?}");
    let found = up.say(&["workflows", "show", "w", "--json"]).done().json();
    assert_eq!((&found["on_failure"], &found["steps"]), (&"skip".into(), &2.into()));
    up.say(&["workflows", "retry", "w"]).failed(4, &["workflow w is not blocked"]);
    let said = up.say(&["workflows", "cancel", "w", "--json"]).done().json();
    assert_eq!(said["changed"], 2);
    assert_eq!(up.say(&["tasks", "wait", &first, &second]).code, Some(6));
    assert_eq!(up.say(&["workflows", "ls", "--json"]).done().json()["workflows"], serde_json::json!([]));
}

#[test]
fn jobs_and_workflows_can_be_looked_at_without_a_server() {
    let folder = tempfile::tempdir().unwrap();
    windlass(folder.path(), &["migrate"]).done();
    windlass(folder.path(), &["jobs", "set", "a b", "--concurrency", "3", "--delay", "200ms"]).done();
    windlass(folder.path(), &["enqueue", "echo", "--job", "a b", "--workflow", "w"]).done();
    assert_eq!(windlass(folder.path(), &["jobs", "show", "a b", "--json"]).done().json()["held"], 1);
    assert_eq!(
        windlass(folder.path(), &["workflows", "show", "w", "--json"]).done().json()["head_state"],
        "held"
    );
    let said = windlass(folder.path(), &["doctor", "--audit"]).done();
    assert!(said.stdout.contains("leaked 0 · over-admitted 0 · stranded 0"), "{said:?}");
    windlass(folder.path(), &["jobs", "rm", "a b"]).done();
    windlass(folder.path(), &["workflows", "show", "w"]).done();
    windlass(folder.path(), &["workflows", "skip", "w"]).done();
    let said = windlass(folder.path(), &["workflows", "show", "w"]).done();
    assert!(said.stdout.contains("0 done, 0 dead, 1 cancelled"), "{said:?}");
}

/// Waits until a task runs.
fn wait_until_it_runs(up: &Running, id: &str) {
    while up.say(&["tasks", "show", id, "--json"]).done().json()["state"] != "running" {}
}

#[test]
fn the_audit_counts_what_is_leaked_over_admitted_and_stranded() {
    let up = Running::up(&["--slots", "5"]);
    let leaked = up.enqueue(&["sleep", "--payload", LONG]);
    for job in ["full", "open"] {
        up.say(&["jobs", "set", job, "--concurrency", "1"]).done();
    }
    let (full, open) = (long_tasks(&up, "full", "2"), long_tasks(&up, "open", "2"));
    for id in [&leaked, &full[0], &open[0]] {
        wait_until_it_runs(&up, id);
    }
    let said = up.say(&["doctor", "--audit"]).done();
    assert!(said.stdout.contains("leaked 0 · over-admitted 0 · stranded 0"), "{said:?}");
    let foreign = Connection::open(up.folder.path().join("windlass.db")).unwrap();
    let plant = "UPDATE task SET worker = 99 WHERE state = 2 AND job IS NULL;
        UPDATE task SET state = 2, lease = 1, worker = (SELECT max(id) FROM worker) WHERE state = 3 AND job = 'full';
        DELETE FROM task WHERE state = 2 AND job = 'open';";
    foreign.execute_batch(plant).unwrap();
    let said = up.say(&["doctor", "--audit"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stdout.contains("leaked 1 · over-admitted 1 · stranded 1"), "{said:?}");
    for part in [
        format!("SLOT-BALANCED: task {leaked}: leaked"),
        "LIMIT: over-admitted: job full".to_owned(),
        format!("NO-STRANDED: task {}: stranded", open[1]),
    ] {
        assert!(said.stdout.contains(&part), "{part}: {said:?}");
    }
    let said = up.say(&["doctor", "--audit", "--json"]);
    assert_eq!((said.code, &said.json()["ok"]), (Some(1), &false.into()), "{said:?}");
}
