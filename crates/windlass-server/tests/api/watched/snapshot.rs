//! What a snapshot says.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use windlass_conformance::MemoryStore;
use windlass_core::{
    Counts, Error, Name, NewTask, Outcome, Payload, Rules, Scope, Source, Store, WorkerCounts, WorkerReport,
    time::ManualClock,
};
use windlass_server::{
    Operations,
    api::{Series, Snapshot},
    http::{Door, Options},
};

use crate::{
    access::Guarded,
    dead_store::DeadStore,
    harness::{Api, Hand},
};

fn name(text: &str) -> Name {
    Name::new("name", text).unwrap()
}

fn task(kind: &str) -> NewTask {
    NewTask::new(kind, Payload::json(&0).unwrap()).unwrap()
}

/// A store without a server around it.
struct Scene {
    store: Arc<MemoryStore>,
    clock: Arc<ManualClock>,
    operations: Operations,
}

impl Scene {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::new("2027-01-31T09:30:00Z".parse().unwrap()));
        let store = Arc::new(MemoryStore::new(clock.clone(), Rules::default()));
        Self { operations: Operations::new(store.clone()), store, clock }
    }

    async fn add(&self, task: NewTask) {
        self.store.enqueue(vec![task]).await.unwrap();
    }

    async fn worker(&self, kinds: &[&str]) -> Hand {
        Hand::register(&self.store, kinds).await
    }

    /// The attention that a snapshot asks for, as codes and sentences.
    async fn attention(&self) -> Vec<(String, String)> {
        let entries = self.operations.snapshot().await.attention;
        entries.into_iter().map(|entry| (entry.code, entry.sentence)).collect()
    }

    /// Lets time pass: the snapshot of before is no longer fresh.
    async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}

fn one(code: &str, sentence: &str) -> Vec<(String, String)> {
    vec![(code.to_owned(), sentence.to_owned())]
}

#[tokio::test(start_paused = true)]
async fn an_empty_store_has_an_empty_snapshot() {
    let snapshot = Scene::new().operations.snapshot().await;
    assert!(snapshot.store.ok && snapshot.queues.is_empty() && snapshot.attention.is_empty());
    assert_eq!((snapshot.total.forecast.kind.as_str(), snapshot.every_ms), ("empty", 2_000));
    assert_eq!((snapshot.workers.live, snapshot.audit), (0, None));
}

