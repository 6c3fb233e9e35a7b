//! `/metrics`: the content type, who may ask, and the answer while the store cannot be reached.

use std::sync::Arc;

use tokio::task::JoinHandle;
use windlass::{
    Context, Outcome, Worker, WorkerConfig,
    handler::{RawHandler, Registry},
    telemetry::{self, Exposition},
    worker::Metrics,
};
use windlass_core::{Name, Store};
use windlass_server::{
    Operations,
    http::{Options, Routes},
};

use crate::harness::Api;

struct Noop;

#[async_trait::async_trait]
impl RawHandler for Noop {
    async fn call(&self, _context: Context) -> Outcome {
        Outcome::Done(None)
    }
}

/// A server for a worker that does not run, and the number of queries to its store.
struct Monitored {
    api: Api,
    watch: JoinHandle<()>,
}

impl Drop for Monitored {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

async fn monitored(metrics: Metrics, routes: Routes, is_away: bool) -> Monitored {
    let plain = Api::start().await;
    if is_away {
        plain.store.close().await.unwrap();
    }
    let mut registry = Registry::new();
    registry.insert(Name::new("kind", "noop").unwrap(), Arc::new(Noop)).unwrap();
    let config = WorkerConfig { metrics, ..WorkerConfig::default() };
    let worker = Worker::new(plain.store.clone(), registry, config).unwrap();
    let exposition = Exposition::new(&worker.handle(), telemetry::Options::default());
    let watched = exposition.clone();
    let watch = tokio::spawn(async move {
        if let Some(exposition) = watched {
            exposition.watch_store().await;
        }
    });
    let operations = Operations::new(plain.store.clone()).metrics(exposition);
    let options = Options { routes, ..Options::default() };
    let api = Api::around(plain.store.clone(), plain.clock.clone(), operations, options).await;
    Monitored { api, watch }
}

#[tokio::test]
async fn metrics_come_in_the_text_format_of_prometheus() {
    let monitored = monitored(Metrics::On, Routes::Whole, false).await;
    monitored.api.post("/v1/tasks", r#"{"kind":"noop"}"#).await;
    let answer = monitored.api.get("/metrics").await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let text = answer.text();
    for line in [
        "# TYPE worker_in_flight_tasks gauge",
        "worker_in_flight_tasks 0",
        "worker_tasks_completed_total 0",
        "worker_claims_total{result=\"empty\"} 0",
        "worker_task_duration_seconds_bucket{le=\"0.001\"} 0",
        "worker_task_duration_seconds_bucket{le=\"600\"} 0",
        "worker_claim_size_bucket{le=\"0\"} 0",
        "worker_claim_size_bucket{le=\"1000\"} 0",
        "windlass_tasks_enqueued_total{result=\"new\"} 1",
        "windlass_tasks_settled_total{kind=\"noop\",outcome=\"done\"} 0",
        "windlass_store_reachable 1",
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line} in {text}");
    }
}

#[tokio::test]
async fn metrics_report_a_missing_store_and_omit_its_counts() {
    let monitored = monitored(Metrics::On, Routes::Whole, true).await;
    let answer = monitored.api.get("/metrics").await;
    let text = answer.text();
    assert!(text.lines().any(|line| line == "windlass_store_reachable 0"), "{text}");
    assert!(text.lines().any(|line| line == "worker_in_flight_tasks 0"), "{text}");
    assert!(!text.contains("windlass_queue_tasks"), "{text}");
}

#[tokio::test]
async fn metrics_are_guarded_like_everything_else() {
    let monitored = monitored(Metrics::On, Routes::Monitor, false).await;
    let head = "GET /metrics HTTP/1.1\r\nhost: evil.example\r\nconnection: close";
    assert_eq!(monitored.api.raw(head, b"").await.error(403).0, "forbidden");
    assert_eq!(monitored.api.get("/metrics").await.status, 200);
    assert_eq!(monitored.api.get("/healthz").await.status, 200);
    assert_eq!(monitored.api.get("/readyz").await.status, 200);
    for path in ["/", "/v1/tasks", "/v1/info"] {
        assert_eq!(monitored.api.get(path).await.error(404).0, "not_found", "{path}");
    }
}

#[tokio::test]
async fn a_process_that_keeps_no_metrics_says_so() {
    let monitored = monitored(Metrics::Off, Routes::Whole, false).await;
    assert_eq!(monitored.api.get("/metrics").await.error(404).0, "not_found");
}
