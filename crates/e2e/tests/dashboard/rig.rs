//! A server with a browser before it, and tasks of every state.

use e2e::{browser::Browser, process, up::Up};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Every page with its name, as far as it needs no id.
pub const PAGES: [(&str, &str); 17] = [
    ("overview", "/"),
    ("queues", "/queues"),
    ("queue", "/queues/default"),
    ("tasks", "/tasks"),
    ("task-dead", "/tasks/{dead}"),
    ("dead", "/dead"),
    ("runs", "/runs"),
    ("jobs", "/jobs"),
    ("job", "/jobs/api.example.com"),
    ("workflows", "/workflows"),
    ("workflow", "/workflows/order-17"),
    ("schedules", "/schedules"),
    ("schedule", "/schedules/nightly"),
    ("workers", "/workers"),
    ("consumers", "/consumers"),
    ("access", "/access"),
    ("store", "/store"),
];

pub struct Rig {
    pub up: Up,
    pub browser: Browser,
    /// A task that is dead.
    pub dead: String,
    folder: TempDir,
}

impl Rig {
    /// A server with one worker and no task.
    pub async fn empty() -> Self {
        Self::with(&[]).await
    }

    /// The same with more arguments.
    pub async fn with(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let up = Up::on(&folder.path().join("windlass.db"), arguments.iter().copied()).unwrap();
        let browser = Browser::start().await.unwrap();
        Self { up, browser, dead: String::new(), folder }
    }

    /// A server with tasks of every state.
    pub async fn full() -> Self {
        let mut rig = Self::empty().await;
        rig.call("PUT", "/v1/jobs/api.example.com", json!({"concurrency": 2, "delay_ms": 250})).await;
        rig.call("PUT", "/v1/jobs/tenant-7", json!({"state": "paused"})).await;
        for n in 0..12 {
            rig.add(json!({"kind": "sleep", "payload": {"ms": 600_000}, "job": "api.example.com", "key": format!("call-{n}")})).await;
            rig.add(json!({"kind": "echo", "payload": {"n": n}})).await;
            rig.add(json!({"kind": "echo", "payload": {"n": n}, "queue": "mail", "delay_ms": 3_600_000}))
                .await;
        }
        rig.add(json!({"kind": "echo", "job": "tenant-7"})).await;
        rig.add(json!({"kind": "report", "queue": "reports", "priority": 5})).await;
        // The worker may not send requests to this machine.
        let first = rig.add(json!({"kind": "http", "payload": {"url": "http://127.0.0.1:9/"}, "workflow": "order-17", "max_attempts": 1})).await;
        for _ in 0..3 {
            rig.add(json!({"kind": "echo", "workflow": "order-17"})).await;
        }
        rig.dead = first;
        rig.ended(&rig.dead.clone()).await;
        let task = json!({"kind": "echo", "queue": "reports"});
        rig.call(
            "PUT",
            "/v1/schedules/nightly",
            json!({"cron": "0 3 * * *", "tz": "Europe/Berlin", "task": task}),
        )
        .await;
        let consumer = |queue: &str, state: &str| {
            json!({
                "queue": queue, "event_type": "", "state": state, "busy": 3, "allowed": 4, "workers": 8, "prefetch": 16,
                "deliveries": 1200, "redeliveries": 3, "acked": 1190, "rejected": 2, "requeued": 5, "unanswered": 0,
                "reconnects": 1
            })
        };
        let consumers = [consumer("orders", "consuming"), consumer("mail.events", "reconnecting")];
        let report = json!({"process": "p1", "host": "worker-1", "pid": 4711, "version": "0.1.0", "consumers": consumers});
        rig.call("POST", "/v1/consumers", report).await;
        rig.call("POST", "/v1/queues/mail/pause", json!({})).await;
        rig.call("POST", "/v1/runs", json!({"action": "cancel", "filter": {"kind": "none"}})).await;
        rig
    }

    /// Starts a server again on the same store and the same address.
    pub fn restart(&mut self) {
        let mut command = process::command(process::windlass().unwrap());
        command.args([
            "up",
            "--store",
            &format!("sqlite:{}", self.folder.path().join("windlass.db").display()),
        ]);
        command
            .args(["--listen", self.up.address.trim_start_matches("http://")])
            .current_dir(self.folder.path());
        self.up = Up::start(command).unwrap();
    }

    pub async fn call(&self, method: &str, path: &str, body: Value) -> Value {
        let api = self.up.api();
        let answer = match method {
            "PUT" => api.put(path, &body).await,
            "GET" => api.get(path).await,
            _ => api.post(path, &body).await,
        };
        let answer = answer.unwrap();
        assert!(answer.status < 300, "{method} {path}: {answer:?}");
        answer.body
    }

    pub async fn add(&self, task: Value) -> String {
        self.call("POST", "/v1/tasks", task).await["id"].as_str().unwrap().to_owned()
    }

    /// Waits until a task has ended.
    pub async fn ended(&self, id: &str) {
        let answer = self.call("GET", &format!("/v1/tasks/{id}/wait?timeout_ms=30000"), Value::Null).await;
        assert_eq!(answer["ended"].as_array().unwrap().len(), 1, "{id} did not end: {answer}");
    }

    /// Waits until a task has this state.
    pub async fn ended_as(&self, id: &str, state: &str) {
        loop {
            let task = self.call("GET", &format!("/v1/tasks/{id}"), Value::Null).await;
            if task["state"] == state {
                return;
            }
            self.browser.until("true").await.unwrap();
        }
    }

    pub async fn open(&self, path: &str) {
        self.browser.open(&self.address(path)).await.unwrap();
    }

    pub fn address(&self, path: &str) -> String {
        format!("{}{}", self.up.address, path.replace("{dead}", &self.dead))
    }
}
