//! Traces over OTLP: from a real server and from a worker in this process to a real receiver.

use std::{sync::Arc, time::Duration};

use e2e::{
    collector::{Collector, Span},
    http::Api,
    process::{END_LIMIT, Stream},
    target::Target,
    until,
    up::Up,
};
use rustix::process::Signal;
use serde_json::json;
use windlass::{Client, Context, Task, Worker, testing, trace::Tracer};
use windlass_otlp::{Exporter, Service};

use crate::{enqueue, until_state};

const REMOTE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// The spans of a trace with one span for each verb, each the parent of the next; returns the first and the
/// run.
fn chain(spans: &[Span], trace: &str) -> (Span, Span) {
    let of = |verb: &str| {
        let found: Vec<_> = spans
            .iter()
            .filter(|span| span.trace == trace && span.name.split(' ').next() == Some(verb))
            .cloned()
            .collect();
        assert_eq!(found.len(), 1, "{verb} in {spans:?}");
        found[0].clone()
    };
    let [enqueue, claim, run, settle] = ["enqueue", "claim", "run", "settle"].map(of);
    assert_eq!(claim.parent.as_ref(), Some(&enqueue.id));
    assert_eq!(run.parent.as_ref(), Some(&claim.id));
    assert_eq!(settle.parent.as_ref(), Some(&run.id));
    (enqueue, run)
}

