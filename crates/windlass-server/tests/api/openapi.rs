//! Compares the OpenAPI document with the server: routes, methods, parameters, bodies, statuses, schemas,
//! scopes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use windlass_core::{Outcome, Scope};
use windlass_server::access::CALLS;

use crate::{
    access::Guarded,
    harness::{Answer, Api},
};

/// The document that the server sends.
struct Document(Value);

impl Document {
    async fn of(api: &Api) -> Self {
        Self(api.get("/v1/openapi.json").await.json())
    }

    /// Every operation as `METHOD /path`.
    fn operations(&self) -> BTreeMap<String, Value> {
        let paths = self.0["paths"].as_object().unwrap();
        let mut operations = BTreeMap::new();
        for (path, methods) in paths {
            for (method, operation) in methods.as_object().unwrap() {
                operations.insert(format!("{} {path}", method.to_uppercase()), operation.clone());
            }
        }
        operations
    }

    /// Finds what is wrong with a value by a schema of this document. A field that the schema does not name
    /// is wrong.
    fn check(&self, schema: &Value, value: &Value, at: &str, wrong: &mut Vec<String>) {
        if let Some(name) = schema["$ref"].as_str() {
            let name = name.rsplit('/').next().unwrap();
            return self.check(&self.0["components"]["schemas"][name], value, at, wrong);
        }
        if let Some(any) = schema["anyOf"].as_array() {
            let fits = |schema: &&Value| {
                let mut wrong = Vec::new();
                self.check(schema, value, at, &mut wrong);
                wrong.is_empty()
            };
            if !any.iter().any(|schema| fits(&schema)) {
                wrong.push(format!("{at}: {value} fits none of {any:?}"));
            }
            return;
        }
        let fits = match schema["type"].as_str() {
            None => true,
            Some("object") => value.is_object(),
            Some("array") => value.is_array(),
            Some("string") => value.is_string(),
            Some("boolean") => value.is_boolean(),
            Some("number") => value.is_number(),
            Some("integer") => value.is_i64() || value.is_u64(),
            Some("null") => value.is_null(),
            Some(other) => panic!("unknown type {other}"),
        };
        let named = schema["enum"].as_array().is_none_or(|names| names.contains(value));
        if !fits || !named {
            wrong.push(format!("{at}: {value} is not {schema}"));
        }
        for item in value.as_array().into_iter().flatten().filter(|_| schema["items"].is_object()) {
            self.check(&schema["items"], item, &format!("{at}[]"), wrong);
        }
        let (Some(fields), Some(properties)) = (value.as_object(), schema["properties"].as_object()) else {
            return;
        };
        for (name, field) in fields {
            match properties.get(name) {
                Some(schema) => self.check(schema, field, &format!("{at}.{name}"), wrong),
                None => wrong.push(format!("{at}.{name} is not in the document")),
            }
        }
        for name in schema["required"].as_array().into_iter().flatten() {
            if !fields.contains_key(name.as_str().unwrap()) {
                wrong.push(format!("{at}.{name} is missing"));
            }
        }
    }
}

/// Calls, and the answers to each.
struct Tour {
    api: Api,
    document: Document,
    operations: BTreeMap<String, Value>,
    seen: BTreeMap<String, BTreeSet<u16>>,
    wrong: Vec<String>,
}

impl Tour {
    async fn start() -> Self {
        let api = Api::start().await;
        let document = Document::of(&api).await;
        let operations = document.operations();
        Self { api, document, operations, seen: BTreeMap::new(), wrong: Vec::new() }
    }

    /// Makes a call with a value for its parameter, and compares the answer with the document.
    async fn call(&mut self, call: &str, parameter: &str, query: &str, body: Option<Value>) -> Value {
        let (method, route) = call.split_once(' ').unwrap();
        let path = route.replace("{id}", parameter).replace("{name}", parameter);
        let body = body.map(|body| body.to_string());
        let kind = if body.is_some() { "content-type: application/json\r\n" } else { "" };
        let body = body.unwrap_or_default();
        let head = format!(
            "{method} {path}{query} HTTP/1.1\r\nhost: localhost\r\norigin: http://localhost\r\n{kind}content-length: {}\r\nconnection: close",
            body.len()
        );
        let answer = self.api.raw(&head, body.as_bytes()).await;
        self.compare(call, &answer);
        if answer.header("content-type") == Some("application/json") { answer.json() } else { Value::Null }
    }

