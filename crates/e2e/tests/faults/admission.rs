//! Admission control of the built program: short memory, and slots that change while tasks run.

use std::time::Duration;

use e2e::{
    http::Api,
    process::{self, END_LIMIT, Process, START_LIMIT, Stream},
    until,
    up::{Up, up_command},
};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{assert_refused, is_long, say};

/// How long both parts of the memory bench may take.
const BENCH_LIMIT: Duration = Duration::from_mins(10);

#[test]
fn admission_control_finishes_tasks_beyond_the_memory() {
    let folder = tempfile::tempdir().unwrap();
    let tasks = if is_long() { "10000" } else { "1000" };
    let mut command = process::bench().unwrap();
    command.args(["pressure", "--memory", "--json", "--tasks", tasks]).current_dir(folder.path());
    let mut bench = Process::start(command).unwrap();
    let status = bench.wait(BENCH_LIMIT).unwrap();
    bench.join_readers();
    assert!(status.success(), "{}", bench.transcript());
    let figures: Value = serde_json::from_str(&bench.text(Stream::Out)).unwrap();
    let (on, off) = (&figures["on"], &figures["off"]);
    assert_eq!((&on["finished"], &on["killed"]), (&json!(true), &json!(false)), "{figures}");
    let reasons = on["run"]["reasons"].as_array().unwrap();
    assert!(reasons.iter().any(|reason| reason.as_str().unwrap().contains("memory")), "{figures}");
    assert!(on["run"]["factor_least"].as_f64().unwrap() <= 0.2, "{figures}");
    if on["limited_by"] == "control group" {
        assert_eq!(
            on["run"]["limit_found_mb"], 256,
            "the limit of the group is the one that applies: {figures}"
        );
        assert_eq!((&off["finished"], &off["killed"]), (&json!(false), &json!(true)), "{figures}");
    } else {
        println!("no control group can be made here, so nothing is killed: {}", on["no_control_group"]);
        assert!(
            off["group_peak_mb"].as_f64().unwrap() > 2.0 * on["group_peak_mb"].as_f64().unwrap(),
            "{figures}"
        );
    }
}

/// The newest worker, once it satisfies `is_wanted`.
async fn worker(api: &Api, what: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
    until(async || {
        let answer = api.get("/v1/workers").await.unwrap();
        let worker = answer.body["workers"][0].clone();
        if is_wanted(&worker) { Ok(worker) } else { Err(format!("{what}: {worker}")) }
    })
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn slots_of_a_running_worker_are_set_without_aborting_tasks() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("windlass.db");
    let mut command = up_command(&store, ["--slots", "2", "--log-level", "info"]).unwrap();
    command.env("WINDLASS_HEARTBEAT_MS", "100");
    let mut up = Up::start(command).unwrap();
    let api = up.api();
    let long = json!({"tasks": vec![json!({"kind": "sleep", "payload": {"seconds": 600}}); 5]});
    assert_eq!(api.post("/v1/tasks", &long).await.unwrap().status, 201);
    let full = worker(&api, "it is full", |worker| worker["in_flight"] == 2).await;
    let id = full["worker_id"].as_str().unwrap();
    assert_eq!((&full["max_capacity"], &full["available_capacity"]), (&json!(2), &json!(0)), "{full}");
    assert!(
        full["memory_usage"].as_f64().unwrap() > 0.0 && full["factor"] == 1.0 && full["reason"] == "",
        "{full}"
    );

    let set = |id: &str, slots: &str| {
        say(folder.path(), ["workers", "set", id, "--slots", slots, "--store", "sqlite:windlass.db"])
    };
    let said = set(id, "4");
    assert_eq!(said.code, Some(0), "{said:?}");
    up.process
        .wait_for(START_LIMIT, |line| line.contains("the number of slots was changed").then_some(()))
        .unwrap();
    worker(&api, "four run", |worker| worker["in_flight"] == 4 && worker["max_capacity"] == 4).await;
    assert_eq!(set(id, "1").code, Some(0));
    let fewer = worker(&api, "it has one", |worker| worker["max_capacity"] == 1).await;
    assert_eq!(fewer["in_flight"], 4, "nothing was cut off: {fewer}");
    let listed = say(folder.path(), ["workers", "ls", "--store", "sqlite:windlass.db"]);
    assert!(listed.stdout.contains("4/1") && listed.stdout.contains("live"), "{listed:?}");
    assert!(listed.stdout.lines().all(|line| line.chars().count() <= 120), "{listed:?}");

    assert_refused(&set("w987", "4"), 3, &["w987", "workers ls"]);
    assert_refused(&set("nobody", "4"), 2, &["nobody"]);
    assert_refused(&set(id, "0"), 2, &["slots must be 1 to 100000"]);
    up.process.kill().unwrap();
    let second = Up::on(&store, ["--slots", "2"]).unwrap();
    assert_refused(&set(id, "4"), 4, &[id, "not live"]);
    second.process.signal(Signal::TERM).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_with_low_memory_reports_it_and_continues() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("windlass.db");
    let mut command = up_command(&store, ["--slots", "20", "--log-level", "warn"]).unwrap();
    // Less than any process uses: memory is short from the start and stays so.
    command.env("WINDLASS_MEMORY_LIMIT", "1MiB").env("WINDLASS_HEARTBEAT_MS", "100");
    let mut up = Up::start(command).unwrap();
    let api = up.api();
    let tasks = json!({"tasks": vec![json!({"kind": "sleep", "payload": {"ms": 1}}); 30]});
    assert_eq!(api.post("/v1/tasks", &tasks).await.unwrap().status, 201);
    let short = worker(&api, "it is short", |worker| worker["reason"] == "memory_stop").await;
    assert!(
        short["memory_usage"].as_f64().unwrap() > 1.0 && short["factor"].as_f64().unwrap() < 0.2,
        "{short}"
    );
    // It never stops completely: all tasks run, one at a time.
    let done = say(folder.path(), ["enqueue", "echo", "--wait", "--store", "sqlite:windlass.db"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    up.process.signal(Signal::TERM).unwrap();
    assert!(up.process.wait(END_LIMIT).unwrap().success());
    let lines = up.process.transcript().matches("admission changed what may run").count();
    assert!((1..=10).contains(&lines), "{lines} lines: {}", up.process.transcript());
}
