//! S2, S5: who may call what.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use windlass_conformance::MemoryStore;
use windlass_core::{Name, Rules, Scope, Scopes, Store, time::ManualClock};
use windlass_server::{
    Operations,
    access::{self, Auth, CALLS, Mode, REMEMBERED},
    api::TokenRequest,
    http::Options,
};

use crate::harness::{Answer, Api};

/// A server that accepts only tokens; the test creates them itself.
pub struct Guarded {
    pub api: Api,
    pub operations: Operations,
}

impl Guarded {
    pub async fn start() -> Self {
        Self::with(access::Options { auth: Auth::Tokens, ..access::Options::default() }).await
    }

    pub async fn with(access: access::Options) -> Self {
        let clock = Arc::new(ManualClock::new("2027-01-31T09:30:00Z".parse().unwrap()));
        let store = Arc::new(MemoryStore::new(clock.clone(), Rules::default()));
        let operations = Operations::new(store.clone());
        let options = Options { access, ..Options::default() };
        let api = Api::around(store, clock, operations.clone(), options).await;
        Self { api, operations }
    }

    /// Another server on the same store.
    pub async fn again(&self) -> Api {
        let (store, clock) = (self.api.store.clone(), self.api.clock.clone());
        let access = access::Options { auth: Auth::Tokens, ..access::Options::default() };
        let options = Options { access, ..Options::default() };
        Api::around(store.clone(), clock, Operations::new(store), options).await
    }

    /// A token with these scopes.
    pub async fn token(&self, scopes: &[Scope]) -> String {
        let scopes = scopes.iter().map(ToString::to_string).collect();
        self.operations.create_token(TokenRequest { scopes, ..TokenRequest::default() }).await.unwrap().token
    }

    /// Makes a call with these headers. The body is an empty object, if the method may have a body.
    pub async fn call(&self, call: &str, headers: &str) -> Answer {
        let (method, path) = call.split_once(' ').unwrap();
        let body = if matches!(method, "POST" | "PUT") { "{}" } else { "" };
        let kind = if body.is_empty() { "" } else { "content-type: application/json\r\n" };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\norigin: http://localhost\r\n{kind}{headers}content-length: {}\r\nconnection: close",
            body.len()
        );
        self.api.raw(&head, body.as_bytes()).await
    }

    pub async fn call_as(&self, token: &str, call: &str) -> Answer {
        self.call(call, &format!("authorization: Bearer {token}\r\n")).await
    }
}

/// The call with a value for each parameter.
fn filled(call: &str) -> String {
    call.replace("{id}", "no-such-thing").replace("{name}", "no-such-thing")
}

#[tokio::test]
async fn every_http_call_is_open_to_exactly_its_scope() {
    let server = Guarded::start().await;
    let mut tokens = Vec::new();
    for scope in Scope::ALL {
        tokens.push((scope, server.token(&[scope]).await));
    }
    for call in CALLS.iter().filter(|call| call.name.contains(' ')) {
        let path = filled(call.name);
        let refused = |answer: &Answer| matches!(answer.status, 401 | 403);
        let unknown = server.call(&path, "").await;
        assert_eq!(unknown.status == 401, call.scope.is_some(), "{path} without a token: {}", unknown.status);
        assert_eq!(refused(&unknown), call.scope.is_some(), "{path}");
        for (held, token) in &tokens {
            let answer = server.call_as(token, &path).await;
            let may = call.scope.is_none_or(|scope| scope == *held || *held == Scope::Admin);
            assert_eq!(refused(&answer), !may, "{held} for {path}: {} {}", answer.status, answer.text());
            if !may {
                let (code, message) = answer.error(403);
                let scope = call.scope.unwrap();
                assert_eq!(code, "forbidden");
                assert!(message.starts_with(&format!("this needs the scope {scope}; token ")), "{message}");
                assert!(message.ends_with(&format!("has {held}")), "{message}");
            }
        }
    }
}

#[tokio::test]
async fn a_refusal_says_exactly_what_to_do() {
    let server = Guarded::start().await;
    let answer = server.call("GET /v1/tasks", "").await;
    assert_eq!(answer.error(401), ("unauthorized".into(), "this server requires a token".into()));
    assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    for word in ["windlass token create", "WINDLASS_TOKEN", "--token-file", "Authorization: Bearer"] {
        assert!(answer.hint().contains(word), "{}", answer.hint());
    }
    let token = server.token(&[Scope::Read]).await;
    let answer = server.call_as(&token, "POST /v1/tasks").await;
    assert_eq!(answer.error(403).0, "forbidden");
    assert_eq!(answer.hint(), "use a token made with `windlass token create --scope enqueue`");
    assert!(!answer.text().contains(&token));
}