async fn enqueue_in(api: &Api, trace: &str, task: &serde_json::Value) -> String {
    let answer = api.post_with("/v1/tasks", &[("traceparent", trace)], task).await.unwrap();
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.body["id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_of_a_server_is_one_trace_from_caller_to_target() {
    let folder = tempfile::tempdir().unwrap();
    let (collector, target) =
        (Collector::start().await.unwrap(), Target::start(Duration::ZERO).await.unwrap());
    let otlp = collector.url();
    let arguments = ["--otlp", &otlp, "--allow-target", "127.0.0.0/8"];
    let mut up = Up::on(&folder.path().join("windlass.db"), arguments).unwrap();
    let api = up.api();
    let http = json!({"kind": "http", "payload": {"url": target.url()}});
    let ours = enqueue_in(&api, REMOTE, &http).await;
    until_state(&api, &ours, "done").await;
    let own = enqueue(&api, &json!({"kind": "echo", "job": "j"})).await;
    until_state(&api, &own, "done").await;
    // A caller decided not to sample this one; and this is no trace at all.
    let unkept = REMOTE.replace("4bf9", "0000").replace("-01", "-00");
    let silent = enqueue_in(&api, &unkept, &http).await;
    until_state(&api, &silent, "done").await;
    let nonsense = enqueue_in(&api, "00-nonsense", &json!({"kind": "echo"})).await;
    until_state(&api, &nonsense, "done").await;
    // Waiting spans are sent before the process ends.
    up.process.signal(Signal::TERM).unwrap();
    assert_eq!(up.process.wait(END_LIMIT).unwrap().code(), Some(0));

    let spans = collector.spans();
    let (first, run) = chain(&spans, "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_eq!(first.parent.as_deref(), Some("00f067aa0ba902b7"), "below the caller's span");
    let seen = target.book().traces.clone();
    let expected = format!("00-{}-{}-01", run.trace, run.id);
    assert_eq!(seen.get(&ours), Some(&expected), "the target stands below the run");
    assert_eq!(seen.get(&silent), Some(&unkept), "an unsampled trace is passed on unchanged");
    let own_trace = &spans.iter().find(|span| span.whole.to_string().contains(&own)).unwrap().trace;
    assert_eq!(chain(&spans, own_trace).0.parent, None);
    let traces: std::collections::BTreeSet<_> = spans.iter().map(|span| &span.trace).collect();
    assert_eq!((traces.len(), spans.len()), (3, 12), "{spans:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_down_costs_spans_and_no_tasks() {
    let folder = tempfile::tempdir().unwrap();
    // No process listens on port 1.
    let arguments = ["--otlp", "http://127.0.0.1:1", "--log-format", "json", "--log-level", "info"];
    let mut up = Up::on(&folder.path().join("windlass.db"), arguments).unwrap();
    let api = up.api();
    let task = json!({"kind": "echo"});
    let ids = api.post("/v1/tasks", &json!({"tasks": vec![task; 500]})).await.unwrap().ids();
    assert_eq!(ids.len(), 500);
    for id in &ids {
        until_state(&api, id, "done").await;
    }
    // A monitor sees it while the process runs.
    until(async || {
        let page = api.get("/metrics").await.unwrap().body.as_str().unwrap().to_owned();
        let lost = page.lines().find_map(|line| line.strip_prefix("windlass_spans_dropped_total "));
        let is_counted = lost.is_some_and(|lost| lost.parse::<f64>().unwrap() > 0.0);
        if is_counted { Ok(()) } else { Err(format!("{lost:?} lost")) }
    })
    .await
    .unwrap();
    up.process.signal(Signal::TERM).unwrap();
    assert_eq!(up.process.wait(END_LIMIT).unwrap().code(), Some(0));
    up.process.join_readers();
    let text = up.process.text(Stream::Err);
    let lost = text
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .find(|line| line["message"] == "spans were lost; tasks were not")
        .unwrap_or_else(|| panic!("{text}"));
    // One span for the enqueue, and three for each task.
    assert_eq!((&lost["exported"], &lost["dropped"]), (&json!(0), &json!(1_501)), "{lost}");
}

#[test]
fn an_address_that_cannot_be_a_collector_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    for wrong in ["https://collector", "collector:4318", "http://user:hush@collector"] {
        let mut command = e2e::process::command(e2e::process::windlass().unwrap());
        command.args(["up", "--otlp", wrong]).current_dir(folder.path());
        let said = e2e::process::run(command).unwrap();
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.stderr.contains("otlp_endpoint") && !said.stderr.contains("hush"), "{said:?}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "no store is made for a wrong start");
}

#[derive(serde::Serialize, serde::Deserialize, Task)]
struct Greet(String);

async fn greet(_: Greet, ctx: Context) -> Result<(), String> {
    ctx.trace().map(drop).ok_or_else(|| "no trace".to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_inside_an_application_sends_the_same_spans() {
    let collector = Collector::start().await.unwrap();
    let service = Service { name: "shop".to_owned(), version: "7".to_owned() };
    let exporter = Exporter::start(collector.url().parse().unwrap(), service).unwrap();
    let tracer = Tracer::new(Arc::clone(&exporter) as _);
    let store = testing::store().await.unwrap();
    let client = Client::new(store.clone()).tracer(tracer.clone());
    let remote: windlass::trace::TraceContext = REMOTE.parse().unwrap();
    client.enqueue(Greet("Ada".to_owned())).trace(remote).await.unwrap();
    testing::run_until_idle(Worker::builder(store).tracer(tracer).handle(greet)).await.unwrap();
    let stats = exporter.shutdown(e2e::postgres::LIMIT).await;
    assert_eq!((stats.exported, stats.dropped), (4, 0));
    let spans = collector.spans();
    let (first, run) = chain(&spans, "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_eq!(first.parent.as_deref(), Some("00f067aa0ba902b7"));
    assert_eq!(run.name, "run greet");
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_arrive_while_the_process_runs() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start().await.unwrap();
    let otlp = collector.url();
    let mut command = e2e::up::up_command(&folder.path().join("windlass.db"), [""; 0]).unwrap();
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", &otlp).env("OTEL_SERVICE_NAME", "mail");
    let up = Up::start(command).unwrap();
    enqueue(&up.api(), &json!({"kind": "echo"})).await;
    let spans = collector.wait_for(4).await.unwrap();
    chain(&spans, &spans[0].trace);
}
