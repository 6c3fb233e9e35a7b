//! Exports of tasks: every line, in pieces, as CSV and as lines of JSON.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::Api;

/// An export, its chunks put together; and whether it came to its proper end.
async fn exported(api: &Api, query: &str) -> (String, String, bool) {
    let mut connection = api.connect().await;
    let head = format!(
        "GET /v1/tasks/export?{query} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n",
        api.address
    );
    connection.send(head.as_bytes()).await;
    let head = connection.head().await;
    let rest = String::from_utf8(connection.rest().await).unwrap();
    let (mut text, mut left) = (String::new(), rest.as_str());
    while let Some((size, after)) = left.split_once("\r\n") {
        let Ok(size) = usize::from_str_radix(size, 16) else { break };
        if size == 0 {
            return (head, text, true);
        }
        text.push_str(&after[..size]);
        left = after[size..].strip_prefix("\r\n").unwrap_or_default();
    }
    (head, text, false)
}

/// So many tasks of a kind, in one call each hundred.
async fn add(api: &Api, kind: &str, count: usize) {
    for from in (0..count).step_by(1_000) {
        let tasks: Vec<_> = (from..count.min(from + 1_000))
            .map(|n| json!({"kind": kind, "queue": kind, "payload": n}))
            .collect();
        assert_eq!(api.post("/v1/tasks", json!({"tasks": tasks}).to_string()).await.status, 201);
    }
}

#[tokio::test]
async fn every_task_is_exported_once() {
    let api = Api::start().await;
    add(&api, "a", 1_203).await;
    add(&api, "b", 7).await;
    let (head, csv, ended) = exported(&api, "format=csv").await;
    assert!(ended && head.contains("content-type: text/csv"), "{head}");
    assert!(head.contains("attachment; filename=\"windlass-tasks.csv\""), "{head}");
    let lines: Vec<&str> = csv.split_terminator("\r\n").collect();
    assert!(lines[0].starts_with("id,state,kind,queue,"), "{}", lines[0]);
    let mut ids: Vec<&str> = lines[1..].iter().map(|line| line.split(',').next().unwrap()).collect();
    assert!(ids.is_sorted_by(|newer, older| newer > older), "newest first");
    ids.dedup();
    assert_eq!(ids.len(), 1_210);
    let (_, lines, ended) = exported(&api, "format=ndjson&kind=b").await;
    let tasks: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(ended && tasks.len() == 7);
    assert!(tasks.iter().all(|task| task["kind"] == "b" && task.get("payload").is_none()));
    let (_, lines, _) = exported(&api, "format=ndjson&kind=b&payload=true").await;
    let payloads = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["payload"].clone());
    assert_eq!(payloads.collect::<Vec<_>>(), [6, 5, 4, 3, 2, 1, 0].map(|n| json!(n)));
    let (_, none, ended) = exported(&api, "format=ndjson&kind=none").await;
    assert!(ended && none.is_empty());
}

#[tokio::test]
async fn a_cut_export_says_where_to_go_on() {
    let api = Api::start().await;
    add(&api, "a", 1_100).await;
    let (_, csv, ended) = exported(&api, "format=csv&limit=600").await;
    let last = csv.split_terminator("\r\n").last().unwrap();
    assert!(
        ended && last.starts_with("# cut after 600 tasks: this is the limit; go on with after="),
        "{last}"
    );
    let after = last.rsplit_once("after=").unwrap().1;
    let (_, rest, _) = exported(&api, &format!("format=ndjson&after={after}")).await;
    assert_eq!(rest.lines().count(), 500, "nothing twice, nothing left out");
    let (_, cut, _) = exported(&api, "format=ndjson&limit=600").await;
    let told: Value = serde_json::from_str(cut.lines().last().unwrap()).unwrap();
    assert_eq!((&told["cut"]["tasks"], &told["cut"]["after"]), (&json!(600), &json!(after)));
    let (_, whole, _) = exported(&api, "format=csv&limit=1100").await;
    assert!(!whole.contains("# cut"), "the limit is where the tasks end");
}

