//! A server behind a proxy: its prefix, its origin, and its cookie.

use std::sync::Arc;

use serde_json::json;
use windlass_conformance::MemoryStore;
use windlass_core::{Rules, time::ManualClock};
use windlass_server::{
    Operations,
    access::{self, Auth},
    api::TokenRequest,
    http::Options,
};

use crate::harness::{Answer, Api};

/// A server at this public address, and a token of scope admin.
async fn behind(url: &str) -> (Api, String) {
    let clock = Arc::new(ManualClock::new("2027-01-31T09:30:00Z".parse().unwrap()));
    let store = Arc::new(MemoryStore::new(clock.clone(), Rules::default()));
    let operations = Operations::new(store.clone());
    let access = access::Options { auth: Auth::Tokens, ..access::Options::default() };
    let options = Options { access, public_url: Some(url.parse().unwrap()), ..Options::default() };
    let request = TokenRequest { scopes: vec!["admin".into()], ..TokenRequest::default() };
    let token = operations.create_token(request).await.unwrap().token;
    (Api::around(store, clock, operations, options).await, token)
}

async fn send(api: &Api, call: &str, headers: &str, body: &str) -> Answer {
    let (method, path) = call.split_once(' ').unwrap();
    let head = format!(
        "{method} {path} HTTP/1.1\r\n{headers}content-type: application/json\r\ncontent-length: {}\r\n\
         connection: close",
        body.len()
    );
    api.raw(&head, body.as_bytes()).await
}

#[tokio::test]
async fn paths_are_served_with_the_prefix_and_without_it() {
    let (api, token) = behind("https://ops.example.com/windlass").await;
    let headers = format!("host: ops.example.com\r\nauthorization: Bearer {token}\r\n");
    for (path, expected) in [
        ("/v1/queues", 200),
        ("/windlass/v1/queues", 200),
        ("/windlass/v1/tasks?limit=1", 200),
        ("/windlass", 200),
        ("/windlass/", 200),
        ("/windlass/healthz", 200),
        ("/windlassian/v1/queues", 404),
        ("/windlass/windlass/v1/queues", 404),
    ] {
        assert_eq!(send(&api, &format!("GET {path}"), &headers, "").await.status, expected, "{path}");
    }
    let front = send(&api, "GET /windlass/", &headers, "").await;
    assert!(front.text().contains("href=\"/windlass/tasks\""), "{}", front.text());
    let document = send(&api, "GET /windlass/v1/openapi.json", &headers, "").await.json();
    assert_eq!(document["servers"], json!([{"url": "/windlass"}]));
    let added = send(&api, "POST /windlass/v1/tasks", &headers, r#"{"kind":"a"}"#).await;
    assert_eq!(added.status, 201, "{}", added.text());
}

#[tokio::test]
async fn a_prefix_opens_no_call() {
    let (api, _) = behind("https://ops.example.com/windlass").await;
    for path in ["/windlass/v1/queues", "/windlass//v1/queues", "/windlass/%76%31/queues", "//v1/queues"] {
        let answer = send(&api, &format!("GET {path}"), "host: ops.example.com\r\n", "").await;
        assert!(matches!(answer.status, 401 | 404), "{path}: {}", answer.status);
    }
    let foreign = send(&api, "GET /windlass/v1/queues", "host: evil.example\r\n", "").await;
    assert_eq!(foreign.status, 403);
}

#[tokio::test]
async fn a_browser_behind_a_proxy_logs_in_and_changes_something() {
    let (api, token) = behind("https://ops.example.com:8443/windlass").await;
    let login = json!({"token": token}).to_string();
    // Three proxies: one passes Host on, one removes the port, one writes the address of the server.
    let own = format!("{}", api.address);
    for host in ["ops.example.com:8443", "ops.example.com", &own] {
        let page = format!("host: {host}\r\norigin: https://ops.example.com:8443\r\n");
        let answer = send(&api, "POST /windlass/v1/login", &page, &login).await;
        assert_eq!(answer.status, 200, "{host}: {}", answer.text());
        let set = answer.header("set-cookie").unwrap().to_owned();
        assert!(set.starts_with("__Host-windlass-windlass=ws_"), "{set}");
        assert!(set.ends_with("; Path=/; HttpOnly; SameSite=Strict; Secure"), "{set}");
        let cookie = set.split(';').next().unwrap();
        let pause = "POST /windlass/v1/queues/mail/pause";
        let changed = send(&api, pause, &format!("{page}cookie: {cookie}\r\n"), "{}").await;
        assert_eq!(changed.status, 200, "{host}: {}", changed.text());
        for origin in
            ["https://ops.example.com", "http://ops.example.com:8443", "null", &format!("http://{own}")]
        {
            let headers = format!("host: {host}\r\norigin: {origin}\r\ncookie: {cookie}\r\n");
            assert_eq!(send(&api, pause, &headers, "{}").await.status, 403, "{host} {origin}");
        }
    }
}