/// Twenty tasks come every five seconds and thirty end, as the worker says with each heartbeat.
async fn drained(scene: &Scene) -> Snapshot {
    scene.store.enqueue(vec![task("a"); 1_000]).await.unwrap();
    let hand = scene.worker(&["a"]).await;
    let mut counts = WorkerCounts::default();
    for _ in 0..13 {
        scene.store.enqueue(vec![task("a"); 20]).await.unwrap();
        for _ in 0..30 {
            hand.end(Outcome::Done(None)).await;
        }
        let of = counts.of(&name("default"));
        *of = Counts { done: of.done + 30, retried: of.retried + 5, ..*of };
        let report = WorkerReport { counts: counts.clone(), available: 10, ..WorkerReport::default() };
        scene.store.renew(hand.id, report).await.unwrap();
        scene.operations.snapshot().await;
        scene.pass(Duration::from_secs(5)).await;
    }
    scene.operations.snapshot().await
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_has_rates_and_a_forecast_without_asking_for_them() {
    let scene = Scene::new();
    let snapshot = drained(&scene).await;
    let queue = &snapshot.queues[0];
    for flow in [&snapshot.total, &queue.flow] {
        assert_eq!(flow.depth.ready, 1_000 - 130);
        let about = |rate: Option<f64>, wanted: f64| (rate.unwrap() - wanted).abs() < wanted / 4.0;
        assert!(about(flow.in_per_s, 4.0) && about(flow.out_per_s, 6.0), "{flow:?}");
        assert!(about(flow.done_per_s, 6.0) && about(flow.failed_per_s, 1.0), "{flow:?}");
        assert!(flow.forecast.sentence.starts_with("clears in about "), "{flow:?}");
        assert!(flow.forecast.in_ms.is_some());
    }
    assert_eq!((queue.queue.as_str(), queue.kinds, queue.kinds_without_worker.len()), ("default", 1, 0));
    assert_eq!((snapshot.workers.live, snapshot.workers.slots), (1, 10));
    assert_eq!(snapshot.attention, []);
}

#[tokio::test(start_paused = true)]
async fn the_series_has_a_point_every_five_seconds() {
    let scene = Scene::new();
    drained(&scene).await;
    let of = |queue: Option<&str>| scene.operations.series(queue.map(name), None);
    let Series { queue, points } = of(Some("default")).await;
    assert_eq!((queue, points.len()), (Some(name("default")), 14));
    let last = &points[points.len() - 2];
    assert_eq!(
        (last.backlog, last.in_per_s, last.out_per_s, last.failed_per_s),
        (870, Some(4.0), Some(6.0), Some(1.0))
    );
    assert_eq!(of(None).await.points.len(), 14);
    assert_eq!(of(Some("other")).await.points, []);
}

/// A worker drains a queue and says only how many tasks it runs, as one of another language may.
#[tokio::test(start_paused = true)]
async fn work_that_no_worker_counts_raises_no_alarm() {
    let scene = Scene::new();
    scene.store.enqueue(vec![task("a"); 1_000]).await.unwrap();
    let hand = scene.worker(&["a"]).await;
    for _ in 0..30 {
        for _ in 0..5 {
            hand.end(Outcome::Done(None)).await;
        }
        scene.clock.advance(Duration::from_secs(5));
        let report = WorkerReport { in_flight: 5, available: 5, ..WorkerReport::default() };
        scene.store.renew(hand.id, report).await.unwrap();
        scene.operations.snapshot().await;
        scene.pass(Duration::from_secs(5)).await;
    }
    let snapshot = scene.operations.snapshot().await;
    assert!(snapshot.queues[0].flow.oldest_ready_ms.unwrap() > 60_000);
    for flow in [&snapshot.total, &snapshot.queues[0].flow] {
        assert_eq!(flow.depth.ready, 1_000 - 150);
        assert_eq!((flow.in_per_s, flow.out_per_s, flow.failed_per_s), (None, None, None));
        assert_eq!(flow.forecast.kind, "too_little_known");
    }
    assert_eq!(snapshot.attention, []);
    let points = scene.operations.series(Some(name("default")), None).await.points;
    assert!(points.iter().all(|point| point.out_per_s.is_none() && point.backlog > 0), "{points:?}");
}

#[tokio::test(start_paused = true)]
async fn a_paused_queue_with_tasks_needs_attention() {
    let scene = Scene::new();
    scene.store.set_queue_paused(&name("default"), true).await.unwrap();
    assert_eq!(scene.attention().await, [], "nothing is to do");
    scene.add(task("a")).await;
    scene.pass(Duration::from_secs(2)).await;
    assert_eq!(scene.attention().await, one("queue_paused", "queue default is paused with 1 task to do"));
    let snapshot = scene.operations.snapshot().await;
    assert!(snapshot.queues[0].paused);
    assert_eq!(
        (snapshot.attention[0].about.as_str(), snapshot.attention[0].name.as_deref()),
        ("queue", Some("default"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_kind_without_a_worker_needs_attention() {
    let scene = Scene::new();
    scene.worker(&["a"]).await;
    scene.add(task("a")).await;
    scene.add(task("b")).await;
    assert_eq!(
        scene.attention().await,
        one("no_worker", "no live worker handles kind \"b\" on queue default")
    );
    let queue = scene.operations.snapshot().await.queues.remove(0);
    assert_eq!((queue.kinds, queue.kinds_without_worker), (2, vec![name("b")]));
}

#[tokio::test(start_paused = true)]
async fn a_blocked_workflow_names_its_culprit() {
    let scene = Scene::new();
    let hand = scene.worker(&["a"]).await;
    let step = NewTask { workflow: Some(name("w")), ..task("a") };
    scene.add(step.clone()).await;
    scene.add(step).await;
    hand.end(Outcome::dead("broken")).await;
    let blocked = scene.operations.snapshot().await.blocked_workflows.remove(0);
    assert_eq!((blocked.workflow.as_str(), blocked.steps), ("w", 1));
    let sentence = format!("workflow w is blocked by task {}", blocked.blocked_by);
    assert_eq!(scene.attention().await, one("workflow_blocked", &sentence));
}

#[tokio::test(start_paused = true)]
async fn a_schedule_that_no_worker_fires_needs_attention() {
    let scene = Scene::new();
    let request = json!({"cron": "0 10 * * *", "task": {"kind": "a"}}).to_string();
    scene.operations.set_schedule("s", serde_json::from_str(&request).unwrap()).await.unwrap();
    assert_eq!(scene.attention().await, []);
    scene.clock.advance(Duration::from_mins(40));
    scene.pass(Duration::from_secs(2)).await;
    let sentence = "schedule s: 1 tick has passed without a task: no worker fires this schedule";
    assert_eq!(scene.attention().await, one("schedule_late", sentence));
    scene.operations.pause_schedule("s").await.unwrap();
    scene.pass(Duration::from_secs(2)).await;
    assert_eq!(scene.attention().await, []);
}

#[tokio::test(start_paused = true)]
async fn a_job_at_its_limit_needs_attention_after_a_minute() {
    let scene = Scene::new();
    let hand = scene.worker(&["a"]).await;
    for _ in 0..3 {
        scene.add(NewTask { job: Some(name("j")), job_concurrency: Some(1), ..task("a") }).await;
    }
    let claimed = hand.claim().await;
    let at_limit = scene.operations.snapshot().await.jobs_at_limit.remove(0);
    assert_eq!((at_limit.job.as_str(), at_limit.running, at_limit.held), ("j", 1, 2));
    assert_eq!(scene.attention().await, []);
    scene.pass(Duration::from_mins(1)).await;
    assert_eq!(
        scene.attention().await,
        one("job_at_limit", "job j has been at its limit of 1 for 1 min 0 s: 2 held")
    );
    hand.settle(&claimed, Outcome::Done(None)).await;
    hand.end(Outcome::Done(None)).await;
    scene.pass(Duration::from_secs(2)).await;
    assert_eq!(scene.operations.snapshot().await.jobs_at_limit, [], "the last task has room");
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_holds_back_or_is_lost_needs_attention() {
    let scene = Scene::new();
    let hand = scene.worker(&["a"]).await;
    let id = hand.id;
    let report =
        |factor, reason: &str| WorkerReport { factor, reason: reason.to_owned(), ..WorkerReport::default() };
    scene.store.renew(id, report(0.1, "start")).await.unwrap();
    assert_eq!(scene.attention().await, []);
    scene.store.renew(id, report(0.25, "memory")).await.unwrap();
    scene.pass(Duration::from_secs(2)).await;
    let sentence = format!("worker {id} on here may use 25 % of its slots: memory");
    assert_eq!(scene.attention().await, one("worker_held_back", &sentence));
    scene.clock.advance(Duration::from_millis(10_500));
    scene.pass(Duration::from_secs(2)).await;
    let sentence = format!("worker {id} on here has missed its renewals; its tasks will be taken from it");
    assert_eq!(scene.attention().await, one("worker_stale", &sentence));
    assert_eq!(scene.operations.snapshot().await.workers.stale, 1);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_does_not_answer_is_said_to_be_so() {
    let failing = Operations::new(DeadStore::failing(Error::Unavailable("down".to_owned())));
    let snapshot = failing.snapshot().await;
    assert_eq!((snapshot.store.ok, snapshot.attention[0].code.as_str()), (false, "store_unreachable"));
    assert!(snapshot.store.error.as_deref().unwrap().contains("down"), "{:?}", snapshot.store);
    let silent = Operations::new(DeadStore::silent()).snapshot().await;
    assert_eq!(silent.store.error.as_deref(), Some("no answer within 10 s"));
    assert_eq!(silent.every_ms, 15_000, "a store that is slow is asked less often");
}

#[tokio::test(start_paused = true)]
async fn jobs_beyond_one_page_are_read_in_turns() {
    let scene = Scene::new();
    let job =
        |n: usize| NewTask { job: Some(name(&format!("j{n:03}"))), job_concurrency: Some(1), ..task("a") };
    for n in 0..450 {
        scene.add(job(n)).await;
    }
    scene.worker(&["a"]).await;
    scene.add(job(440)).await;
    for wanted in [0, 0, 1, 1] {
        assert_eq!(scene.operations.snapshot().await.jobs_at_limit.len(), wanted);
        scene.pass(Duration::from_secs(2)).await;
    }
}

/// Gets a page from a server whose time the test controls.
async fn page(operations: &Operations, path: &str) -> String {
    let (mut client, server) = tokio::io::duplex(1 << 16);
    let door = Door::new(operations.clone(), Options::default(), "127.0.0.1:7878".parse().unwrap());
    let task = tokio::spawn(door.serve(server));
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    client.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    task.await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    answer
}

#[tokio::test(start_paused = true)]
async fn the_curve_of_a_queue_has_few_points_at_their_times() {
    let scene = Scene::new();
    // A history of three hours, with a pause of half an hour in the last of them.
    for step in 0..2_160 {
        scene.add(task("a")).await;
        if !(1_500..1_860).contains(&step) {
            scene.operations.snapshot().await;
        }
        scene.pass(Duration::from_secs(5)).await;
    }
    let page = page(&scene.operations, "/queues").await;
    let (_, rest) = page.split_once("points=\"").unwrap();
    let points: Vec<f64> = rest
        .split_once('"')
        .unwrap()
        .0
        .split_whitespace()
        .map(|point| point.split_once(',').unwrap().0.parse().unwrap())
        .collect();
    assert!((25..=62).contains(&points.len()), "{} points", points.len());
    assert_eq!((points[0], points[points.len() - 1]), (0.0, 100.0));
    let widest = points.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max);
    assert!((45.0..55.0).contains(&widest), "half an hour of an hour, and not {widest} %");
}

#[tokio::test]
async fn the_page_of_the_store_shows_an_audit_and_runs_none() {
    let server = Guarded::start().await;
    let (read, admin) = (server.token(&[Scope::Read]).await, server.token(&[Scope::Admin]).await);
    let headers = format!("authorization: Bearer {read}\r\nwindlass-fresh: 1\r\n");
    let shown = server.call("GET /store", &headers).await;
    assert!(shown.text().contains("This server knows of no audit yet."), "{}", shown.text());
    assert!(shown.text().contains("data-url=\"/v1/audit\""), "{}", shown.text());
    assert_eq!(server.call_as(&admin, "GET /v1/audit").await.json(), json!({"findings": []}));
    let shown = server.call("GET /store", &headers).await;
    assert!(shown.text().contains("Audited <time"), "{}", shown.text());
    assert!(shown.text().contains("The audit found nothing."), "{}", shown.text());
}

#[tokio::test]
async fn the_routes_answer_what_the_operations_do() {
    let api = Api::start().await;
    api.enqueue(json!({"kind": "a", "queue": "mail"})).await;
    let snapshot = api.get("/v1/snapshot").await.json();
    assert_eq!(
        (&snapshot["queues"][0]["queue"], &snapshot["queues"][0]["depth"]["ready"]),
        (&json!("mail"), &json!(1))
    );
    assert_eq!(snapshot["queues"][0]["forecast"]["sentence"], "too little known yet");
    let series = api.get("/v1/series?queue=mail").await.json();
    assert_eq!((&series["queue"], &series["points"][0]["backlog"]), (&json!("mail"), &json!(1)));
    let later = api.get("/v1/series?from=2999-01-01T00:00:00Z").await.json();
    assert_eq!(later, json!({"points": []}));
    for bad in ["/v1/series?from=yesterday", "/v1/series?queue=%20", "/v1/series?until=1"] {
        assert_eq!(api.get(bad).await.error(400).0, "invalid", "{bad}");
    }
}