    fn compare(&mut self, call: &str, answer: &Answer) {
        let operation = &self.operations[call];
        self.seen.entry(call.to_owned()).or_default().insert(answer.status);
        let documented = &operation["responses"][answer.status.to_string()];
        if documented.is_null() {
            self.wrong.push(format!("{call} answered {}, which is not documented", answer.status));
            return;
        }
        let json = &documented["content"]["application/json"];
        if json.is_object() {
            let mut wrong = Vec::new();
            self.document.check(&json["schema"], &answer.json(), call, &mut wrong);
            self.wrong.append(&mut wrong);
        } else if answer.header("content-type") == Some("application/json") {
            self.wrong.push(format!("{call} answered JSON, which is not documented"));
        }
    }
}

#[tokio::test]
async fn every_operation_answers_what_the_document_says() {
    let mut tour = Tour::start().await;
    let worker = tour.api.worker(&["a"]).await;
    look_at_tasks(&mut tour, &worker).await;
    change_tasks(&mut tour, &worker).await;
    use_runs(&mut tour, &worker).await;
    use_gates(&mut tour, &worker).await;
    use_schedules_and_tokens(&mut tour).await;
    let consumer = json!({
        "queue": "orders", "event_type": "paid", "state": "consuming", "busy": 1, "allowed": 2, "workers": 4, "prefetch": 8,
        "queue_messages": 7, "deliveries": 9, "redeliveries": 1, "acked": 7, "rejected": 1, "requeued": 0, "unanswered": 0,
        "reconnects": 2
    });
    let report = json!({"process": "p1", "host": "h", "pid": 7, "version": "0", "consumers": [consumer]});
    tour.call("POST /v1/consumers", "", "", Some(report)).await;
    tour.call("POST /v1/consumers", "", "", Some(json!({"process": ""}))).await;
    let worker_id = worker.id.to_string();
    tour.call("PUT /v1/workers/{id}", &worker_id, "", Some(json!({"slots": 7}))).await;
    tour.call("PUT /v1/workers/{id}", "w99", "", Some(json!({"slots": 7}))).await;
    for call in [
        "GET /healthz",
        "GET /readyz",
        "GET /metrics",
        "GET /v1/openapi.json",
        "GET /v1/dead",
        "GET /v1/queues",
        "GET /v1/workers",
        "GET /v1/consumers",
        "GET /v1/info",
        "GET /v1/overview",
        "GET /v1/audit",
        "GET /v1/snapshot",
        "GET /v1/events",
        "GET /v1/series",
        "GET /v1/activity",
    ] {
        tour.call(call, "", "", None).await;
    }
    assert!(tour.wrong.is_empty(), "{:#?}", tour.wrong);
    for (call, operation) in &tour.operations {
        let seen = tour.seen.get(call).cloned().unwrap_or_default();
        let successes =
            operation["responses"].as_object().unwrap().keys().map(|status| status.parse::<u16>().unwrap());
        // This server keeps no metrics, so the answer is 404.
        let wanted: BTreeSet<u16> = match call.as_str() {
            "GET /metrics" => BTreeSet::from([404]),
            _ => successes.filter(|status| *status < 300).collect(),
        };
        assert!(wanted.is_subset(&seen), "{call} should answer {wanted:?} and answered {seen:?}");
    }
}

async fn look_at_tasks(tour: &mut Tour, worker: &crate::harness::Hand) {
    let whole = json!({
        "kind": "a", "payload": {"n": 1}, "queue": "q", "priority": 3, "key": "k", "max_attempts": 2, "timeout_ms": 1000,
        "retry": {"base_ms": 1, "max_ms": 2}
    });
    let made = tour.call("POST /v1/tasks", "", "", Some(whole.clone())).await;
    let again = tour.call("POST /v1/tasks", "", "", Some(whole)).await;
    assert_eq!(made["id"], again["id"]);
    let id = made["id"].as_str().unwrap().to_owned();
    tour.call(
        "POST /v1/tasks",
        "",
        "",
        Some(json!({"tasks": [{"kind": "b"}, {"kind": "b", "delay_ms": 60_000}]})),
    )
    .await;
    tour.call("POST /v1/tasks", "", "", Some(json!({"kind": ""}))).await;
    tour.call("POST /v1/tasks", "", "", Some(json!({"kind": "other", "queue": "q", "key": "k"}))).await;
    worker.end(Outcome::Done(Some(windlass_core::Payload::json(&"out").unwrap()))).await;
    for call in ["GET /v1/tasks/{id}", "GET /v1/tasks/{id}/why", "GET /v1/tasks/{id}/wait"] {
        tour.call(call, &id, "", None).await;
        tour.call(call, "0000000000000", "", None).await;
        tour.call(call, "no-id", "", None).await;
    }
    tour.call("GET /v1/tasks/{id}/wait", &id, "?timeout_ms=1", None).await;
    tour.call("POST /v1/tasks/wait", "", "", Some(json!({"ids": [id, "0000000000000"], "timeout_ms": 1})))
        .await;
    for query in [
        "",
        "?limit=1",
        "?state=done&kind=a&queue=q",
        "?since=2020-01-01T00:00:00Z",
        "?detail=summary",
        "?state=moon",
    ] {
        for query in ["?format=csv", "?format=moon"] {
            tour.call("GET /v1/tasks/export", "", query, None).await;
        }
        tour.call("GET /v1/tasks", "", query, None).await;
    }
}