#[tokio::test]
async fn a_wrong_token_is_refused_and_not_quoted() {
    let server = Guarded::start().await;
    let good = server.token(&[Scope::Admin]).await;
    let other = server.token(&[Scope::Admin]).await;
    let forged = format!("{}{}", &good[..20], &other[20..]);
    for value in [
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        good.clone(),
        format!("Basic {good}"),
        "Bearer wl_0123456789abcdef_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA".to_owned(),
        format!("Bearer {forged}"),
        format!("Bearer {good}x"),
        format!("Bearer {}", "x".repeat(10_000)),
    ] {
        let answer = server.call("GET /v1/tasks", &format!("authorization: {value}\r\n")).await;
        assert_eq!(answer.error(401).0, "unauthorized", "{value}");
        assert!(!answer.text().contains(&good[20..]) && !answer.text().contains(&other[20..]));
    }
    let twice = format!("authorization: Bearer {good}\r\nauthorization: Bearer {good}\r\n");
    assert_eq!(server.call("GET /v1/tasks", &twice).await.status, 401);
    assert_eq!(server.call_as(&good, "GET /v1/tasks").await.status, 200);
    let lower = format!("authorization: bearer {good}\r\n");
    assert_eq!(server.call("GET /v1/tasks", &lower).await.status, 200);
}

#[tokio::test]
async fn two_tokens_live_at_once_and_the_old_one_ends_alone() {
    let server = Guarded::start().await;
    let (old, new) = (server.token(&[Scope::Admin]).await, server.token(&[Scope::Admin]).await);
    assert_eq!(server.call_as(&old, "GET /v1/tasks").await.status, 200);
    assert_eq!(server.call_as(&new, "GET /v1/tasks").await.status, 200);
    let id = &old[3..19];
    let revoked = server.call_as(&new, &format!("DELETE /v1/tokens/{id}")).await;
    assert_eq!((revoked.status, revoked.json()), (200, json!({"id": id})));
    assert_eq!(server.call_as(&old, "GET /v1/tasks").await.status, 401, "at once, through this server");
    assert_eq!(server.call_as(&new, "GET /v1/tasks").await.status, 200);
    assert_eq!(server.call_as(&new, &format!("DELETE /v1/tokens/{id}")).await.status, 404);
}

#[tokio::test]
async fn a_token_is_shown_once_and_listed_without_its_secret() {
    let server = Guarded::start().await;
    let admin = server.token(&[Scope::Admin]).await;
    let body = r#"{"scopes":["enqueue","read"],"name":"ci","expires_in_ms":60000}"#;
    let head = format!(
        "POST /v1/tokens HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {admin}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\nconnection: close",
        body.len()
    );
    let made = server.api.raw(&head, body.as_bytes()).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let token = made.json()["token"].as_str().unwrap().to_owned();
    assert_eq!(server.call_as(&token, "GET /v1/tasks").await.status, 200);
    let listed = server.call_as(&admin, "GET /v1/tokens").await;
    let tokens = listed.json();
    let found = tokens["tokens"].as_array().unwrap().iter().find(|token| token["name"] == "ci").unwrap();
    assert_eq!(found["scopes"], json!(["enqueue", "read"]));
    assert_eq!(found["expires_at"], "2027-01-31T09:31:00.000Z");
    assert!(!listed.text().contains(&token[20..]) && !listed.text().contains("hash"));
    for body in [r#"{"scopes":[]}"#, r#"{"scopes":["root"]}"#, r#"{"scopes":["read"],"expires_in_ms":0}"#] {
        let request = serde_json::from_str(body).unwrap();
        assert!(server.operations.create_token(request).await.is_err(), "{body}");
    }
}

