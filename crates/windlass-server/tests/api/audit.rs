//! S5, S8: a line for every call that changes something for others, without a secret.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex},
};

use serde_json::Value;
use tracing_subscriber::fmt::MakeWriter;
use windlass_core::Scope;
use windlass_server::access::AUDIT;

use crate::access::Guarded;

/// Where the log goes.
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

    /// Who, what, on which target, with which outcome.
    fn audits(&self) -> Vec<[String; 4]> {
        let text = self.text();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let audits = lines.filter(|line| line["target"] == AUDIT || line["message"] == "audit");
        audits
            .map(|line| ["who", "call", "path", "outcome"].map(|key| line[key].as_str().unwrap().to_owned()))
            .collect()
    }
}

// One thread: the log of this test is that of all tasks that it starts.
#[tokio::test]
async fn a_change_is_told_with_who_what_where_and_outcome_and_a_look_is_not() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_writer(log.clone())
        .with_max_level(tracing::level_filters::LevelFilter::TRACE)
        .finish();
    let _logging = tracing::subscriber::set_default(subscriber);
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
