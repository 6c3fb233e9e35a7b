//! A shop with a bad day: tasks of every state, for tests and pictures of the dashboard.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use windlass::{Context, Outcome, Worker};
use windlass_core::{Name, NewWorker, Source as _, WorkerCounts, WorkerReport};
use windlass_remote::{Options, RemoteStore};

use crate::{http::Api, until};

/// Kinds that the shop's own worker runs.
const KINDS: [&str; 4] = ["charge-card", "send-mail", "import-orders", "make-report"];
/// How long the worker without memory counts as alive: longer than any test.
const LEASE: Duration = Duration::from_hours(2);
/// The error of the group of dead tasks that a person is to find.
pub const CAUSE: &str = "the card processor answered 503: upstream connect error";

/// The shop. Its worker ends with it.
pub struct Story {
    /// A dead task with several attempts.
    pub dead: String,
    worker: JoinHandle<()>,
}

impl Drop for Story {
    fn drop(&mut self) {
        self.worker.abort();
    }
}

/// What a handler of the shop does with its task.
#[derive(Debug, serde::Deserialize)]
struct Play {
    /// Fails so.
    error: Option<String>,
    /// Runs for so long.
    ms: Option<u64>,
    /// How far it says that it is.
    progress: Option<String>,
}

async fn play(play: Play, context: Context) -> Outcome {
    if let Some(progress) = play.progress {
        // Only people look at it.
        let _ = context.progress(progress).await;
    }
    if let Some(ms) = play.ms {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
    match play.error {
        Some(error) => Outcome::retry(error),
        None => Outcome::Done(None),
    }
}

/// Lets the shop have its day on a server. `token` is what the server asks for, if it does.
///
/// # Errors
/// If the server refuses a part of it.
pub async fn tell(address: &str, token: Option<&str>) -> Result<Story> {
    let api = token.map_or_else(|| Api::new(address), |token| Api::new(address).with_token(token));
    limits(&api).await?;
    let worker = work(address, token).await?;
    let dead = failures(&api).await?;
    waiting(&api).await?;
    around(&api).await?;
    Ok(Story { dead, worker })
}

/// The worker of the shop, and one whose memory is short.
async fn work(address: &str, token: Option<&str>) -> Result<JoinHandle<()>> {
    let options = || Options { token: token.map(str::to_owned), ..Options::default() };
    let store = RemoteStore::for_worker(&address.parse()?, options()).await?;
    let queues = ["orders", "mail", "billing", "reports"];
    let mut builder = Worker::builder(store).slots(12).queues(queues);
    for kind in KINDS {
        builder = builder.handle_kind(kind, play);
    }
    let worker = builder.build()?;
    let handle = worker.handle();
    let running = tokio::spawn(async move {
        // The server may go away while a test still looks at its pages.
        let _ = worker.run(std::future::pending()).await;
    });
    handle.started().await;

    let store = RemoteStore::connect(&address.parse()?, options()).await?;
    let short = NewWorker {
        host: "worker-eu-2".into(),
        pid: 4711,
        version: "0.1.0".into(),
        kinds: vec![Name::new("kind", "resize-image")?],
        queues: vec![Name::new("queue", "images")?],
        slots: 16,
        lease_ttl: LEASE,
    };
    let id = store.register(short).await?;
    let mut counts = WorkerCounts::default();
    counts.of(&Name::new("queue", "images")?).done = 41;
    let report = WorkerReport {
        counts,
        in_flight: 2,
        memory_usage: 0.94,
        factor: 0.12,
        reason: "memory".into(),
        ..WorkerReport::default()
    };
    store.renew(id, report).await?;
    Ok(running)
}

async fn limits(api: &Api) -> Result<()> {
    let jobs = [
        ("api.shop.example", json!({"concurrency": 2, "delay_ms": 250})),
        ("smtp.example.com", json!({"concurrency": 8})),
        ("tenant-7", json!({"state": "paused"})),
    ];
    for (job, limit) in jobs {
        sent(api, "PUT", &format!("/v1/jobs/{job}"), &limit).await?;
    }
    Ok(())
}

/// What fails for good: two groups, and the step of an order.
async fn failures(api: &Api) -> Result<String> {
    let fast = json!({"base_ms": 150, "max_ms": 600});
    let mut tasks = Vec::new();
    for n in 0..7 {
        tasks.push(
            json!({"kind": "charge-card", "queue": "billing", "key": format!("invoice-{}", 8_100 + n),
            "payload": {"error": CAUSE, "ms": 40, "invoice": 8_100 + n, "amount": "49.00 EUR"},
            "max_attempts": 3, "retry": fast}),
        );
    }
    for n in 0..2 {
        tasks.push(json!({"kind": "send-mail", "queue": "mail", "max_attempts": 1,
            "payload": {"error": "550 5.1.1 <ada@example.com>: mailbox unavailable", "to": "ada@example.com", "n": n}}));
    }
    tasks.push(json!({"kind": "import-orders", "queue": "orders", "workflow": "order-17", "max_attempts": 1,
        "payload": {"error": "orders-2026-11.csv, line 212: the amount \"12,oo\" is not a number"}}));
    for kind in ["charge-card", "send-mail", "make-report"] {
        tasks.push(json!({"kind": kind, "queue": "orders", "workflow": "order-17", "payload": {}}));
    }
    let ids = added(api, tasks).await?;
    let first = ids.first().context("no task was added")?.clone();
    until(async || {
        let answer = api.get("/v1/tasks?state=dead").await.map_err(|error| error.to_string())?;
        let dead = answer.body.get("tasks").and_then(Value::as_array).map_or(0, Vec::len);
        if dead == 10 { Ok(()) } else { Err(format!("{dead} tasks are dead")) }
    })
    .await?;
    Ok(first)
}

/// What is done, what runs, and what waits for each reason.
async fn waiting(api: &Api) -> Result<()> {
    let mut tasks = Vec::new();
    for n in 0..12 {
        tasks.push(json!({"kind": "import-orders", "queue": "orders", "payload": {"file": format!("orders-{n}.csv"), "ms": 5}}));
        tasks.push(json!({"kind": "resize-image", "queue": "images", "payload": {"image": format!("IMG_{n:04}.jpg")}}));
        tasks.push(json!({"kind": "send-mail", "queue": "mail", "payload": {"to": "grace@example.com"}, "delay_ms": 3_600_000}));
    }
    for step in 0..4 {
        let payload = if step == 1 { json!({"ms": 3_600_000, "progress": "page 3 of 7"}) } else { json!({}) };
        tasks.push(
            json!({"kind": "make-report", "queue": "reports", "workflow": "order-18", "payload": payload}),
        );
    }
    tasks.push(json!({"kind": "send-mail", "queue": "mail", "job": "smtp.example.com", "max_attempts": 8,
        "payload": {"error": "connection to smtp.example.com timed out after 10 s"}, "retry": {"base_ms": 900_000, "max_ms": 900_000}}));
    tasks.push(json!({"kind": "translate-page", "queue": "reports", "payload": {"page": 4}, "priority": 5}));
    tasks.push(json!({"kind": "send-mail", "queue": "mail", "job": "tenant-7", "payload": {}}));
    for n in 0..9 {
        tasks.push(json!({"kind": "import-orders", "queue": "orders", "job": "api.shop.example", "key": format!("call-{n}"),
            "payload": {"ms": 3_600_000, "progress": "waiting for the shop's answer"}}));
    }
    added(api, tasks).await?;
    until(async || {
        let answer = api.get("/v1/tasks?state=running").await.map_err(|error| error.to_string())?;
        let running = answer.body.get("tasks").and_then(Value::as_array).map_or(0, Vec::len);
        if running == 3 { Ok(()) } else { Err(format!("{running} tasks run")) }
    })
    .await
}

/// Schedules, consumers, a paused queue and a bulk run.
async fn around(api: &Api) -> Result<()> {
    let task = |kind: &str| json!({"kind": kind, "queue": "reports", "payload": {"for": "accounting"}});
    let schedules = [
        ("nightly", json!({"cron": "0 3 * * *", "tz": "Europe/Berlin", "task": task("make-report")})),
        (
            "dunning-letters",
            json!({"cron": "30 7 * * MON-FRI", "tz": "America/New_York", "task": task("send-mail")}),
        ),
        ("clean-up", json!({"cron": "@hourly", "task": task("make-report")})),
    ];
    for (name, schedule) in schedules {
        sent(api, "PUT", &format!("/v1/schedules/{name}"), &schedule).await?;
    }
    sent(api, "POST", "/v1/schedules/clean-up/pause", &json!({})).await?;
    let consumer = |queue: &str, state: &str, busy: u32| {
        json!({
            "queue": queue, "event_type": "", "state": state, "busy": busy, "allowed": 4, "workers": 8, "prefetch": 16,
            "deliveries": 1200, "redeliveries": 3, "acked": 1190, "rejected": 2, "requeued": 5, "unanswered": 0,
            "reconnects": 1
        })
    };
    let consumers = [consumer("orders", "consuming", 3), consumer("mail.events", "reconnecting", 0)];
    let report = json!({"process": "p1", "host": "worker-eu-1", "pid": 4242, "version": "0.1.0", "consumers": consumers});
    sent(api, "POST", "/v1/consumers", &report).await?;
    sent(api, "POST", "/v1/queues/mail/pause", &json!({})).await?;
    let run = json!({"action": "cancel", "filter": {"kind": "send-newsletter"}});
    sent(api, "POST", "/v1/runs", &run).await?;
    let run =
        json!({"action": "retry", "filter": {"kind": "send-mail", "state": "dead"}, "over_ms": 1_800_000});
    sent(api, "POST", "/v1/runs", &run).await
}

async fn added(api: &Api, tasks: Vec<Value>) -> Result<Vec<String>> {
    let answer = api.post("/v1/tasks", &json!({"tasks": tasks})).await?;
    ensure!(answer.status == 201, "{answer:?}");
    Ok(answer.ids())
}

async fn sent(api: &Api, method: &str, path: &str, body: &Value) -> Result<()> {
    let answer = if method == "PUT" { api.put(path, body).await } else { api.post(path, body).await }?;
    ensure!(answer.status < 300, "{method} {path}: {answer:?}");
    Ok(())
}
