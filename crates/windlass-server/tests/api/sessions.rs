//! Sessions of browsers: what a cookie allows, from which pages, and when it ends.

use std::time::Duration;

use http::Request;
use http_body_util::Full;
use serde_json::{Value, json};
use tonic::{Code, Status, body::Body};
use tower_service::Service;
use windlass_core::{Scope, Store, session::SESSION_TTL};
use windlass_server::{
    access::{self, Auth, Mode, REMEMBERED},
    api::TokenRequest,
};

use crate::{
    access::{Guarded, TOKENS, decider, of},
    harness::{Answer, Api},
    wire::Wire,
};

/// What a page of this server sends with a change.
pub const PAGE: &str =
    "origin: http://localhost\r\nsec-fetch-site: same-origin\r\ncontent-type: application/json\r\n";

/// Sends a request with exactly these headers.
pub async fn send(api: &Api, call: &str, headers: &str, body: &str) -> Answer {
    let (method, path) = call.split_once(' ').unwrap();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\n{headers}content-length: {}\r\nconnection: close",
        body.len()
    );
    api.raw(&head, body.as_bytes()).await
}

/// Logs in; returns the cookie as a browser sends it, and the answer.
pub async fn log_in(api: &Api, token: &str) -> (String, Value) {
    let answer = send(api, "POST /v1/login", PAGE, &json!({"token": token}).to_string()).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    (cookie(&answer), answer.json())
}

/// The name and value of the cookie that an answer sets.
fn cookie(answer: &Answer) -> String {
    answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
}

pub fn with(cookie: &str) -> String {
    format!("cookie: {cookie}\r\n")
}

/// Reads with a cookie.
async fn look(api: &Api, cookie: &str) -> Answer {
    send(api, "GET /v1/queues", &with(cookie), "").await
}

/// Changes something with a cookie and these headers.
async fn change(api: &Api, cookie: &str, headers: &str) -> Answer {
    send(api, "POST /v1/queues/mail/pause", &format!("{}{headers}", with(cookie)), "{}").await
}

