//! Commands against a running `windlass up`.

use crate::support::{NO_SERVER, Running, command, finish, windlass, windlass_with};

/// The payload of an http task that is refused at once, because its target is this machine: the fastest
/// dead task.
const REFUSED_TARGET: &str = r#"{"url":"http://127.0.0.1:1/"}"#;

#[test]
fn the_first_screen_says_what_runs_and_what_to_type_next() {
    let up = Running::up(&["--slots", "20"]);
    up.enqueue(&["echo", "--wait"]);
    let store = up.folder.path().join("windlass.db");
    let address = up.address.clone();
    up.signal(rustix::process::Signal::INT);
    let said = up.end().done();
    for part in [
        concat!("windlass ", env!("CARGO_PKG_VERSION"), " · http://127.0.0.1:"),
        &format!("  store    sqlite:{} (new, durable: fsync on every commit)", store.display()),
        &format!("  pages    {address}/ · xdg-open {address}/"),
        "  worker   20 slots (--slots) · kinds http, sleep, echo",
        "  history  7 days or 1 GiB · dead tasks 30 days",
        "try:  windlass enqueue echo --payload '{\"hello\":\"world\"}' --wait",
    ] {
        assert!(said.stdout.contains(part), "{part:?} is missing: {said:?}");
    }
}

#[test]
fn a_document_variable_in_force_is_on_the_first_screen() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("windlass.toml"), "slots = 9\n").unwrap();
    let up = Running::up_in(folder, &[]);
    up.signal(rustix::process::Signal::TERM);
    let said = up.end().done();
    assert!(said.stdout.contains("9 slots (windlass.toml:1)"), "{said:?}");
}