#[tokio::test]
async fn an_open_server_still_holds_a_token_to_its_scopes() {
    let server = Guarded::with(access::Options::default()).await;
    assert_eq!(server.call("GET /v1/tasks", "").await.status, 200);
    assert_eq!(server.call("POST /v1/queues/q/pause", "").await.status, 200);
    let token = server.token(&[Scope::Read]).await;
    assert_eq!(server.call_as(&token, "GET /v1/tasks").await.status, 200);
    assert_eq!(server.call_as(&token, "POST /v1/queues/q/pause").await.status, 403);
    assert_eq!(server.call_as("wrong", "GET /v1/tasks").await.status, 401);
}

#[tokio::test]
async fn a_read_only_server_refuses_every_change() {
    for auth in [Auth::Open, Auth::Tokens] {
        let options = access::Options { auth, mode: Mode::ReadOnly, ..access::Options::default() };
        let server = Guarded::with(options).await;
        let admin = server.token(&[Scope::Admin]).await;
        for call in CALLS.iter().filter(|call| call.name.contains(' ')) {
            let answer = server.call_as(&admin, &filled(call.name)).await;
            let changes = call.destructive || call.scope == Some(Scope::Enqueue);
            if changes {
                assert_eq!(answer.error(403).1, "this server is read-only", "{}", call.name);
            } else {
                assert_ne!(answer.status, 403, "{}", call.name);
            }
        }
        let store: &dyn Store = &*server.api.store;
        assert_eq!(store.tokens().list().await.unwrap().len(), 1);
        assert_eq!(store.paused_queues().await.unwrap(), []);
    }
}

/// A call without a connection, so that a test can make many.
fn shown(headers: &http::HeaderMap) -> access::Shown<'_> {
    access::Shown { auth: Auth::Tokens, headers, path: "/", certificate: None, session: None }
}

fn bearer(token: &str) -> http::HeaderMap {
    let mut headers = http::HeaderMap::new();
    headers.insert("authorization", format!("Bearer {token}").parse().unwrap());
    headers
}

pub fn of(name: &str) -> &'static access::Call {
    access::Call::named(name).unwrap()
}

pub fn decider(options: access::Options) -> (Arc<MemoryStore>, Arc<ManualClock>, Operations, access::Access) {
    let clock = Arc::new(ManualClock::new("2027-01-31T09:30:00Z".parse().unwrap()));
    let store = Arc::new(MemoryStore::new(clock.clone(), Rules::default()));
    let operations = Operations::new(store.clone());
    let access = access::Access::new(Some(store.clone()), options);
    (store, clock, operations, access)
}

pub const TOKENS: access::Options = access::Options {
    auth: Auth::Tokens,
    mode: Mode::Whole,
    rate_per_s: 0,
    certificate_scopes: Scopes::NONE,
};

#[tokio::test(start_paused = true)]
async fn a_token_revoked_elsewhere_or_expired_stops_in_time() {
    let (store, clock, operations, access) = decider(TOKENS);
    let list = of("GET /v1/tasks");
    let request = |expires_in_ms| TokenRequest {
        scopes: vec!["read".into()],
        expires_in_ms,
        ..TokenRequest::default()
    };
    let revoked = operations.create_token(request(None)).await.unwrap();
    let expired = operations.create_token(request(Some(60_000))).await.unwrap();
    let (revoked_head, expired_head) = (bearer(&revoked.token), bearer(&expired.token));
    access.admit(list, shown(&revoked_head)).await.unwrap();
    access.admit(list, shown(&expired_head)).await.unwrap();
    assert!(store.tokens().remove(&revoked.view.id).await.unwrap(), "as another process would");
    clock.advance(Duration::from_mins(1));
    tokio::time::advance(REMEMBERED).await;
    let message = |error: windlass_server::api::ErrorDetail| error.message;
    let refused = access.admit(list, shown(&revoked_head)).await.map_err(message);
    assert_eq!(refused, Err("the token is not known here, or was revoked".to_owned()));
    let refused = access.admit(list, shown(&expired_head)).await.map_err(message);
    assert_eq!(refused, Err(format!("the token {} has expired", expired.view.id)));
}