async fn change_tasks(tour: &mut Tour, worker: &crate::harness::Hand) {
    let dead = tour.api.dead(worker, "a", "boom 17").await;
    tour.call("GET /v1/tasks/{id}", &dead, "", None).await;
    tour.call("GET /v1/dead", "", "?kind=a", None).await;
    tour.call("POST /v1/tasks/{id}/retry", &dead, "", Some(json!({"delay_ms": 60_000}))).await;
    tour.call("POST /v1/tasks/{id}/retry", &dead, "", None).await;
    tour.call("GET /v1/tasks/{id}", &dead, "", None).await;
    tour.call("POST /v1/tasks/{id}/cancel", &dead, "", Some(json!({"reason": "r"}))).await;
    tour.call("POST /v1/tasks/{id}/cancel", &dead, "", None).await;
    tour.call("POST /v1/tasks/{id}/cancel", "0000000000000", "", None).await;
    tour.api.dead(worker, "a", "boom 18").await;
    tour.call("POST /v1/tasks/retry", "", "", Some(json!({"filter": {"kind": "a"}, "dry_run": true}))).await;
    tour.call(
        "POST /v1/tasks/retry",
        "",
        "",
        Some(json!({"filter": {"kind": "a"}, "over_ms": 10, "limit": 9})),
    )
    .await;
    let gone = tour.api.dead(worker, "a", "boom 19").await;
    for _ in 0..2 {
        tour.call("DELETE /v1/tasks/{id}", &gone, "", None).await;
    }
    tour.call("DELETE /v1/tasks/{id}", &dead, "", None).await;
    tour.call("POST /v1/tasks/remove", "", "", Some(json!({"filter": {"kind": "a"}, "dry_run": true}))).await;
    tour.call("POST /v1/tasks/remove", "", "", None).await;
    let again = tour.call("POST /v1/tasks/{id}/retry", &dead, "", None).await;
    assert_eq!(again["repeats"], dead, "a cancelled task is repeated by a new one");
    tour.call("GET /v1/tasks/{id}", &dead, "", None).await;
    tour.call("GET /v1/tasks/{id}", again["id"].as_str().unwrap(), "", None).await;
    tour.call("POST /v1/tasks/{id}/cancel", again["id"].as_str().unwrap(), "", None).await;
    tour.call("POST /v1/tasks/cancel", "", "", Some(json!({"filter": {"kind": "b"}, "reason": "r"}))).await;
    tour.call("POST /v1/tasks/cancel", "", "", None).await;
    tour.call("POST /v1/queues/{name}/pause", "q", "", None).await;
    tour.call("POST /v1/queues/{name}/resume", "q", "", Some(json!({}))).await;
    tour.call("POST /v1/queues/{name}/resume", "%20", "", None).await;
    tour.call("POST /v1/queues/{name}/purge", "q", "", Some(json!({"dry_run": true, "reason": "r"}))).await;
    tour.call("POST /v1/queues/{name}/purge", "none", "", None).await;
}

async fn use_runs(tour: &mut Tour, worker: &crate::harness::Hand) {
    tour.api.dead(worker, "a", "boom 20").await;
    let run = |dry_run: bool| json!({"action": "retry", "filter": {"kind": "a"}, "over_ms": 60_000, "dry_run": dry_run});
    tour.call("POST /v1/runs", "", "", Some(run(true))).await;
    tour.call("POST /v1/runs", "", "", Some(json!({"action": "remove"}))).await;
    let cancel = json!({"action": "cancel", "filter": {"kind": "none"}, "reason": "r"});
    tour.call("POST /v1/runs", "", "", Some(cancel)).await;
    for _ in 0..2 {
        tour.api.dead(worker, "a", "boom 21").await;
    }
    let id = tour.call("POST /v1/runs", "", "", Some(run(false))).await["id"].to_string();
    tour.call("GET /v1/runs", "", "", None).await;
    for call in ["GET /v1/runs/{id}", "POST /v1/runs/{id}/stop"] {
        tour.call(call, &id, "", None).await;
        tour.call(call, "99", "", None).await;
        tour.call(call, "x", "", None).await;
    }
    tour.call("GET /v1/activity", "", "?limit=1", None).await;
}

