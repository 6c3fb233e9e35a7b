//! `/metrics` against the table of names, in both directions.

use std::collections::{BTreeMap, BTreeSet};

use e2e::{
    http::Api,
    postgres::Place,
    process::{self, Process, START_LIMIT},
    until,
    up::Up,
};
use windlass::telemetry::names::{self, Kind};

use crate::{consumer, load, page::Page};

/// The table of a process without consumers.
fn table() -> impl Iterator<Item = &'static names::Metric> {
    names::ALL.iter().copied().filter(|metric| !metric.is_of_consumers())
}

pub async fn page(api: &Api) -> Page {
    let answer = api.get("/metrics").await.unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    Page::read(answer.body.as_str().unwrap())
}

/// Whether the first audit has ended: before that there are no findings.
fn is_audited(page: &Page) -> bool {
    page.sum("windlass_audit_timestamp_seconds", &[]) > 0.0
}

/// Every shown metric is in the table with its type and labels, and every metric in the table is shown.
fn compare(page: &Page) {
    let told = |of: fn(&names::Metric) -> String| -> BTreeMap<String, String> {
        table().map(|metric| (metric.name.to_owned(), of(metric))).collect()
    };
    assert_eq!(page.types, told(|metric| metric.kind.as_str().to_owned()));
    assert_eq!(page.helps, told(|metric| metric.help.to_owned()));
    let labels: BTreeMap<String, BTreeSet<String>> = table()
        .map(|metric| {
            (metric.name.to_owned(), metric.labels.iter().map(|label| (*label).to_owned()).collect())
        })
        .collect();
    assert_eq!(page.labels(), labels);
    for metric in table() {
        if let Kind::Histogram(bounds) = metric.kind {
            let bucket = format!("{}_bucket", metric.name);
            let shown: BTreeSet<&str> = page
                .lines
                .iter()
                .filter(|line| line.name == bucket)
                .map(|line| line.labels["le"].as_str())
                .collect();
            assert_eq!(shown.len(), bounds.len() + 1, "{bucket}");
            assert!(shown.contains("+Inf"), "{bucket}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_shows_exactly_the_metrics_of_the_table() {
    let loaded = load::start().await;
    let api = loaded.up.api();
    let page = until(async || {
        let page = page(&api).await;
        let outcome = |outcome| page.sum("windlass_tasks_settled_total", &[("outcome", outcome)]);
        let is_there = [
            ("done", outcome("done")),
            ("retry", outcome("retry")),
            ("dead", outcome("dead")),
            ("timeouts", page.sum("windlass_task_timeouts_total", &[])),
            ("an existing key", page.sum("windlass_tasks_enqueued_total", &[("result", "existing")])),
            ("http 404", page.sum("windlass_http_request_duration_seconds_count", &[("outcome", "dead")])),
            (
                "a job at its limit",
                page.sum("windlass_job_utilisation_ratio", &[("job_name", load::HOSTILE_JOB)]),
            ),
            ("its ends", page.sum("windlass_job_tasks_settled_total", &[("job_name", load::HOSTILE_JOB)])),
            ("held", page.sum("windlass_queue_tasks", &[("state", "held")])),
            ("scheduled", page.sum("windlass_queue_tasks", &[("state", "scheduled"), ("queue", "later")])),
            ("dead tasks", page.sum("windlass_queue_tasks", &[("state", "dead")])),
            ("age", page.sum("windlass_oldest_ready_age_seconds", &[("queue", "forgotten")])),
            ("audits", page.sum("windlass_maintenance_runs_total", &[("duty", "audit"), ("result", "ok")])),
        ];
        match is_there.into_iter().find(|(_, figure)| *figure <= 0.0) {
            Some((missing, _)) => Err(missing.to_owned()),
            None => Ok(page),
        }
    })
    .await
    .unwrap();
    compare(&page);
    assert!((page.sum("windlass_slots", &[]) - 40.0).abs() < 0.1);
    assert!((page.sum("windlass_store_reachable", &[]) - 1.0).abs() < 0.1);
    assert!(page.sum("windlass_audit_findings", &[]).abs() < 0.1);
    assert!(page.sum("windlass_job_utilisation_ratio", &[("job_name", "tenant-a")]) <= 1.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn counters_agree_with_the_results() {
    let folder = tempfile::tempdir().unwrap();
    let up = Up::on(&folder.path().join("windlass.db"), [""; 0]).unwrap();
    let api = up.api();
    let task = serde_json::json!({"kind": "echo", "payload": 1});
    let answer = api.post("/v1/tasks", &serde_json::json!({"tasks": vec![task; 250]})).await.unwrap();
    assert!(answer.status < 300, "{answer:?}");
    let done = |page: &Page| page.sum("windlass_tasks_settled_total", &[("outcome", "done")]);
    let page = until(async || {
        let page = page(&api).await;
        let running = page.sum("worker_in_flight_tasks", &[]);
        let is_over = done(&page) >= 250.0 && running < 1.0;
        if is_over { Ok(page) } else { Err(format!("{} done, {running} run", done(&page))) }
    })
    .await
    .unwrap();
    for (figure, name, labels) in [
        (250.0, "windlass_tasks_enqueued_total", vec![("result", "new")]),
        (250.0, "windlass_tasks_claimed_total", vec![("kind", "echo")]),
        (250.0, "windlass_tasks_settled_total", vec![]),
        (250.0, "worker_tasks_completed_total", vec![]),
        (250.0, "worker_task_duration_seconds_count", vec![]),
        (250.0, "windlass_pickup_latency_seconds_count", vec![]),
        (250.0, "worker_claim_size_sum", vec![]),
        (250.0, "windlass_settle_batch_size_sum", vec![]),
        (0.0, "windlass_lease_losses_total", vec![]),
    ] {
        let shown = page.sum(name, &labels);
        assert!((shown - figure).abs() < 0.1, "{name}{labels:?} is {shown}, not {figure}");
    }
    // A claim may be answered between the two readings.
    let claims = page.sum("worker_claims_total", &[]);
    assert!((claims - page.sum("windlass_claim_duration_seconds_count", &[])).abs() < 1.1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_without_the_api_answers_only_its_monitor() {
    let folder = tempfile::tempdir().unwrap();
    let windlass = |arguments: &[&str]| {
        let mut command = process::command(process::windlass().unwrap());
        command.args(arguments).current_dir(folder.path());
        command
    };
    let said = process::run(windlass(&["migrate"])).unwrap();
    assert_eq!(said.code, Some(0), "{said:?}");
    let said = process::run(windlass(&["enqueue", "echo", "--payload", "1", "--count", "5"])).unwrap();
    assert_eq!(said.code, Some(0), "{said:?}");
    let mut worker = Process::start(windlass(&["worker", "--metrics-listen", "127.0.0.1:0"])).unwrap();
    let address = worker
        .wait_for(START_LIMIT, |line| {
            let at = line.find("http://127.0.0.1:")?;
            line[at..].trim().strip_suffix("/metrics").map(str::to_owned)
        })
        .unwrap();
    let api = Api::new(address);
    let page = until(async || {
        let page = page(&api).await;
        let done = page.sum("worker_tasks_completed_total", &[]);
        let is_there = done >= 5.0 && is_audited(&page);
        if is_there { Ok(page) } else { Err(format!("{done} done, audited: {}", is_audited(&page))) }
    })
    .await
    .unwrap();
    let known: BTreeSet<_> = table().map(|metric| metric.name.to_owned()).collect();
    assert_eq!(page.types.keys().cloned().collect::<BTreeSet<_>>(), known);
    assert_eq!(api.get("/healthz").await.unwrap().status, 200);
    assert_eq!(api.get("/readyz").await.unwrap().status, 200);
    assert_eq!(api.get("/v1/tasks").await.unwrap().status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consuming_process_shows_the_metrics_of_consumers() {
    let consuming = consumer::start().await;
    let api = consuming.api();
    let page = until(async || {
        let page = page(&api).await;
        let answered =
            page.sum("windlass_amqp_acks_total", &[("result", "ack"), ("queue", &consuming.posted)]);
        let kept = page.sum("windlass_tasks_enqueued_total", &[("result", "new")]);
        let depth = page.sum("windlass_amqp_queue_messages", &[("queue", &consuming.stuck)]);
        let is_there = answered > 0.0 && kept > 0.0 && depth > 0.0;
        if is_there { Ok(page) } else { Err(format!("{answered} answered, {kept} kept, {depth} wait")) }
    })
    .await
    .unwrap();
    let known: BTreeMap<&str, &names::Metric> =
        names::ALL.iter().map(|metric| (metric.name, *metric)).collect();
    let labels = page.labels();
    for (name, kind) in &page.types {
        assert_eq!(kind, known[name.as_str()].kind.as_str(), "{name}");
    }
    for metric in names::ALL.iter().filter(|metric| metric.is_of_consumers()) {
        let wanted: BTreeSet<String> = metric.labels.iter().map(|label| (*label).to_owned()).collect();
        assert_eq!(labels.get(metric.name), Some(&wanted), "{}", metric.name);
    }
    for name in
        ["windlass_backpressure_factor", "windlass_store_reachable", "windlass_http_request_duration_seconds"]
    {
        assert!(page.types.contains_key(name), "{name}");
    }
    let posted = [("queue", consuming.posted.as_str()), ("event_type", "order.created")];
    assert!(page.sum("windlass_amqp_handler_duration_seconds_count", &posted) > 0.0);
    assert!((page.sum("windlass_amqp_consuming", &posted) - 1.0).abs() < 0.1);
    assert!((page.sum("windlass_amqp_prefetch", &[("queue", &consuming.stuck)]) - 1.0).abs() < 0.1);
}

#[tokio::test(flavor = "multi_thread")]
async fn on_postgresql_all_metrics_but_those_of_the_disk_are_shown() {
    let place = Place::shared().unwrap().patient();
    let up = Up::start(place.command(["up", "--listen", "127.0.0.1:0"]).unwrap()).unwrap();
    let api = up.api();
    let tasks = serde_json::json!({"tasks": [
        {"kind": "echo", "payload": 1},
        {"kind": "sleep", "payload": {"ms": 10}, "job": "tenant-a"},
        {"kind": "nobody-has-it", "payload": 1, "queue": "forgotten"},
    ]});
    let answer = api.post("/v1/tasks", &tasks).await.unwrap();
    assert!(answer.status < 300, "{answer:?}");
    let page = until(async || {
        let page = page(&api).await;
        let age = page.sum("windlass_oldest_ready_age_seconds", &[("queue", "forgotten")]);
        let done = page.sum("windlass_tasks_settled_total", &[("outcome", "done")]);
        let ready = page.sum("windlass_queue_tasks", &[("queue", "forgotten"), ("state", "ready")]);
        let is_there = age > 0.0 && done >= 2.0 && ready >= 1.0 && is_audited(&page);
        if is_there { Ok(page) } else { Err(format!("{age} old, {done} done, {ready} ready")) }
    })
    .await
    .unwrap();
    let disk = ["windlass_store_wal_bytes", "windlass_store_disk_free_bytes"];
    let known = table().map(|metric| metric.name).filter(|name| !disk.contains(name));
    let shown: BTreeSet<&str> = page.types.keys().map(String::as_str).collect();
    assert_eq!(shown, known.collect());
    for pool in ["claims", "settlements", "renewals", "duties", "gates", "clients"] {
        assert!(page.sum("windlass_store_connections", &[("pool", pool)]) >= 1.0, "{pool}");
    }
    assert!(page.sum("windlass_store_connection_uses_total", &[("pool", "claims")]) >= 1.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_metrics_there_is_no_page() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("windlass.db");
    let mut command = e2e::up::up_command(&store, [""; 0]).unwrap();
    command.env("WINDLASS_METRICS", "off");
    let up = Up::start(command).unwrap();
    let answer = up.api().get("/metrics").await.unwrap();
    assert_eq!((answer.status, answer.error_code()), (404, Some("not_found")));
}
