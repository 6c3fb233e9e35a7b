//! Promise S8: errors and logs do not contain secrets of the task.

use serde_json::json;
use windlass::Outcome;
use windlass_kinds::{Http, HttpOptions};

use crate::support::{Server, answer, call, dead, http, loopback, output};

#[tokio::test]
async fn failures_do_not_show_the_payload() {
    let server = Server::start(|request| {
        let status = request.headers["x-status"].to_str().unwrap().parse().unwrap();
        answer(status, &[("location", "http://hush:hush@10.0.0.1/hush")], "hush")
    })
    .await;
    let closed = "http://hush:hush@127.0.0.1:1/hush?hush=hush".to_owned();
    let open = server.url("/hush?hush=hush").replace("http://", "http://hush:hush@");
    for (url, status) in [(open.clone(), "404"), (open.clone(), "500"), (open, "302"), (closed, "200")] {
        let payload = json!({
            "url": url,
            "method": "POST",
            "headers": {"x-status": status, "cookie": "hush", "x-mine": "hush"},
            "body": "hush",
        });
        let error = match call(&http(), &payload).await {
            Outcome::Dead(error) | Outcome::Retry { error, .. } => error,
            other => panic!("{other:?}"),
        };
        assert!(error.starts_with("http: 1") && !error.contains("hush"), "{error}");
    }
}

#[tokio::test]
async fn a_header_takes_its_value_from_an_allowed_variable_only() {
    let server = Server::start(|_| answer(200, &[], "")).await;
    // Every process has this variable; a test cannot set one without affecting other tests.
    let http =
        Http::new(HttpOptions { env_headers: vec!["PATH".into(), "NOT_SET_HERE".into()], ..loopback() });
    let http = http.unwrap();
    let payload = |name: &str| json!({"url": server.url("/"), "headers": {"x-token": {"env": name}}});
    output(call(&http, &payload("PATH")).await);
    assert_eq!(server.seen()[0].headers["x-token"], std::env::var("PATH").unwrap().as_str());
    let missing = dead(call(&http, &payload("NOT_SET_HERE")).await);
    assert!(missing.contains("NOT_SET_HERE") && missing.contains("does not have"), "{missing}");
    let refused = dead(call(&http, &payload("HOME")).await);
    assert!(refused.contains("HOME") && refused.contains("allow-list"), "{refused}");
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn a_password_in_the_url_is_sent_as_credentials() {
    let server = Server::start(|_| answer(200, &[], "")).await;
    let url = server.url("/").replace("http://", "http://me:p%40ss@");
    output(call(&http(), &json!({"url": url})).await);
    let seen = server.seen().remove(0);
    assert_eq!(seen.headers["authorization"], "Basic bWU6cEBzcw==");
    assert_eq!(seen.headers["host"], server.address.to_string().as_str());
}
