//! S5, S8: a line for every call that changes something for others, without a secret.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex},
};

use serde_json::Value;
use tracing_subscriber::fmt::MakeWriter;
use windlass_core::Scope;
use windlass_proto::v1::{self, control_client::ControlClient, tasks_client::TasksClient};
use windlass_server::access::AUDIT;

use crate::{access::Guarded, foreign::with, wire::Wire};

/// The buffer that the log is written to.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Log {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    /// Every line of the audit.
    fn lines(&self) -> Vec<Value> {
        let text = self.text();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter(|line| line["target"] == AUDIT || line["message"] == "audit").collect()
    }

    /// Caller, call, path and outcome of each line.
    fn audits(&self) -> Vec<[String; 4]> {
        let lines = self.lines().into_iter();
        lines
            .map(|line| ["who", "call", "path", "outcome"].map(|key| line[key].as_str().unwrap().to_owned()))
            .collect()
    }

    /// Captures the log of this thread until the second value is dropped.
    fn start() -> (Self, tracing::subscriber::DefaultGuard) {
        let log = Self::default();
        let subscriber = tracing_subscriber::fmt()
            .json()
            .flatten_event(true)
            .with_writer(log.clone())
            .with_max_level(tracing::level_filters::LevelFilter::TRACE)
            .finish();
        (log, tracing::subscriber::set_default(subscriber))
    }
}

// One thread: the log of this test then contains all tasks that it starts.
#[tokio::test]
async fn a_change_has_an_audit_line_and_a_read_has_none() {
    let (log, _logging) = Log::start();
    let server = Guarded::start().await;
    let (admin, reader) = (server.token(&[Scope::Admin]).await, server.token(&[Scope::Read]).await);
    let who = |token: &str| format!("token {}", &token[3..19]);
    server.call_as(&admin, "GET /v1/tasks?job=secret-job").await;
    server.call_as(&admin, "POST /v1/queues/mail/pause").await;
    server.call_as(&admin, "DELETE /v1/jobs/none?now=true").await;
    server.call_as(&reader, "POST /v1/tasks/cancel").await;
    server.call_as("wl_wrong", "POST /v1/tasks/cancel").await;
    let line = |who: String, call: &str, path: &str, outcome: &str| {
        [who, call.to_owned(), path.to_owned(), outcome.to_owned()]
    };
    assert_eq!(
        log.audits(),
        [
            line(who(&admin), "POST /v1/queues/{name}/pause", "/v1/queues/mail/pause", "done"),
            line(who(&admin), "DELETE /v1/jobs/{name}", "/v1/jobs/none", "refused"),
            line(who(&reader), "POST /v1/tasks/cancel", "/v1/tasks/cancel", "denied"),
        ]
    );
    for token in [&admin, &reader] {
        assert!(!log.text().contains(&token[20..]), "a secret is in the log");
    }
}

#[tokio::test]
async fn a_grpc_audit_line_has_the_subject_and_the_status() {
    let (log, _logging) = Log::start();
    let server = Guarded::start().await;
    let (admin, reader) = (server.token(&[Scope::Admin]).await, server.token(&[Scope::Read]).await);
    let (wire, origin) = Wire::connect(&format!("http://{}", server.api.address)).await;
    let mut control = ControlClient::with_origin(wire.clone(), origin.clone());
    let mut tasks = TasksClient::with_origin(wire, origin);
    let pause = || v1::SetQueueRequest { queue: "mail".into(), paused: true };
    control.set_queue(with(&admin, pause())).await.unwrap();
    control.list_queues(with(&admin, v1::ListQueuesRequest {})).await.unwrap();
    control.set_queue(with(&reader, pause())).await.unwrap_err();
    let remove = v1::RemoveJobRequest { name: "none".into(), now: true };
    control.remove_job(with(&admin, remove)).await.unwrap_err();
    let ids = vec!["not an id".to_owned(), "nor this".to_owned()];
    let cancel = v1::CancelTasksRequest { task_ids: ids, reason: "a secret reason".into() };
    tasks.cancel_tasks(with(&admin, cancel)).await.unwrap_err();
    let told = log.lines();
    let told: Vec<_> = told
        .iter()
        .map(|line| {
            assert!(line["status"].is_null(), "{line}");
            ["call", "about", "grpc_status", "outcome"].map(|key| line[key].as_str().unwrap())
        })
        .collect();
    assert_eq!(
        told,
        [
            ["windlass.v1.Control/SetQueue", "pause mail", "Ok", "done"],
            ["windlass.v1.Control/SetQueue", "", "PermissionDenied", "denied"],
            ["windlass.v1.Control/RemoveJob", "none", "NotFound", "refused"],
            ["windlass.v1.Tasks/CancelTasks", "not an id nor this", "InvalidArgument", "refused"],
        ]
    );
    assert!(!log.text().contains("secret reason"));
}