#[tokio::test]
async fn a_session_may_do_what_its_token_may() {
    let server = Guarded::start().await;
    let api = &server.api;
    for (scope, queues, expected) in [
        (Scope::Read, "GET /v1/queues", [200, 403]),
        (Scope::Admin, "GET /v1/queues", [200, 200]),
        (Scope::Enqueue, "GET /v1/queues", [403, 403]),
    ] {
        let token = server.token(&[scope]).await;
        let (cookie, view) = log_in(api, &token).await;
        assert_eq!((&view["scopes"], &view["current"]), (&json!([scope.as_str()]), &json!(true)));
        assert_eq!(send(api, queues, &with(&cookie), "").await.status, expected[0], "{scope}");
        assert_eq!(change(api, &cookie, PAGE).await.status, expected[1], "{scope}");
    }
    let request = TokenRequest {
        scopes: vec!["enqueue".into()],
        queues: vec![windlass_core::Name::new("queue", "mail").unwrap()],
        ..TokenRequest::default()
    };
    let bound = server.operations.create_token(request).await.unwrap().token;
    let (cookie, view) = log_in(api, &bound).await;
    assert_eq!(view["queues"], json!(["mail"]));
    let headers = format!("{}{PAGE}", with(&cookie));
    let other = send(api, "POST /v1/tasks", &headers, r#"{"kind":"a","queue":"other"}"#).await;
    assert_eq!(other.status, 403, "{}", other.text());
    assert_eq!(send(api, "POST /v1/tasks", &headers, r#"{"kind":"a","queue":"mail"}"#).await.status, 201);
}

#[tokio::test]
async fn the_cookie_is_out_of_reach_of_scripts_and_other_sites() {
    let server = Guarded::start().await;
    let token = server.token(&[Scope::Read]).await;
    let answer = send(&server.api, "POST /v1/login", PAGE, &json!({"token": token}).to_string()).await;
    let set = answer.header("set-cookie").unwrap();
    let (name, rest) = set.split_once('=').unwrap();
    assert_eq!(name, format!("windlass-{}", server.api.address.port()));
    let (secret, attributes) = rest.split_once(';').unwrap();
    assert_eq!(attributes, " Max-Age=43200; Path=/; HttpOnly; SameSite=Strict");
    assert_eq!((secret.len(), &secret[..3]), (63, "ws_"));
    assert!(!answer.text().contains(&secret[20..]) && !secret.contains(&token[20..]));
    let listed = server.api.store.tokens().sessions().list(None, 10).await.unwrap();
    assert_eq!(format!("{:?}", listed[0].hash), "…");
}

/// Every combination of the headers by which a change may give itself away.
#[tokio::test]
async fn a_change_needs_a_page_of_the_same_origin() {
    let server = Guarded::start().await;
    let (cookie, _) = log_in(&server.api, &server.token(&[Scope::Admin]).await).await;
    let origins = [
        ("", true),
        ("origin: http://localhost\r\n", true),
        ("origin: http://localhost:3000\r\n", false),
        ("origin: http://evil.example\r\n", false),
        ("origin: null\r\n", false),
        ("origin: localhost\r\n", false),
        ("origin: http://localhost\r\norigin: http://evil.example\r\n", false),
        ("origin: HTTP://LOCALHOST\r\n", true),
    ];
    let sites = [
        ("", true),
        ("sec-fetch-site: same-origin\r\n", true),
        ("sec-fetch-site: same-site\r\n", false),
        ("sec-fetch-site: cross-site\r\n", false),
        ("sec-fetch-site: none\r\n", false),
        ("sec-fetch-site: same-origin\r\nsec-fetch-site: cross-site\r\n", false),
    ];
    let kinds = [
        ("content-type: application/json\r\n", true),
        ("content-type: text/plain\r\n", false),
        ("content-type: application/x-www-form-urlencoded\r\n", false),
        ("", false),
    ];
    for (origin, of_origin) in origins {
        for (site, of_site) in sites {
            for (kind, is_json) in kinds {
                let answer = change(&server.api, &cookie, &format!("{origin}{site}{kind}")).await;
                let is_own = of_origin && of_site && !(origin.is_empty() && site.is_empty());
                let expected = if !is_own {
                    403
                } else if is_json {
                    200
                } else {
                    415
                };
                assert_eq!(answer.status, expected, "{origin:?} {site:?} {kind:?}: {}", answer.text());
            }
        }
    }
    let read = format!("{}sec-fetch-site: none\r\n", with(&cookie));
    assert_eq!(send(&server.api, "GET /v1/queues", &read, "").await.status, 200, "a typed address");
}

#[tokio::test]
async fn a_change_without_a_body_needs_the_same() {
    let server = Guarded::start().await;
    let (cookie, view) = log_in(&server.api, &server.token(&[Scope::Admin]).await).await;
    let call = format!("DELETE /v1/sessions/{}", view["id"].as_str().unwrap());
    for headers in ["", "origin: http://localhost\r\n", "content-type: application/json\r\n"] {
        let answer = send(&server.api, &call, &format!("{}{headers}", with(&cookie)), "").await;
        assert!(matches!(answer.status, 403 | 415), "{headers:?}: {}", answer.status);
    }
    assert_eq!(look(&server.api, &cookie).await.status, 200);
    let headers = format!("{}{PAGE}", with(&cookie));
    assert_eq!(send(&server.api, &call, &headers, "").await.status, 200);
    assert_eq!(look(&server.api, &cookie).await.status, 401);
}

#[tokio::test]
async fn a_login_needs_a_page_of_the_same_origin() {
    let server = Guarded::start().await;
    let body = json!({"token": server.token(&[Scope::Read]).await}).to_string();
    for (headers, expected) in [
        ("content-type: application/json\r\n", 403),
        ("origin: http://evil.example\r\ncontent-type: application/json\r\n", 403),
        ("sec-fetch-site: cross-site\r\ncontent-type: application/json\r\n", 403),
        ("origin: http://localhost\r\ncontent-type: text/plain\r\n", 415),
        ("origin: http://localhost\r\ncontent-type: application/json\r\n", 200),
    ] {
        let answer = send(&server.api, "POST /v1/login", headers, &body).await;
        assert_eq!(answer.status, expected, "{headers:?}");
        assert_eq!(answer.header("set-cookie").is_some(), expected == 200, "{headers:?}");
    }
}

#[tokio::test]
async fn a_wrong_token_starts_no_session() {
    let server = Guarded::start().await;
    let good = server.token(&[Scope::Admin]).await;
    let other = server.token(&[Scope::Admin]).await;
    let forged = format!("{}{}", &good[..20], &other[20..]);
    for token in [forged, format!("{good}x"), "x".to_owned(), good[1..].to_owned()] {
        let answer = send(&server.api, "POST /v1/login", PAGE, &json!({"token": token}).to_string()).await;
        assert_eq!(answer.error(401).1, "the token is not known here, or was revoked");
        assert!(
            answer.header("set-cookie").is_none() && !answer.text().contains(&token[..token.len().min(9)])
        );
    }
    for body in ["{}", r#"{"token":""}"#, r#"{"token":5}"#, "[]", r#"{"token":"a","x":1}"#] {
        assert_eq!(send(&server.api, "POST /v1/login", PAGE, body).await.status, 400, "{body}");
    }
    assert_eq!(server.api.store.tokens().sessions().list(None, 10).await, Ok(vec![]));
}

/// A call with a cookie, without a connection.
fn shown<'a>(headers: &'a http::HeaderMap, text: &'a str) -> access::Shown<'a> {
    access::Shown { auth: Auth::Tokens, headers, path: "/", certificate: None, session: Some(text) }
}

#[tokio::test(start_paused = true)]
async fn guesses_are_limited_as_those_of_bearers_are() {
    let (_, _, operations, access) = decider(TOKENS);
    let good = operations.create_token(reading(None)).await.unwrap().token;
    let session = access.log_in(&good).await.unwrap().secret;
    let headers = http::HeaderMap::new();
    let guess = |prefix: &str, n: u32| format!("{prefix}_{n:016x}_{}", "A".repeat(43));
    let list = of("GET /v1/tasks");
    let (mut logins, mut sessions) = (0, 0);
    for n in 0..1_000 {
        let login = access.log_in(&guess("wl", n)).await.unwrap_err();
        logins += u32::from(login.message == "too many unknown tokens at once");
        let text = guess("ws", n);
        let refused = access.admit(list, shown(&headers, &text)).await.unwrap_err();
        sessions += u32::from(refused.message == "too many unknown sessions at once");
    }
    assert_eq!((logins, sessions), (900, 900));
    access.admit(list, shown(&headers, &session)).await.unwrap();
    access.log_in(&good).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn guesses_do_not_shut_out_real_sessions() {
    let (store, clock, operations, access) = decider(TOKENS);
    let token = operations.create_token(reading(None)).await.unwrap().token;
    let known = access.log_in(&token).await.unwrap().secret;
    let headers = http::HeaderMap::new();
    let list = of("GET /v1/tasks");
    let mut guesses = (0..).map(|n: u32| format!("ws_{n:016x}_{}", "A".repeat(43)));
    let other_server = access::Access::new(Some(store.clone()), TOKENS);
    for _ in 0..20 {
        for guess in guesses.by_ref().take(200) {
            access.admit(list, shown(&headers, &guess)).await.unwrap_err();
        }
        access.admit(list, shown(&headers, &known)).await.unwrap();
        let new = other_server.log_in(&token).await.unwrap().secret;
        clock.advance(Duration::from_secs(1));
        tokio::time::advance(Duration::from_secs(1)).await;
        for guess in guesses.by_ref().take(200) {
            access.admit(list, shown(&headers, &guess)).await.unwrap_err();
        }
        access.admit(list, shown(&headers, &new)).await.unwrap();
    }
}

#[tokio::test]
async fn guesses_do_not_shut_out_a_login() {
    let server = Guarded::start().await;
    let body = json!({"token": server.token(&[Scope::Read]).await}).to_string();
    let name = format!("windlass-{}", server.api.address.port());
    let guess = |n: u32| format!("cookie: {name}=ws_{n:016x}_{}\r\n", "A".repeat(43));
    let mut requests = String::new();
    for n in 0..400 {
        requests.extend(["GET /v1/queues HTTP/1.1\r\nhost: localhost\r\n", &guess(n), "\r\n"]);
    }
    let login = format!(
        "POST /v1/login HTTP/1.1\r\nhost: localhost\r\n{}{PAGE}content-length: {}\r\nconnection: close\r\n\r\n{body}",
        guess(400),
        body.len()
    );
    requests.push_str(&login);
    let mut connection = server.api.connect().await;
    connection.send(requests.as_bytes()).await;
    let answers = String::from_utf8(connection.rest().await).unwrap();
    let statuses: Vec<_> = answers.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect();
    assert_eq!(statuses.len(), 401);
    assert!(statuses.contains(&"429"));
    assert_eq!(statuses.last(), Some(&"200"));
}

#[tokio::test(start_paused = true)]
async fn logins_and_sessions_share_the_rate_of_their_token() {
    let (_, _, operations, access) = decider(access::Options { rate_per_s: 3, ..TOKENS });
    let token = operations.create_token(reading(None)).await.unwrap().token;
    let headers = http::HeaderMap::new();
    let first = access.log_in(&token).await.unwrap().secret;
    let second = access.log_in(&token).await.unwrap().secret;
    access.admit(of("GET /v1/tasks"), shown(&headers, &first)).await.unwrap();
    access.admit(of("GET /v1/tasks"), shown(&headers, &second)).await.unwrap_err();
    access.log_in(&token).await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn a_session_that_another_server_ended_stops_in_time() {
    let (store, _, operations, access) = decider(TOKENS);
    let token = operations.create_token(reading(None)).await.unwrap();
    let login = access.log_in(&token.token).await.unwrap();
    let headers = http::HeaderMap::new();
    let shown = shown(&headers, &login.secret);
    access.admit(of("GET /v1/tasks"), shown).await.unwrap();
    assert_eq!(store.tokens().sessions().end(&login.record.id).await, Ok(true), "as another server would");
    tokio::time::advance(REMEMBERED).await;
    access.admit(of("GET /v1/tasks"), shown).await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn the_use_of_a_session_is_recorded_now_and_then() {
    let (store, clock, operations, access) = decider(TOKENS);
    let token = operations.create_token(reading(None)).await.unwrap();
    let login = access.log_in(&token.token).await.unwrap();
    let headers = http::HeaderMap::new();
    let shown = shown(&headers, &login.secret);
    let mut seen = Vec::new();
    for minutes in [1, 4, 1] {
        clock.advance(Duration::from_mins(minutes));
        tokio::time::advance(REMEMBERED).await;
        access.admit(of("GET /v1/tasks"), shown).await.unwrap();
        let found = store.tokens().sessions().find(&login.record.id).await.unwrap().unwrap();
        seen.push(found.seen_at.since(found.created_at).as_secs() / 60);
    }
    assert_eq!(seen, [0, 5, 5]);
}

#[tokio::test]
async fn a_chosen_cookie_is_never_taken_over_by_a_login() {
    let server = Guarded::start().await;
    let api = &server.api;
    let (mine, _) = log_in(api, &server.token(&[Scope::Read]).await).await;
    let admin = json!({"token": server.token(&[Scope::Admin]).await}).to_string();
    let answer = send(api, "POST /v1/login", &format!("{}{PAGE}", with(&mine)), &admin).await;
    let theirs = cookie(&answer);
    assert_ne!(mine, theirs);
    assert_eq!(look(api, &mine).await.status, 401, "the session that the browser came with has ended");
    assert_eq!(change(api, &theirs, PAGE).await.status, 200);
    let name = mine.split('=').next().unwrap();
    let chosen = format!("{name}=ws_0123456789abcdef_{}", "A".repeat(43));
    let answer = send(api, "POST /v1/login", &format!("{}{PAGE}", with(&chosen)), &admin).await;
    assert_ne!(cookie(&answer), chosen);
    assert_eq!(look(api, &chosen).await.status, 401);
}

#[tokio::test]
async fn odd_cookies_are_no_session() {
    let server = Guarded::start().await;
    let api = &server.api;
    let (good, _) = log_in(api, &server.token(&[Scope::Admin]).await).await;
    let (name, text) = good.split_once('=').unwrap();
    let token = server.token(&[Scope::Admin]).await;
    for bad in [
        format!("{good}; {good}"),
        format!("{name}=x; {good}"),
        format!("{good}\r\ncookie: {name}=x"),
        format!("{}={text}", name.to_uppercase()),
        format!("__Host-windlass={text}"),
        format!("{name}={}", text.to_uppercase()),
        format!("{name}={text}x"),
        format!("{name}=\"{text}\""),
        format!("{name}={}", &text[..text.len() - 1]),
        format!("{name}={}A", &text[..text.len() - 1]),
        format!("{name}={token}"),
        format!("{name}="),
        name.to_owned(),
        format!("x{good}"),
    ] {
        // The last letter of the secret may be the one that replaces it.
        if bad != good {
            assert_eq!(look(api, &bad).await.status, 401, "{bad}");
        }
    }
    assert_eq!(look(api, &format!("other=1; {good}; x=\u{e9}")).await.status, 200);
    assert_eq!(look(api, &format!("other={}; {good}", "x".repeat(50_000))).await.status, 200);
    assert_eq!(look(api, &format!("other={}; {good}", "x".repeat(70_000))).await.status, 431);
    let bearer = format!("authorization: Bearer {text}\r\n");
    assert_eq!(send(api, "GET /v1/queues", &bearer, "").await.status, 401, "a session is no token");
}

#[tokio::test]
async fn a_bearer_token_wins_over_the_cookie() {
    let server = Guarded::start().await;
    let api = &server.api;
    let (admin, _) = log_in(api, &server.token(&[Scope::Admin]).await).await;
    let reader = server.token(&[Scope::Read]).await;
    let both = format!("authorization: Bearer {reader}\r\n{PAGE}");
    let answer = change(api, &admin, &both).await;
    assert!(answer.error(403).1.starts_with("this needs the scope admin; token "), "{}", answer.text());
    let wrong = "authorization: Bearer x\r\n";
    assert_eq!(send(api, "GET /v1/queues", &format!("{wrong}{}", with(&admin)), "").await.status, 401);
    let (reading, _) = log_in(api, &reader).await;
    let token = server.token(&[Scope::Admin]).await;
    let headers = format!("authorization: Bearer {token}\r\ncontent-type: application/json\r\n");
    assert_eq!(change(api, &reading, &headers).await.status, 200, "a program needs no origin");
}

#[tokio::test]
async fn a_session_counts_for_no_grpc_call() {
    let server = Guarded::start().await;
    let (cookie, _) = log_in(&server.api, &server.token(&[Scope::Admin]).await).await;
    let (mut wire, _) = Wire::connect(&format!("http://{}", server.api.address)).await;
    for (method, _) in crate::matrix::methods().into_iter().filter(|(name, _)| name.starts_with("windlass."))
    {
        let request = Request::post(format!("http://localhost/{method}"))
            .header("content-type", "application/grpc")
            .header("origin", "http://localhost")
            .header("sec-fetch-site", "same-origin")
            .header("cookie", &cookie);
        let request = request.body(Body::new(Full::from(&[0; 5][..]))).unwrap();
        let told = Status::from_header_map(wire.call(request).await.unwrap().headers()).unwrap();
        assert_eq!(told.code(), Code::Unauthenticated, "{method}");
    }
}

#[tokio::test]
async fn a_session_ends_at_once_with_its_token() {
    let server = Guarded::start().await;
    let api = &server.api;
    let admin = server.token(&[Scope::Admin]).await;
    let made = server.operations.create_token(reading(None)).await.unwrap();
    let (cookie, _) = log_in(api, &made.token).await;
    assert_eq!(look(api, &cookie).await.status, 200);
    let revoked = server.call_as(&admin, &format!("DELETE /v1/tokens/{}", made.view.id)).await;
    assert_eq!(revoked.status, 200);
    assert_eq!(look(api, &cookie).await.error(401).1, "the session has ended, or was never started here");
}

fn reading(expires_in_ms: Option<u64>) -> TokenRequest {
    TokenRequest { scopes: vec!["read".into()], expires_in_ms, ..TokenRequest::default() }
}

#[tokio::test(start_paused = true)]
async fn a_session_ends_when_its_token_expires() {
    let (_, clock, operations, access) = decider(TOKENS);
    let short = operations.create_token(reading(Some(3_000))).await.unwrap();
    let long = operations.create_token(reading(None)).await.unwrap();
    let (short, long) =
        (access.log_in(&short.token).await.unwrap(), access.log_in(&long.token).await.unwrap());
    let headers = http::HeaderMap::new();
    let list = of("GET /v1/tasks");
    access.admit(list, shown(&headers, &short.secret)).await.unwrap();
    access.admit(list, shown(&headers, &long.secret)).await.unwrap();
    let while_short = Duration::from_secs(3);
    assert!(while_short < REMEMBERED, "the server has not forgotten what it heard");
    clock.advance(while_short);
    tokio::time::advance(while_short).await;
    let refused = access.admit(list, shown(&headers, &short.secret)).await.unwrap_err();
    assert_eq!(refused.message, "the session has ended, or was never started here");
    access.admit(list, shown(&headers, &long.secret)).await.unwrap();
    clock.advance(SESSION_TTL);
    tokio::time::advance(SESSION_TTL).await;
    access.admit(list, shown(&headers, &long.secret)).await.unwrap_err();
}

#[tokio::test]
async fn a_cookie_lasts_no_longer_than_its_token() {
    let server = Guarded::start().await;
    let short = server.operations.create_token(reading(Some(60_000))).await.unwrap();
    let body = json!({"token": short.token}).to_string();
    let answer = send(&server.api, "POST /v1/login", PAGE, &body).await;
    assert!(answer.header("set-cookie").unwrap().contains("; Max-Age=60;"));
    assert_eq!(answer.json()["expires_at"], serde_json::to_value(short.view.expires_at).unwrap());
}

#[tokio::test]
async fn a_session_is_the_same_on_every_server_of_a_store() {
    let server = Guarded::start().await;
    let (cookie, view) = log_in(&server.api, &server.token(&[Scope::Admin]).await).await;
    let other = server.again().await;
    let text = cookie.split_once('=').unwrap().1;
    let there = format!("windlass-{}={text}", other.address.port());
    assert_eq!(look(&other, &there).await.status, 200);
    let sessions = send(&other, "GET /v1/sessions", &with(&there), "").await.json();
    assert_eq!(sessions["sessions"][0]["id"], view["id"]);
}

#[tokio::test]
async fn a_logout_ends_the_session_and_takes_the_cookie() {
    let server = Guarded::start().await;
    let api = &server.api;
    let (cookie, _) = log_in(api, &server.token(&[Scope::Read]).await).await;
    let out = |headers: String| async move { send(api, "POST /v1/logout", &headers, "{}").await };
    assert_eq!(out(with(&cookie)).await.status, 403, "not from a page");
    assert_eq!(look(api, &cookie).await.status, 200);
    let answer = out(format!("{}{PAGE}", with(&cookie))).await;
    assert_eq!((answer.status, answer.json()), (200, json!({"ended": true})));
    assert!(answer.header("set-cookie").unwrap().contains("=; Max-Age=0; Path=/; HttpOnly"));
    assert_eq!(look(api, &cookie).await.status, 401);
    assert_eq!(out(format!("{}{PAGE}", with(&cookie))).await.json(), json!({"ended": false}));
}

#[tokio::test]
async fn sessions_are_seen_and_ended_by_their_token_and_by_admin() {
    let server = Guarded::start().await;
    let api = &server.api;
    let (one, two) = (server.token(&[Scope::Read]).await, server.token(&[Scope::Read]).await);
    let admin = server.token(&[Scope::Admin]).await;
    let (cookie, first) = log_in(api, &one).await;
    let (_, second) = log_in(api, &two).await;
    let ids = |answer: Answer| -> Vec<Value> {
        answer.json()["sessions"].as_array().unwrap().iter().map(|session| session["id"].clone()).collect()
    };
    assert_eq!(ids(server.call_as(&one, "GET /v1/sessions").await), [first["id"].clone()]);
    assert_eq!(ids(server.call_as(&admin, "GET /v1/sessions").await).len(), 2);
    let own = send(api, "GET /v1/sessions", &with(&cookie), "").await;
    assert_eq!(own.json()["sessions"][0]["current"], json!(true));
    assert_eq!(ids(own), [first["id"].clone()]);
    let end = |id: &Value| format!("DELETE /v1/sessions/{}", id.as_str().unwrap());
    assert_eq!(server.call_as(&one, &end(&second["id"])).await.status, 404);
    assert_eq!(server.call_as(&two, &end(&second["id"])).await.status, 200);
    assert_eq!(server.call_as(&admin, &end(&first["id"])).await.status, 200);
    assert_eq!(look(api, &cookie).await.status, 401, "at once");
}

#[tokio::test]
async fn a_stale_cookie_does_not_shut_out_a_caller_who_needs_none() {
    let server = Guarded::with(access::Options::default()).await;
    let api = &server.api;
    let name = format!("windlass-{}", api.address.port());
    for text in ["x".to_owned(), format!("ws_0123456789abcdef_{}", "A".repeat(43))] {
        let cookie = format!("{name}={text}");
        assert_eq!(look(api, &cookie).await.status, 200);
        assert_eq!(change(api, &cookie, "content-type: application/json\r\n").await.status, 200);
    }
    let (cookie, _) = log_in(api, &server.token(&[Scope::Read]).await).await;
    assert_eq!(change(api, &cookie, PAGE).await.status, 403, "a session that is valid counts");
}

#[tokio::test]
async fn a_read_only_server_lets_people_log_in_and_out() {
    let options = access::Options { auth: Auth::Tokens, mode: Mode::ReadOnly, ..access::Options::default() };
    let server = Guarded::with(options).await;
    let (cookie, _) = log_in(&server.api, &server.token(&[Scope::Admin]).await).await;
    assert_eq!(look(&server.api, &cookie).await.status, 200);
    assert_eq!(change(&server.api, &cookie, PAGE).await.error(403).1, "this server is read-only");
    let out = send(&server.api, "POST /v1/logout", &format!("{}{PAGE}", with(&cookie)), "{}").await;
    assert_eq!(out.status, 200);
}

#[tokio::test]
async fn a_further_login_ends_the_oldest_session_of_the_token() {
    let server = Guarded::start().await;
    let token = server.token(&[Scope::Read]).await;
    let (first, _) = log_in(&server.api, &token).await;
    for _ in 1..100 {
        server.api.clock.advance(Duration::from_millis(1));
        log_in(&server.api, &token).await;
    }
    let other = server.again().await;
    let text = first.split_once('=').unwrap().1;
    let there = format!("windlass-{}={text}", other.address.port());
    assert_eq!(look(&other, &there).await.status, 200, "a hundred stay");
    server.api.clock.advance(Duration::from_millis(1));
    log_in(&server.api, &token).await;
    let third = server.again().await;
    let there = format!("windlass-{}={text}", third.address.port());
    assert_eq!(look(&third, &there).await.status, 401);
}