async fn use_gates(tour: &mut Tour, worker: &crate::harness::Hand) {
    let set = json!({"concurrency": 1, "delay_ms": null, "state": "active", "now": false});
    tour.call("PUT /v1/jobs/{name}", "j", "", Some(set)).await;
    for _ in 0..2 {
        tour.call("POST /v1/tasks", "", "", Some(json!({"kind": "c", "job": "j"}))).await;
    }
    tour.call("GET /v1/jobs/{name}", "j", "", None).await;
    tour.call("GET /v1/jobs/{name}", "none", "", None).await;
    tour.call("GET /v1/jobs", "", "?limit=1", None).await;
    tour.call("DELETE /v1/jobs/{name}", "j", "?now=true", None).await;
    tour.call("DELETE /v1/jobs/{name}", "none", "", None).await;
    for (name, verb) in [("w1", "retry"), ("w2", "skip"), ("w3", "cancel")] {
        for _ in 0..2 {
            let step = json!({"kind": "a", "workflow": name, "on_failure": "block", "max_attempts": 1});
            tour.call("POST /v1/tasks", "", "", Some(step)).await;
        }
        worker.end(Outcome::dead("stuck")).await;
        tour.call("GET /v1/workflows/{name}", name, "", None).await;
        tour.call("GET /v1/workflows", "", "?blocked=true&limit=5", None).await;
        tour.call("GET /v1/workflows/{name}/steps", name, "?limit=1", None).await;
        tour.call("GET /v1/workflows/{name}/steps", "none", "", None).await;
        tour.call("GET /v1/queues/{name}/why", "default", "", None).await;
        tour.call("GET /v1/queues/{name}/why", "none", "", None).await;
        let call = format!("POST /v1/workflows/{{name}}/{verb}");
        tour.call(&call, name, "", None).await;
        tour.call(&call, "none", "", None).await;
    }
}

async fn use_schedules_and_tokens(tour: &mut Tour) {
    let set =
        json!({"cron": "@daily", "tz": "UTC", "missed": "skip", "task": {"kind": "a", "payload": {"n": 1}}});
    tour.call("PUT /v1/schedules/{name}", "s", "", Some(set)).await;
    tour.call("PUT /v1/schedules/{name}", "s2", "", Some(json!({"cron": "never", "task": {"kind": "a"}})))
        .await;
    for call in [
        "GET /v1/schedules/{name}",
        "POST /v1/schedules/{name}/run",
        "POST /v1/schedules/{name}/pause",
        "POST /v1/schedules/{name}/resume",
    ] {
        tour.call(call, "s", "", None).await;
        tour.call(call, "none", "", None).await;
    }
    tour.call("GET /v1/schedules", "", "", None).await;
    tour.call("DELETE /v1/schedules/{name}", "s", "", None).await;
    tour.call("DELETE /v1/schedules/{name}", "s", "", None).await;
    let made = json!({"scopes": ["read", "enqueue"], "name": "ci", "expires_in_ms": 1000});
    let made = tour.call("POST /v1/tokens", "", "", Some(made)).await;
    tour.call("POST /v1/tokens", "", "", Some(json!({"scopes": ["moon"]}))).await;
    tour.call("GET /v1/tokens", "", "", None).await;
    let session = tour.call("POST /v1/login", "", "", Some(json!({"token": made["token"]}))).await;
    tour.call("POST /v1/login", "", "", Some(json!({"token": "x"}))).await;
    tour.call("POST /v1/login", "", "", Some(json!({"token": ""}))).await;
    tour.call("GET /v1/sessions", "", "", None).await;
    for _ in 0..2 {
        tour.call("DELETE /v1/sessions/{id}", session["id"].as_str().unwrap(), "", None).await;
    }
    tour.call("POST /v1/logout", "", "", Some(json!({}))).await;
    let id = made["id"].as_str().unwrap().to_owned();
    tour.call("DELETE /v1/tokens/{id}", &id, "", None).await;
    tour.call("DELETE /v1/tokens/{id}", &id, "", None).await;
}

