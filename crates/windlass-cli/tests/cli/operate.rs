//! Commands of operators, and whether the hints of the program work.

use rustix::process::Signal;
use serde_json::json;

use crate::{
    access::with_token,
    support::{Running, Said, windlass},
};

/// The payload of an http task that is refused at once, because its target is this machine: the fastest
/// dead task.
const REFUSED_TARGET: &str = r#"{"url":"http://127.0.0.1:1/"}"#;

fn die(up: &Running) -> String {
    let said = up.say(&["enqueue", "http", "--payload", REFUSED_TARGET, "--wait", "--json"]);
    assert_eq!(said.code, Some(6), "{said:?}");
    said.json()["id"].as_str().unwrap().to_owned()
}

/// The command that a hint shows in backticks, without the name of the program.
fn hinted(said: &Said) -> Vec<String> {
    let hint = said.stderr.lines().find_map(|line| line.strip_prefix("hint: ")).unwrap();
    let command = hint.split('`').find_map(|text| text.strip_prefix("windlass ")).unwrap();
    command.split(' ').map(str::to_owned).collect()
}

fn follow(up: &Running, said: &Said) -> Said {
    let command = hinted(said);
    up.say(&command.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn a_missing_queue_or_job_is_paused_only_with_create() {
    let up = Running::up(&[]);
    up.enqueue(&["echo", "--queue", "mail", "--job", "example.com"]);
    up.say(&["queues", "pause", "mial"]).failed(3, &["queue mial not found", "did you mean \"mail\"?"]);
    up.say(&["queues", "resume", "mial"]).failed(3, &["queue mial not found"]);
    up.say(&["jobs", "pause", "exmaple.com"])
        .failed(3, &["job exmaple.com not found", "did you mean \"example.com\"?"]);
    let queues = up.say(&["queues", "ls", "--json"]).done().json();
    assert_eq!(queues["queues"].as_array().unwrap().len(), 1, "nothing was made: {queues}");
    assert_eq!(up.say(&["jobs", "ls", "--json"]).done().json()["jobs"].as_array().unwrap().len(), 1);
    for (thing, name) in [("queues", "reports-of-the-night"), ("jobs", "another-customer")] {
        let said = up.say(&[thing, "pause", name]).failed(3, &["not found", "--create"]);
        let said = follow(&up, &said).done();
        assert!(said.stderr.contains("paused"), "{said:?}");
    }
    assert!(up.say(&["queues", "resume", "reports-of-the-night"]).done().stderr.contains("resumed"));
    assert!(up.say(&["jobs", "set", "third", "--concurrency", "1"]).done().stderr.contains("job third made"));
}

#[test]
fn a_queue_says_why_its_tasks_wait() {
    let up = Running::up(&[]);
    up.enqueue(&["echo", "--queue", "mail", "--in", "1h"]);
    up.enqueue(&["report", "--queue", "mail"]);
    up.enqueue(&["report", "--queue", "mail"]);
    let said = up.say(&["queues", "why", "mail"]).done();
    let lines: Vec<&str> = said.stdout.lines().collect();
    assert_eq!(lines[0], "     2  ready, but no live worker handles kind \"report\" on queue mail");
    assert_eq!(lines[1], "        hint: start a worker that has a handler for \"report\"");
    assert!(lines[2].starts_with("     1  scheduled: their time has not come; the first of them is due in "));
    let json = up.say(&["queues", "why", "mail", "--json"]).done().json();
    assert_eq!((&json["looked_at"], &json["causes"][0]["code"]), (&json!(3), &json!("no_worker")));
    up.say(&["queues", "why", "other"]).failed(3, &["queue other not found"]);
}

#[test]
fn an_enqueue_to_a_cancelled_job_is_warned_of() {
    let up = Running::up(&[]);
    up.enqueue(&["echo", "--job", "j"]);
    up.say(&["jobs", "cancel", "j"]).done();
    let said = up.say(&["enqueue", "echo", "--job", "j"]).done();
    assert!(said.stderr.contains("warning: job \"j\" is cancelled, and the task with it"), "{said:?}");
    assert_eq!(up.say(&["enqueue", "echo", "--job", "j", "--json"]).done().json()["cancelled"], true);
    up.say(&["jobs", "resume", "j"]).done();
    assert!(!up.say(&["enqueue", "echo", "--job", "j"]).done().stderr.contains("warning"));
}

#[test]
fn a_done_task_is_repeated_and_both_show_it() {
    let up = Running::up(&[]);
    let first = up.say(&["enqueue", "echo", "--payload", "7", "--wait", "--json"]).done().json();
    let first = first["id"].as_str().unwrap();
    let said = up.say(&["tasks", "retry", first]).done();
    let second = said.stdout.split(' ').next().unwrap().to_owned();
    assert!(said.stdout.ends_with(&format!("repeats {first}\n")), "{said:?}");
    up.say(&["tasks", "wait", &second]).done();
    assert!(up.say(&["tasks", "show", first]).done().stdout.contains(&format!("repeated   by {second}")));
    assert!(up.say(&["tasks", "show", &second]).done().stdout.contains(&format!("repeats    {first}")));
    let said = up.say(&["tasks", "retry", first]).failed(4, &["already repeated", &second]);
    assert!(follow(&up, &said).done().stdout.ends_with(&format!("repeats {second}\n")));
}

#[test]
fn dead_tasks_are_removed_and_a_queue_is_purged_after_a_dry_run() {
    let up = Running::up(&[]);
    let ids: Vec<String> = (0..3).map(|_| die(&up)).collect();
    let said = up.say(&["tasks", "rm", "--kind", "http", "--dry-run"]).done();
    assert_eq!(said.stdout, "3 tasks would be removed\n", "{said:?}");
    up.say(&["tasks", "rm", "--kind", "http"]).failed(2, &["Remove for good 3 tasks?", "--yes", "--dry-run"]);
    assert_eq!(up.say(&["tasks", "rm", &ids[0]]).done().stdout, format!("{} removed\n", ids[0]));
    up.say(&["tasks", "show", &ids[0]]).failed(3, &["not found"]);
    assert_eq!(up.say(&["tasks", "rm", "--kind", "http", "--yes"]).done().stdout, "2 tasks removed\n");
    die(&up);
    up.say(&["enqueue", "echo", "--in", "1h", "--count", "4"]).done();
    let said = up.say(&["queues", "purge", "default", "--dry-run"]).done();
    assert_eq!(said.stdout, "4 tasks would be cancelled and 1 task removed\n", "{said:?}");
    let said = up.say(&["queues", "purge", "default", "--yes"]).done();
    assert_eq!(said.stdout, "4 tasks cancelled, 1 task removed\n", "{said:?}");
    up.say(&["queues", "purge", "typo", "--yes"]).failed(3, &["queue typo not found"]);
}

#[test]
fn tasks_are_chosen_by_cause_worker_key_id_and_time() {
    let up = Running::up(&[]);
    let ids: Vec<String> = (0..3).map(|_| die(&up)).collect();
    up.enqueue(&["echo", "--in", "1h", "--key", "k"]);
    let groups = up.say(&["tasks", "ls", "--state", "dead", "--json"]).done().json();
    let cause = groups["groups"][0]["error"].as_str().unwrap();
    let dry = |flags: &[&str]| {
        let command = [&["tasks", "rm", "--dry-run"], flags].concat();
        up.say(&command).done().stdout
    };
    assert_eq!(dry(&["--cause", cause]), "3 tasks would be removed\n");
    assert_eq!(dry(&["--id", &ids[0], "--id", &ids[2]]), "2 tasks would be removed\n");
    assert_eq!(dry(&["--cause", cause, "--until", "1h"]), "0 tasks would be removed\n");
    assert_eq!(dry(&["--worker", "w1", "--since", "1h"]), "3 tasks would be removed\n");
    let listed = up.say(&["tasks", "ls", "--key", "k", "--json"]).done().json();
    assert_eq!(listed["tasks"][0]["kind"], "echo", "{listed}");
    assert_eq!(
        up.say(&["tasks", "cancel", "--key", "k", "--yes"]).done().stdout,
        "1 task cancelled or asked to end\n"
    );
    let said = up.say(&["tasks", "retry", "--id", &ids[1], "--yes"]).done();
    assert_eq!(said.stdout, "1 task made ready again\n", "{said:?}");
}

#[test]
fn a_workflow_that_has_ended_can_be_shown() {
    let up = Running::up(&[]);
    for _ in 0..2 {
        up.say(&["enqueue", "echo", "--workflow", "order-42", "--wait"]).done();
    }
    let said = up.say(&["workflows", "show", "order-42"]).done();
    assert!(said.stdout.contains("state       ended\n"), "{said:?}");
    assert!(said.stdout.contains("steps       2 done, 0 dead, 0 cancelled\n"), "{said:?}");
    up.say(&["workflows", "show", "order-43"]).failed(3, &["workflow order-43 not found"]);
}

#[test]
fn the_hint_of_a_key_conflict_works() {
    let up = Running::up(&[]);
    let first = up.enqueue(&["echo", "--payload", "1", "--key", "k"]);
    let said =
        up.say(&["enqueue", "echo", "--payload", "2", "--key", "k"]).failed(4, &["ignore_key_conflict"]);
    let command = hinted(&said);
    assert_eq!(command, ["enqueue", "KIND", "--key", "KEY", "--ignore-key-conflict"]);
    let arguments = ["enqueue", "echo", "--payload", "2", "--key", "k", "--ignore-key-conflict"];
    assert_eq!(up.say(&arguments).done().stdout.trim(), first);
    let line = r#"{"kind":"echo","payload":3,"key":"k","ignore_key_conflict":true}"#;
    std::fs::write(up.folder.path().join("one.jsonl"), line).unwrap();
    assert_eq!(up.say(&["enqueue", "--from", "one.jsonl", "--json"]).done().json()["existing"], json!(1));
}

#[test]
fn the_hints_of_backup_and_restore_work() {
    let up = Running::up(&[]);
    up.say(&["backup", "copy.db"]).done();
    let said = up.say(&["backup", "copy.db"]).failed(4, &["copy.db exists"]);
    assert!(!said.stderr.contains("--force"), "it has no such flag: {said:?}");
    let folder = up.kill();
    let said = windlass(folder.path(), &["restore", "copy.db"]).failed(4, &["exists"]);
    let command = hinted(&said);
    windlass(folder.path(), &command.iter().map(String::as_str).collect::<Vec<_>>()).done();
}

/// A server that requires tokens and has none cannot create the first one.
#[test]
fn the_first_token_is_made_as_the_hint_says() {
    let up = Running::up(&["--auth", "tokens"]);
    let command = ["token", "create", "--scope", "admin"];
    let said = up.say(&command).failed(4, &["stop the server, run this again", "the first token"]);
    assert!(!said.stderr.contains("`windlass token create"), "not the command that was refused: {said:?}");
    up.signal(Signal::TERM);
    let folder = up.kill();
    let token = windlass(folder.path(), &command).done().stdout.trim().to_owned();
    let up = Running::up_in(folder, &["--auth", "tokens"]);
    with_token(up.folder.path(), &token, &["enqueue", "echo", "--wait"]).done();
    with_token(up.folder.path(), &token, &["token", "create", "--scope", "read"]).done();
}