#[test]
fn an_awaited_echo_prints_its_output_and_how_long_it_took() {
    let up = Running::up(&[]);
    let said = up.say(&["enqueue", "echo", "--payload", r#"{"hello":"world"}"#, "--wait"]).done();
    let line = said.stdout.trim_end();
    assert!(line.contains(" done in ") && line.ends_with(r#"s  {"hello":"world"}"#), "{said:?}");
    let said = up.say(&["enqueue", "echo", "--payload", "[1,2]", "--wait", "--json"]).done();
    assert_eq!((&said.json()["state"], &said.json()["output"]), (&"done".into(), &serde_json::json!([1, 2])));
}

#[test]
fn a_payload_comes_from_a_file_or_from_stdin() {
    let up = Running::up(&[]);
    std::fs::write(up.folder.path().join("payload.json"), r#"{"from":"file"}"#).unwrap();
    let said = up.say(&["enqueue", "echo", "--payload", "@payload.json", "--wait"]).done();
    assert!(said.stdout.contains(r#"{"from":"file"}"#), "{said:?}");
    let arguments = ["enqueue", "echo", "--payload", "-", "--wait"];
    let said = windlass_with(up.folder.path(), &arguments, br#"{"from":"stdin"}"#).done();
    assert!(said.stdout.contains(r#"{"from":"stdin"}"#), "{said:?}");
}

#[test]
fn a_task_that_ends_badly_is_exit_code_6() {
    let up = Running::up(&[]);
    let said = up.say(&["enqueue", "http", "--payload", REFUSED_TARGET, "--wait"]);
    assert_eq!(said.code, Some(6), "{said:?}");
    assert!(said.stdout.contains(" dead in "), "{said:?}");
    let id = said.stdout.split_whitespace().next().unwrap().to_owned();
    let said = up.say(&["tasks", "wait", &id]);
    assert_eq!(said.code, Some(6), "{said:?}");
    let said = up.say(&["tasks", "why", &id]).done();
    assert!(said.stdout.starts_with("dead: "), "{said:?}");
}

#[test]
fn a_kind_without_a_worker_is_taken_with_a_warning() {
    let up = Running::up(&[]);
    let said = up.say(&["enqueue", "resize", "--payload", "{}"]).done();
    assert!(said.stderr.contains("warning: no live worker handles kind \"resize\""), "{said:?}");
    let why = up.say(&["tasks", "why", said.stdout.trim()]).done();
    assert!(why.stdout.contains("no live worker"), "{why:?}");
    let doctor = up.say(&["doctor"]);
    assert_eq!(doctor.code, Some(1), "{doctor:?}");
    assert!(doctor.stdout.contains("resize"), "{doctor:?}");
}

#[test]
fn many_equal_tasks_are_counted_and_awaited_together() {
    let up = Running::up(&[]);
    let said = up.say(&["enqueue", "echo", "--count", "2500", "--job", "example.com"]).done();
    assert_eq!(
        said.stdout,
        "2,500 tasks enqueued (job example.com: no limit; `windlass jobs set example.com --concurrency 3` to set one)\n"
    );
    let said = up.say(&["enqueue", "echo", "--count", "1200", "--wait"]).done();
    assert!(said.stdout.starts_with("1,200 tasks: 1200 done, 0 dead, 0 cancelled in "), "{said:?}");
}

#[test]
fn a_repeated_key_gives_its_task_or_a_refusal() {
    let up = Running::up(&[]);
    let first = up.enqueue(&["echo", "--payload", "1", "--key", "k"]);
    let again = up.say(&["enqueue", "echo", "--payload", "1", "--key", "k"]).done();
    assert_eq!(again.stdout.trim(), first);
    assert!(again.stderr.contains("already there"), "{again:?}");
    up.say(&["enqueue", "echo", "--payload", "2", "--key", "k"]).failed(4, &["\"k\"", &first]);
}

#[test]
fn a_bad_line_refuses_its_file_without_skip_bad() {
    let up = Running::up(&["--slots", "1"]);
    let lines = "{\"kind\":\"echo\",\"payload\":1}\n\nnot json\n{\"kind\":\"echo\",\"paylod\":1}\n{\"kind\":\"echo\"}\n{\"kind\":\"\"}\n";
    let from = |more: &[&str]| {
        let arguments: Vec<&str> = ["enqueue", "--from", "-"].iter().chain(more).copied().collect();
        windlass_with(up.folder.path(), &arguments, lines.as_bytes())
    };
    let named = ["line 3: not a task", "line 4: not a task", "paylod", "line 6: "];
    let said = from(&[])
        .failed(1, &named)
        .failed(1, &["3 lines are not valid tasks; nothing was enqueued", "--skip-bad"]);
    assert_eq!(up.say(&["tasks", "ls", "--json"]).done().json()["tasks"], serde_json::json!([]), "{said:?}");
    let said = from(&["--skip-bad"]).done();
    assert_eq!(said.stdout, "2 tasks enqueued, 3 left out\n", "{said:?}");
    for part in named {
        assert!(said.stderr.contains(part), "{part:?} is missing: {said:?}");
    }
    let many = "{\"kind\":\"echo\",\"payload\":[1,2,3]}\n".repeat(3_000);
    std::fs::write(up.folder.path().join("many.jsonl"), many).unwrap();
    let said = up.say(&["enqueue", "--from", "many.jsonl", "--json"]).done();
    assert_eq!(said.json()["enqueued"], 3_000);
}

/// This is the state after an interrupted run: tasks that the first run of that name added are not added
/// again.
#[test]
fn a_second_run_of_the_same_name_adds_only_what_is_missing() {
    let up = Running::up(&[]);
    let line = |n: usize| format!("{{\"kind\":\"echo\",\"payload\":{n}}}\n");
    let write = |n: usize| {
        std::fs::write(up.folder.path().join("f.jsonl"), (0..n).map(line).collect::<String>()).unwrap();
    };
    let run = || up.say(&["enqueue", "--from", "f.jsonl", "--run", "tuesday", "--json"]).done().json();
    write(1_200);
    assert_eq!((&run()["enqueued"], &run()["existing"]), (&1_200.into(), &1_200.into()));
    write(2_500);
    let rest = run();
    assert_eq!((&rest["enqueued"], &rest["existing"]), (&1_300.into(), &1_200.into()), "{rest}");
    let anew = up.say(&["enqueue", "--from", "f.jsonl"]).done();
    assert_eq!(anew.stdout, "2,500 tasks enqueued\n", "a run without a name is a run of its own");
}

#[test]
fn the_id_of_an_awaited_task_is_printed_at_once() {
    use std::io::BufRead as _;
    let up = Running::up(&["--slots", "1"]);
    let arguments = ["enqueue", "sleep", "--payload", r#"{"ms":3600000}"#, "--wait"];
    let mut child = crate::support::command(up.folder.path(), &arguments).spawn().unwrap();
    let mut lines = std::io::BufReader::new(child.stderr.take().unwrap()).lines();
    let line = lines.find_map(|line| line.ok().filter(|line| !line.starts_with("target: "))).unwrap();
    let id = line.split(' ').next().unwrap().to_owned();
    assert_eq!(line, format!("{id} enqueued; waiting for its end"));
    let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(up.say(&["tasks", "show", &id, "--json"]).done().json()["kind"], "sleep");
    let arguments = ["enqueue", "sleep", "--payload", r#"{"ms":3600000}"#, "--wait-timeout", "1ms"];
    let said = up.say(&arguments).failed(1, &["had not ended in time", "windlass tasks why"]);
    let line = said.stderr.lines().find(|line| !line.starts_with("target: ")).unwrap();
    let id = line.split(' ').next().unwrap();
    assert!(said.stderr.contains(&format!("task {id} had not ended")), "{said:?}");
}

#[test]
fn a_payload_over_the_limit_is_refused() {
    let up = Running::up(&[]);
    std::fs::write(up.folder.path().join("big.json"), format!("\"{}\"", "x".repeat(1 << 20))).unwrap();
    up.say(&["enqueue", "echo", "--payload", "@big.json"]).failed(4, &["payload_max_bytes"]);
}

#[test]
fn a_wrong_payload_of_a_built_in_kind_is_refused_at_once() {
    let up = Running::up(&[]);
    up.say(&["enqueue", "http", "--payload", r#"{"uri":"https://example.com"}"#]).failed(2, &["url"]);
}

#[test]
fn tasks_are_listed_shown_cancelled_and_not_found() {
    let up = Running::up(&[]);
    let id =
        up.enqueue(&["echo", "--payload", r#"{"a":1}"#, "--in", "1h", "--priority", "-2", "--queue", "slow"]);
    let said = up.say(&["tasks", "ls", "--queue", "slow"]).done();
    assert!(said.stdout.contains(&id) && said.stdout.contains("scheduled"), "{said:?}");
    let said = up.say(&["tasks", "ls", "--kind", "http"]).done();
    assert_eq!(said.stdout, "", "{said:?}");
    let said = up.say(&["tasks", "show", &id]).done();
    assert!(said.stdout.contains(r#"{"a":1}"#) && said.stdout.contains("slow"), "{said:?}");
    assert_eq!(up.say(&["tasks", "show", &id, "--json"]).done().json()["priority"], -2);
    let said = up.say(&["tasks", "why", &id]).done();
    assert!(said.stdout.starts_with("scheduled: due in "), "{said:?}");
    let said = up.say(&["tasks", "cancel", &id, "--reason", "not needed"]).done();
    assert_eq!(said.stdout, format!("{id} cancelled\n"));
    up.say(&["tasks", "cancel", &id]).failed(4, &[&id]);
    up.say(&["tasks", "show", "0000000000000"]).failed(3, &["0000000000000"]);
    up.say(&["tasks", "wait", "0000000000000"]).failed(3, &["0000000000000"]);
}

#[test]
fn a_running_task_is_cancelled_and_its_waiter_learns_it() {
    let up = Running::up(&[]);
    let id = up.enqueue(&["sleep", "--payload", r#"{"ms":3600000}"#]);
    let mut wait = command(up.folder.path(), &["tasks", "wait", &id]).spawn().unwrap();
    up.say(&["tasks", "cancel", &id]).done();
    assert_eq!(wait.wait().unwrap().code(), Some(6));
}

#[test]
fn dead_tasks_are_grouped_by_error_and_retried_by_filter() {
    let up = Running::up(&[]);
    let said = up.say(&["enqueue", "http", "--payload", REFUSED_TARGET, "--count", "3", "--wait"]);
    assert_eq!(said.code, Some(6), "{said:?}");
    let groups = up.say(&["tasks", "ls", "--state", "dead", "--json"]).done().json();
    assert_eq!((&groups["groups"][0]["count"], groups["groups"].as_array().unwrap().len()), (&3.into(), 1));
    let each = up.say(&["tasks", "ls", "--state", "dead", "--each", "--json"]).done().json();
    assert_eq!(each["tasks"].as_array().unwrap().len(), 3);

    let dry = up.say(&["tasks", "retry", "--state", "dead", "--dry-run"]).done();
    assert_eq!(dry.stdout, "3 tasks would be made ready again\n");
    // A test has no terminal, so the question cannot be answered.
    up.say(&["tasks", "retry", "--state", "dead"]).failed(2, &["Retry 3 tasks?", "--yes"]);
    let said = up.say(&["tasks", "retry", "--state", "dead", "--yes"]).done();
    assert_eq!(said.stdout, "3 tasks made ready again\n");
    up.say(&["enqueue", "echo", "--in", "1h", "--count", "2"]).done();
    let said = up.say(&["tasks", "cancel", "--state", "scheduled", "--yes"]).done();
    assert_eq!(said.stdout, "2 tasks cancelled or asked to end\n");
}

#[test]
fn a_bulk_run_is_started_shown_and_stopped() {
    let up = Running::up(&[]);
    assert!(up.say(&["runs", "ls"]).done().stderr.contains("no bulk runs"));
    up.say(&["enqueue", "echo", "--in", "1h", "--count", "3"]).done();
    let command = ["tasks", "cancel", "--state", "scheduled", "--over", "10h", "--yes", "--detach"];
    assert_eq!(up.say(&command).done().stdout, "run 1 started\n");
    let run = || up.say(&["runs", "show", "1", "--json"]).done().json();
    assert!((0..1_000).any(|_| run()["changed"] == 1), "the first of the three comes at once: {}", run());
    let shown = up.say(&["runs", "show", "1"]).done().stdout;
    assert!(shown.contains("1 of 3") && shown.contains("over        10 h"), "{shown}");
    assert_eq!(up.say(&["runs", "stop", "1"]).done().stdout, "run 1 stopped: 1 of 3 changed\n");
    up.say(&["runs", "stop", "1"]).failed(4, &["run 1 has ended: stopped"]);
    up.say(&["runs", "show", "2"]).failed(3, &["run 2 not found", "windlass runs ls"]);
    let runs = up.say(&["runs", "ls", "--json"]).done().json();
    assert_eq!((&runs["runs"][0]["state"], &runs["runs"][0]["by"]), (&"stopped".into(), &"anybody".into()));
    let page = up.say(&["tasks", "ls", "--state", "scheduled", "--json"]).done().json();
    assert_eq!(page["tasks"].as_array().unwrap().len(), 2, "the rest is as it was");
    let calls = up.say(&["activity", "--json"]).done().json();
    let about: Vec<_> = calls["calls"].as_array().unwrap().iter().map(|call| &call["about"]).collect();
    assert_eq!(about, ["/v1/runs/1/stop", "/v1/runs/1"], "{calls}");
    up.say(&["tasks", "cancel", "--over", "1h", page["tasks"][0]["id"].as_str().unwrap()])
        .failed(2, &["--over"]);
}

#[test]
fn a_paused_queue_holds_its_tasks_until_it_is_resumed() {
    let up = Running::up(&[]);
    up.say(&["queues", "pause", "mail", "--create"]).done();
    let id = up.enqueue(&["echo", "--queue", "mail"]);
    let said = up.say(&["tasks", "wait", &id, "--timeout", "50ms"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    let said = up.say(&["queues", "ls"]).done();
    assert!(said.stdout.contains("mail") && said.stdout.contains("paused"), "{said:?}");
    up.say(&["queues", "resume", "mail"]).done();
    up.say(&["tasks", "wait", &id]).done();
}

#[test]
fn worker_health_and_doctor_agree_that_all_is_well() {
    let up = Running::up(&["--slots", "7"]);
    up.enqueue(&["echo", "--wait"]);
    let workers = up.say(&["workers", "ls", "--json"]).done().json();
    assert_eq!(
        (&workers["workers"][0]["max_capacity"], &workers["workers"][0]["live"]),
        (&7.into(), &true.into())
    );
    let said = up.say(&["workers", "ls"]).done();
    assert!(said.stdout.contains("live") && said.stdout.contains("echo, http, sleep"), "{said:?}");
    let said = up.say(&["health"]).done();
    assert!(said.stdout.starts_with("ok: windlass "), "{said:?}");
    let said = up.say(&["doctor", "--audit", "--json"]);
    assert_eq!(said.json()["ok"], true, "{said:?}");
    assert_eq!(said.code, Some(0), "{said:?}");
}

#[test]
fn a_server_is_found_by_its_address_from_anywhere() {
    let up = Running::up(&[]);
    let elsewhere = tempfile::tempdir().unwrap();
    windlass(elsewhere.path(), &["enqueue", "echo", "--wait", "--server", &up.address]).done();
    let mut ls = command(elsewhere.path(), &["tasks", "ls", "--json"]);
    ls.env("WINDLASS_LISTEN", up.address.trim_start_matches("http://"));
    assert_eq!(finish(ls).done().json()["tasks"].as_array().unwrap().len(), 1);
}

#[test]
fn a_second_server_and_a_taken_port_are_refused() {
    let up = Running::up(&[]);
    let said = up.say(&["up", "--listen", "127.0.0.1:0"]);
    said.failed(4, &["windlass.db is in use by process", &up.pid().to_string(), &up.address]);
    let elsewhere = tempfile::tempdir().unwrap();
    let taken = up.address.trim_start_matches("http://");
    windlass(elsewhere.path(), &["up", "--listen", taken]).failed(4, &[taken, "--listen"]);
    let said = windlass(elsewhere.path(), &["tasks", "ls"]);
    assert!(!said.stderr.contains("in use"), "the store of the refused server was closed: {said:?}");
    assert_ne!(taken, NO_SERVER);
}

#[test]
fn an_export_is_written_from_a_server_and_from_a_file() {
    let up = Running::up(&[]);
    up.enqueue(&["echo", "--payload", r#"{"secret":1}"#, "--wait", "--queue", "mail"]);
    up.enqueue(&["echo", "--key", "=1+1", "--in", "1h"]);
    let csv = up.say(&["tasks", "export", "--format", "csv"]).done().stdout;
    assert!(csv.starts_with("id,state,kind,queue,") && csv.lines().count() == 3, "{csv}");
    assert!(csv.contains("\"'=1+1\"") && !csv.contains("secret"), "{csv}");
    let whole = ["tasks", "export", "--format", "ndjson", "--payload", "--queue", "mail"];
    let lines = up.say(&whole).done().stdout;
    let task: serde_json::Value = serde_json::from_str(&lines).unwrap();
    assert_eq!((&task["payload"]["secret"], &task["state"]), (&1.into(), &"done".into()));
    up.say(&["tasks", "export", "--format", "csv", "--payload"])
        .failed(2, &["payload is only for format=ndjson"]);
    up.say(&["tasks", "export", "--format", "xml"]).failed(2, &["csv", "ndjson"]);
    up.signal(rustix::process::Signal::INT);
    let folder = up.kill();
    let offline =
        windlass(folder.path(), &["tasks", "export", "--format", "csv", "--limit", "1"]).done().stdout;
    assert!(offline.lines().count() == 3 && offline.contains("# cut after 1 tasks"), "{offline}");
}