#[tokio::test]
async fn a_name_that_is_a_formula_is_a_text_in_csv() {
    let api = Api::start().await;
    let formula = "=HYPERLINK(\"http://x\",1)";
    api.enqueue(json!({"kind": "@k", "queue": "+q", "key": formula})).await;
    let worker = api.worker(&["bad"]).await;
    api.dead(&worker, "bad", "-2+3, \"boom\"\nline two").await;
    let (_, csv, _) = exported(&api, "format=csv").await;
    for cell in
        ["\"'@k\"", "\"'+q\"", "\"'=HYPERLINK(\"\"http://x\"\",1)\"", "\"'-2+3, \"\"boom\"\"\nline two\""]
    {
        assert!(csv.contains(cell), "{cell} in {csv}");
    }
    let (_, lines, _) = exported(&api, "format=ndjson&kind=@k").await;
    assert_eq!(serde_json::from_str::<Value>(&lines).unwrap()["key"], formula, "JSON is told as it is");
}

#[tokio::test]
async fn a_wrong_export_is_refused_before_it_begins() {
    let api = Api::start().await;
    for (query, message) in [
        ("", "format must be csv or ndjson"),
        ("format=xml", "format must be csv or ndjson"),
        ("format=csv&payload=true", "payload is only for format=ndjson"),
        ("format=csv&limit=0", "limit is 0; it must be 1 to 1000000"),
        ("format=csv&detail=whole", "detail is for /v1/tasks"),
        ("format=csv&moon=1", "moon"),
        ("format=csv&worker=nobody", "worker"),
        ("format=csv&payload=perhaps", "payload must be true or false"),
    ] {
        let (code, told) = api.get(&format!("/v1/tasks/export?{query}")).await.error(400);
        assert!(code == "invalid" && told.contains(message), "{query}: {told}");
    }
    assert_eq!(api.post("/v1/tasks/export?format=csv", "{}").await.error(405).0, "method_not_allowed");
    let head = "HEAD /v1/tasks/export?format=csv HTTP/1.1\r\nhost: localhost\r\nconnection: close";
    let answer = api.raw(head, b"").await;
    assert_eq!((answer.status, answer.text()), (200, ""));
}

#[tokio::test]
async fn exports_at_once_are_bounded_and_end_with_their_client() {
    let api = Api::start().await;
    add(&api, &"k".repeat(120), 20_000).await;
    let ask = format!("GET /v1/tasks/export?format=ndjson HTTP/1.1\r\nhost: {}\r\n\r\n", api.address);
    // None of them reads: each holds its place, and no more than the bytes that fit on its connection.
    let mut slow = Vec::new();
    for _ in 0..8 {
        let mut connection = api.connect().await;
        connection.send(ask.as_bytes()).await;
        assert!(connection.head().await.starts_with("HTTP/1.1 200"));
        slow.push(connection);
    }
    let refused = api.get("/v1/tasks/export?format=ndjson").await;
    assert_eq!(refused.error(503).1, "too many exports at once");
    assert_eq!(api.get("/v1/queues").await.status, 200, "other calls go on");
    drop(slow);
    let freed = async {
        while api.get("/v1/tasks/export?format=csv&limit=1").await.status == 503 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), freed).await.expect("places of clients that went away");
}

#[tokio::test]
async fn an_export_that_the_server_ends_is_not_whole() {
    let mut api = Api::start().await;
    add(&api, &"k".repeat(120), 20_000).await;
    let mut connection = api.connect().await;
    let ask = format!("GET /v1/tasks/export?format=csv HTTP/1.1\r\nhost: {}\r\n\r\n", api.address);
    connection.send(ask.as_bytes()).await;
    assert!(connection.head().await.starts_with("HTTP/1.1 200"));
    api.stop();
    let rest = String::from_utf8_lossy(&connection.rest().await).into_owned();
    assert!(rest.contains("the server stops; go on with after="), "{}", &rest[rest.len() - 200..]);
    assert!(!rest.ends_with("0\r\n\r\n"), "a client can tell that this is not the whole export");
}
