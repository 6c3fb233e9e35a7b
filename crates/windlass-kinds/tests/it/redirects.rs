//! Redirects over real connections.

use http::Method;
use serde_json::json;

use crate::support::{Server, answer, call, dead, http, output};

#[tokio::test]
async fn a_chain_is_followed_to_its_end() {
    let server = Server::start(|request| match request.path.as_str() {
        "/start" => answer(301, &[("location", "/folder/next?x=1")], "moved"),
        "/folder/next?x=1" => answer(307, &[("location", "end")], ""),
        "/folder/end" => answer(200, &[], "arrived"),
        other => answer(404, &[], other.to_owned()),
    })
    .await;
    let output = output(call(&http(), &json!({"url": server.url("/start")})).await);
    assert_eq!(output["body"], "arrived");
}

#[tokio::test]
async fn the_method_and_body_survive_307_and_become_a_get_at_303() {
    let server = Server::start(|request| match request.path.as_str() {
        "/307" => answer(307, &[("location", "/303")], ""),
        "/303" => answer(303, &[("location", "/end")], ""),
        _ => answer(200, &[], ""),
    })
    .await;
    output(call(&http(), &json!({"url": server.url("/307"), "method": "POST", "json": 1})).await);
    let seen = server.seen();
    let sent: Vec<_> = seen.iter().map(|r| (r.method.clone(), r.body.clone())).collect();
    assert_eq!(sent, [(Method::POST, "1".into()), (Method::POST, "1".into()), (Method::GET, "".into())]);
    assert!(!seen[2].headers.contains_key("content-type"));
    assert_eq!(seen[2].headers["idempotency-key"], seen[0].headers["idempotency-key"]);
}

#[tokio::test]
async fn a_loop_ends_after_max_redirects() {
    let server = Server::start(|_| answer(302, &[("location", "/again")], "")).await;
    let http = http();
    for (granted, requests) in [(json!(null), 6), (json!(0), 1), (json!(2), 3)] {
        let before = server.seen().len();
        let reason = dead(call(&http, &json!({"url": server.url("/"), "max_redirects": granted})).await);
        assert!(reason.contains("302 Found") && reason.contains("max_redirects"), "{reason}");
        assert_eq!(server.seen().len() - before, requests);
    }
}

#[tokio::test]
async fn secrets_do_not_follow_to_another_origin() {
    let other = Server::start(|_| answer(200, &[], "")).await;
    let location = other.url("/");
    let server = Server::start(move |request| match request.path.as_str() {
        "/" => answer(302, &[("location", "/same")], ""),
        _ => answer(302, &[("location", &location)], ""),
    })
    .await;
    let payload = json!({
        "url": server.url("/").replace("http://", "http://me:pw@"),
        "headers": {"cookie": "c", "X-API-Key": "k", "x-plain": "p"},
    });
    output(call(&http(), &payload).await);
    for request in server.seen() {
        assert_eq!(request.headers["authorization"], "Basic bWU6cHc=");
        assert_eq!(
            (&request.headers["cookie"], &request.headers["x-api-key"]),
            (&"c".parse().unwrap(), &"k".parse().unwrap())
        );
    }
    let elsewhere = other.seen().remove(0).headers;
    for secret in ["authorization", "cookie", "x-api-key"] {
        assert!(!elsewhere.contains_key(secret), "{secret}");
    }
    assert_eq!(elsewhere["x-plain"], "p");
}

#[tokio::test]
async fn a_redirect_to_another_scheme_is_dead() {
    for location in ["ftp://example.com/", "file:///etc/passwd", "http://", "gopher:x"] {
        let server = Server::start(move |_| answer(301, &[("location", location)], "")).await;
        let reason = dead(call(&http(), &json!({"url": server.url("/")})).await);
        assert!(reason.contains("301"), "{location}: {reason}");
    }
}