#[tokio::test(start_paused = true)]
async fn a_rate_limit_counts_each_caller_alone() {
    let (_, _, operations, access) = decider(access::Options { rate_per_s: 10, ..TOKENS });
    let request = || TokenRequest { scopes: vec!["read".into()], ..TokenRequest::default() };
    let busy = bearer(&operations.create_token(request()).await.unwrap().token);
    let calm = bearer(&operations.create_token(request()).await.unwrap().token);
    let list = of("GET /v1/tasks");
    for _ in 0..10 {
        access.admit(list, shown(&busy)).await.unwrap();
    }
    let refused = access.admit(list, shown(&busy)).await.unwrap_err();
    assert!(refused.message.ends_with("makes more than 10 calls each second"), "{refused}");
    assert!(refused.code.is_retryable());
    access.admit(list, shown(&calm)).await.unwrap();
    access.admit(of("GET /healthz"), shown(&busy)).await.unwrap();
    tokio::time::advance(Duration::from_millis(100)).await;
    access.admit(list, shown(&busy)).await.unwrap();
    access.admit(list, shown(&busy)).await.unwrap_err();
}

#[tokio::test]
async fn too_many_calls_are_429_with_the_time_to_wait() {
    let server = Guarded::with(access::Options { rate_per_s: 1, ..TOKENS }).await;
    let token = server.token(&[Scope::Read]).await;
    let mut refused = None;
    // A call may take longer than the bucket needs to refill, but not each of a hundred.
    for _ in 0..100 {
        let answer = server.call_as(&token, "GET /v1/queues").await;
        if answer.status == 429 {
            refused = Some(answer);
            break;
        }
    }
    let answer = refused.expect("one of a hundred calls is too many");
    assert_eq!(answer.error(429).0, "rate_limited");
    assert_eq!(answer.header("retry-after"), Some("1"));
}

#[tokio::test(start_paused = true)]
async fn guessed_ids_cost_few_look_ups_and_good_tokens_still_work() {
    let (_, _, operations, access) = decider(TOKENS);
    let request = TokenRequest { scopes: vec!["read".into()], ..TokenRequest::default() };
    let good = bearer(&operations.create_token(request).await.unwrap().token);
    let list = of("GET /v1/tasks");
    access.admit(list, shown(&good)).await.unwrap();
    let mut limited = 0;
    for n in 0..1_000 {
        let guess = bearer(&format!("wl_{n:016x}_{}", "A".repeat(43)));
        let refused = access.admit(list, shown(&guess)).await.unwrap_err();
        limited += u32::from(refused.message == "too many unknown tokens at once");
    }
    assert_eq!(limited, 900);
    access.admit(list, shown(&good)).await.unwrap();
}

#[tokio::test]
async fn a_certificate_has_the_scopes_that_the_server_sets() {
    let options = access::Options { certificate_scopes: Scopes::of([Scope::Read]), ..TOKENS };
    let (_, _, _, access) = decider(options);
    let certificate = access::Certificate { fingerprint: "ab12".into() };
    let headers = http::HeaderMap::new();
    let shown = access::Shown {
        auth: Auth::Tokens,
        headers: &headers,
        path: "/",
        certificate: Some(&certificate),
        session: None,
    };
    let caller = access.admit(of("GET /v1/tasks"), shown).await.unwrap();
    assert_eq!(caller.to_string(), "certificate ab12");
    let refused = access.admit(of("POST /v1/tasks"), shown).await.unwrap_err();
    assert_eq!(refused.message, "this needs the scope enqueue; certificate ab12 has read");
}

#[tokio::test]
async fn a_guarded_page_leads_to_the_login() {
    let open = Guarded::with(access::Options::default()).await.call("GET /", "").await;
    assert_eq!(open.status, 200, "{}", open.text());
    let guarded = Guarded::start().await.call("GET /", "").await;
    assert_eq!(guarded.status, 303, "{}", guarded.text());
    assert_eq!(guarded.header("location"), Some("/login?next=%2F"));
    assert!(guarded.text().is_empty(), "{}", guarded.text());
}

#[tokio::test]
async fn a_token_is_revoked_by_a_name_that_only_one_has() {
    let server = Guarded::start().await;
    let make = |name: &str| TokenRequest {
        scopes: vec!["read".into()],
        name: Some(Name::new("name", name).unwrap()),
        ..TokenRequest::default()
    };
    for name in ["ci", "ci", "laptop"] {
        server.operations.create_token(make(name)).await.unwrap();
    }
    let refused = server.operations.revoke_token("ci").await.unwrap_err();
    assert_eq!(refused.message, "more than one token is called ci");
    assert_eq!(server.operations.revoke_token("laptop").await.unwrap().name.unwrap().as_str(), "laptop");
    assert!(server.operations.revoke_token("laptop").await.is_err());
}
