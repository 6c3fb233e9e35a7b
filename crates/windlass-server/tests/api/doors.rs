//! A server without pages, and one whose pages have an address of their own.

use serde_json::json;
use windlass_core::Scope;
use windlass_server::{
    Operations,
    access::{self, Auth, Mode, PAGES},
    api::TokenRequest,
    http::{Options, Routes},
};

use crate::harness::{Answer, Api, Setup};

fn options(routes: Routes, auth: Auth) -> Options {
    Options { routes, access: access::Options { auth, ..access::Options::default() }, ..Options::default() }
}

/// Paths of every page, with a name in place of each parameter.
fn page_paths() -> impl Iterator<Item = String> {
    let paths = PAGES.iter().map(|page| page.name.trim_start_matches("GET ").to_owned());
    paths.filter(|path| path != "/").map(|path| {
        path.replace("{name}", "a b").replace("{id}", "x").replace("{file}", "a.js").replace(' ', "%20")
    })
}

async fn has_no_pages(api: &Api, dashboard: &str) {
    for path in page_paths() {
        let (code, message) = api.get(&path).await.error(404);
        assert_eq!(code, "not_found", "{path}");
        assert!(
            message.ends_with(&format!("the dashboard of this server is {dashboard}")),
            "{path}: {message}"
        );
    }
    let front = api.get("/").await;
    assert_eq!((front.status, &front.json()["dashboard"]), (200, &json!(dashboard)));
    assert_eq!(front.json()["api"], "/v1/openapi.json");
    assert_eq!(api.get("/v1/moon").await.error(404).1, "there is no route \"/v1/moon\"");
}

#[tokio::test]
async fn a_server_without_pages_says_so_and_serves_the_api() {
    for auth in [Auth::Open, Auth::Tokens] {
        let options = options(Routes::WithoutPages, auth);
        let api = Api::with(Setup { options, ..Setup::default() }).await;
        has_no_pages(&api, "off").await;
        let status = if auth == Auth::Open { 200 } else { 401 };
        assert_eq!(api.get("/v1/queues").await.status, status);
        assert_eq!(api.get("/healthz").await.status, 200);
        assert_eq!(api.post("/", "{}").await.status, 404);
    }
}

#[tokio::test]
async fn pages_apart_are_not_on_the_address_of_the_api() {
    let open = |routes| options(routes, Auth::Open);
    let (mut api, pages) = Api::apart(open(Routes::PagesElsewhere), open(Routes::Pages)).await;
    has_no_pages(&api, "at another address").await;
    api.enqueue(json!({"kind": "a"})).await;
    let page = pages.get("/queues").await;
    assert!(page.status == 200 && page.text().contains("default"), "{}", page.text());
    assert_eq!(pages.get("/v1/queues").await.json(), api.get("/v1/queues").await.json());
    assert_eq!(pages.post("/v1/queues/default/pause", "{}").await.status, 200);
    for path in ["/healthz", "/readyz"] {
        assert_eq!((pages.get(path).await.status, api.get(path).await.status), (404, 200), "{path}");
    }
    let grpc = "POST /windlass.v1.Tasks/GetTask HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\
                connection: close\r\ncontent-type: application/grpc";
    assert_eq!(pages.raw(grpc, b"").await.header("grpc-status"), Some("12"), "unimplemented");
    assert_eq!(pages.raw("GET / HTTP/1.1\r\nhost: evil.example", b"").await.status, 403);
    api.stop();
    api.ended().await;
    assert!(tokio::net::TcpStream::connect(pages.address).await.is_err(), "both addresses close");
}

/// A browser at an address: its page's origin, and a cookie.
async fn browse(at: &Api, call: &str, cookie: &str, body: &str) -> Answer {
    let head = format!(
        "{call} HTTP/1.1\r\nhost: {0}\r\norigin: http://{0}\r\n{cookie}content-type: application/json\r\n\
         content-length: {1}\r\nconnection: close",
        at.address,
        body.len()
    );
    at.raw(&head, body.as_bytes()).await
}

#[tokio::test]
async fn a_session_works_at_the_address_of_the_pages() {
    let with = |routes| options(routes, Auth::Tokens);
    let (api, pages) = Api::apart(with(Routes::PagesElsewhere), with(Routes::Pages)).await;
    let request = TokenRequest { scopes: vec![Scope::Admin.as_str().into()], ..TokenRequest::default() };
    let token = Operations::new(api.store.clone()).create_token(request).await.unwrap();
    assert_eq!(pages.get("/queues").await.header("location"), Some("/login?next=%2Fqueues"));
    let login = browse(&pages, "POST /v1/login", "", &json!({"token": token.token}).to_string()).await;
    let cookie = login.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let cookie = format!("cookie: {cookie}\r\n");
    assert_eq!(browse(&pages, "GET /queues", &cookie, "").await.status, 200);
    assert_eq!(browse(&pages, "PUT /v1/jobs/j", &cookie, r#"{"concurrency":2}"#).await.status, 200);
    // A page of one address is a foreign one at the other.
    let head = format!(
        "PUT /v1/jobs/j HTTP/1.1\r\nhost: {}\r\norigin: http://{}\r\n{cookie}content-type: application/json\r\n\
         content-length: 2\r\nconnection: close",
        api.address, pages.address
    );
    assert_eq!(api.raw(&head, b"{}").await.status, 403);
    // A token that is revoked at one address ends at both, at once.
    let bearer = format!(
        "DELETE /v1/tokens/{} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: Bearer {}",
        token.view.id, token.token
    );
    assert_eq!(api.raw(&bearer, b"").await.status, 200);
    assert_eq!(browse(&pages, "GET /v1/queues", &cookie, "").await.status, 401);
}

#[tokio::test]
async fn each_address_asks_for_tokens_by_its_own_rule() {
    let (api, pages) =
        Api::apart(options(Routes::PagesElsewhere, Auth::Open), options(Routes::Pages, Auth::Tokens)).await;
    assert_eq!(api.get("/v1/queues").await.status, 200);
    assert_eq!(pages.get("/v1/queues").await.status, 401);
    assert_eq!(pages.get("/").await.status, 303);
}

#[tokio::test]
async fn a_read_only_server_shows_pages_without_buttons_apart_too() {
    let mode = Mode::ReadOnly;
    let read_only = |routes| Options {
        access: access::Options { mode, ..access::Options::default() },
        ..options(routes, Auth::Open)
    };
    let (_api, pages) = Api::apart(read_only(Routes::PagesElsewhere), read_only(Routes::Pages)).await;
    assert!(pages.get("/queues").await.text().contains("read-only"));
    assert_eq!(pages.post("/v1/queues/default/pause", "{}").await.error(403).1, "this server is read-only");
}