/// Names in the hint of a refusal: `known fields: a, b`.
fn known(answer: &Answer) -> BTreeSet<String> {
    assert_eq!(answer.status, 400, "{}", answer.text());
    if let Some(fields) = answer.hint().strip_prefix("known fields: ") {
        return fields.split(", ").map(str::to_owned).collect();
    }
    assert_eq!(answer.hint(), "no fields are expected here", "{}", answer.text());
    BTreeSet::new()
}

#[tokio::test]
async fn query_parameters_and_the_document_agree() {
    let api = Api::start().await;
    let document = Document::of(&api).await;
    for (call, operation) in document.operations() {
        let names: BTreeSet<String> = operation["parameters"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|parameter| parameter["in"] == "query")
            .map(|parameter| parameter["name"].as_str().unwrap().to_owned())
            .collect();
        if names.is_empty() {
            continue;
        }
        let (method, path) = call.split_once(' ').unwrap();
        let path = path.replace("{id}", "0000000000000").replace("{name}", "n");
        let head = format!("{method} {path}?zzzzzzzzzz=1 HTTP/1.1\r\nhost: localhost\r\nconnection: close");
        let answer = api.raw(&head, b"").await;
        // A list by filter takes a state and a page. The groups of dead tasks do not, and refuse them by
        // name.
        let mut taken = known(&answer);
        if call == "GET /v1/dead" {
            taken.retain(|name| !["state", "after", "limit", "detail"].contains(&name.as_str()));
        }
        assert_eq!(taken, names, "{call}: the server on the left");
    }
}

#[tokio::test]
async fn body_fields_and_the_document_agree() {
    let api = Api::start().await;
    let document = Document::of(&api).await;
    let schemas = &document.0["components"]["schemas"];
    let mut compared = 0;
    for (call, operation) in document.operations() {
        let body = &operation["requestBody"]["content"]["application/json"]["schema"];
        let names = body["anyOf"].as_array().cloned().unwrap_or_else(|| vec![body.clone()]);
        for name in names.iter().filter_map(|schema| schema["$ref"].as_str()) {
            let name = name.rsplit('/').next().unwrap();
            let fields = schemas[name]["properties"].as_object().unwrap();
            let fields: BTreeSet<String> = fields.keys().cloned().collect();
            let (method, path) = call.split_once(' ').unwrap();
            let path = path.replace("{id}", "0000000000000").replace("{name}", "n");
            let body = if name == "BatchRequest" {
                r#"{"tasks":[{"kind":"a"}],"zzzzzzzzzz":1}"#
            } else {
                r#"{"zzzzzzzzzz":1}"#
            };
            let head = format!(
                "{method} {path} HTTP/1.1\r\nhost: localhost\r\norigin: http://localhost\r\ncontent-type: application/json\r\n\
                 content-length: {}\r\nconnection: close",
                body.len()
            );
            let answer = api.raw(&head, body.as_bytes()).await;
            let taken = known(&answer);
            assert_eq!(taken, fields, "{call} {name}: the server on the left");
            compared += 1;
        }
    }
    assert!(compared > 15, "{compared}");
}

#[tokio::test]
async fn documented_scopes_are_those_that_the_server_asks_for() {
    let server = Guarded::start().await;
    let document = Document(server.call("GET /v1/openapi.json", "").await.json());
    let operations = document.operations();
    let calls: BTreeSet<_> =
        CALLS.iter().map(|call| call.name.to_owned()).filter(|name| name.contains(' ')).collect();
    assert_eq!(operations.keys().cloned().collect::<BTreeSet<_>>(), calls);
    let mut tokens = Vec::new();
    for scope in Scope::ALL {
        tokens.push((scope, server.token(&[scope]).await));
    }
    for (call, operation) in operations {
        let path = call.replace("{id}", "no-such-thing").replace("{name}", "no-such-thing");
        let needed =
            operation["security"][0]["token"][0].as_str().map(|scope| scope.parse::<Scope>().unwrap());
        assert_eq!(server.call(&path, "").await.status == 401, needed.is_some(), "{call} without a token");
        for (held, token) in &tokens {
            let answer = server.call_as(token, &path).await;
            let may = needed.is_none_or(|needed| needed == *held || *held == Scope::Admin);
            assert_eq!(answer.status == 403, !may, "{held} for {call}: {}", answer.text());
            let documented = &operation["responses"][answer.status.to_string()];
            assert!(!documented.is_null(), "{call} answered {}, which is not documented", answer.status);
        }
    }
}
