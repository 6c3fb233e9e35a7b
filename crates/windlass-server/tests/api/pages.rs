//! Pages of the dashboard: what they show, and to which viewer.

use serde_json::json;
use windlass_core::Scope;
use windlass_server::access::{self, Auth, Mode};

use crate::{
    access::Guarded,
    harness::Api,
    sessions::{log_in, send, with},
};

#[tokio::test]
async fn a_queue_has_its_charts_its_figures_and_its_actions() {
    let api = Api::start().await;
    for kind in ["a", "b"] {
        api.enqueue(json!({"kind": kind, "queue": "mail"})).await;
    }
    let page = api.get("/queues/mail").await;
    let text = page.text();
    for part in
        ["Queue mail", "the oldest ready task has waited", "too little known yet", "Nothing is recorded yet"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.contains("data-url=\"/v1/queues/mail/purge\"") && text.contains("data-dry"), "{text}");
    assert!(text.contains("No live worker handles"), "{text}");
    assert!(text.contains("href=\"/queues/mail?span=24h\""), "{text}");
}

#[tokio::test]
async fn the_span_of_the_charts_is_in_the_address() {
    let api = Api::start().await;
    api.enqueue(json!({"kind": "a"})).await;
    for page in ["/", "/queues/default"] {
        let chosen = |span: &str| format!("href=\"{page}?span={span}\" aria-current=\"true\"");
        assert!(api.get(page).await.text().contains(&chosen("1h")), "{page}");
        let day = api.get(&format!("{page}?span=24h")).await;
        assert!(day.text().contains(&chosen("24h")), "{page}");
        let wrong = api.get(&format!("{page}?span=1w")).await;
        assert!(wrong.status == 400 && wrong.text().contains("span must be 1h or 24h"), "{page}");
    }
}

#[tokio::test]
async fn markup_in_the_name_of_a_queue_is_inert() {
    let api = Api::start().await;
    let name = "\"><img src=x onerror=alert(1)>";
    api.enqueue(json!({"kind": name, "queue": name})).await;
    for path in ["/queues", "/queues/%22%3E%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E"] {
        let page = api.get(path).await;
        assert_eq!(page.status, 200, "{path}");
        assert!(!page.text().contains("<img src=x") && page.text().contains("&lt;img src=x"), "{path}");
    }
}

#[tokio::test]
async fn the_task_list_exports_what_its_filter_leaves() {
    let api = Api::start().await;
    let page = api.get("/tasks?state=dead&kind=a%26b&after=01JD3M8K2ZQ4R").await;
    for format in ["csv", "ndjson"] {
        let link = format!("href=\"/v1/tasks/export?state=dead&amp;kind=a%26b&amp;format={format}\"");
        assert!(page.text().contains(&link), "{link}: {}", page.text());
    }
}

#[tokio::test]
async fn only_an_admin_sees_and_makes_tokens_on_a_page() {
    let server = Guarded::start().await;
    let (admin, read) = (server.token(&[Scope::Admin]).await, server.token(&[Scope::Read]).await);
    let page = server.call_as(&admin, "GET /access").await;
    let id = &read[3..19];
    for part in [id, "Make a token", "data-secret=\"token\"", "Last used here", "not yet"] {
        assert!(page.text().contains(part), "{part}: {}", page.text());
    }
    assert!(!page.text().contains(&read[20..]), "no secret");
    let page = server.call_as(&read, "GET /access").await;
    assert!(page.text().contains("Only a token of scope admin"), "{}", page.text());
    assert!(!page.text().contains("Make a token") && !page.text().contains(&admin[3..19]), "{}", page.text());
}

#[tokio::test]
async fn a_token_says_when_it_was_last_used() {
    let server = Guarded::start().await;
    let (admin, read) = (server.token(&[Scope::Admin]).await, server.token(&[Scope::Read]).await);
    let used = async |id: &str| {
        let tokens = server.call_as(&admin, "GET /v1/tokens").await.json();
        let found =
            tokens["tokens"].as_array().unwrap().iter().find(|token| token["id"] == id).unwrap().clone();
        !found["last_used_at"].is_null()
    };
    assert!(used(&admin[3..19]).await);
    assert!(!used(&read[3..19]).await);
    server.call_as(&read, "GET /v1/queues").await;
    assert!(used(&read[3..19]).await);
}

#[tokio::test]
async fn viewers_with_the_same_rights_see_only_their_own_sessions() {
    let server = Guarded::start().await;
    let api = &server.api;
    let mut browsers = Vec::new();
    for _ in 0..2 {
        let token = server.token(&[Scope::Read]).await;
        let (cookie, view) = log_in(api, &token).await;
        browsers.push((cookie, view["id"].as_str().unwrap().to_owned()));
    }
    for (own, other) in [(0, 1), (1, 0)] {
        let page = send(api, "GET /access", &with(&browsers[own].0), "").await;
        assert!(
            page.text().contains(&browsers[own].1) && page.text().contains("this browser"),
            "{}",
            page.text()
        );
        assert!(!page.text().contains(&browsers[other].1), "{}", page.text());
        let end = format!("data-call=\"DELETE\" data-url=\"/v1/sessions/{}\"", browsers[own].1);
        assert!(page.text().contains(&end), "{}", page.text());
    }
    let admin = server.token(&[Scope::Admin]).await;
    let page = server.call_as(&admin, "GET /access").await;
    assert!(browsers.iter().all(|(_, id)| page.text().contains(id)), "{}", page.text());
}

#[tokio::test]
async fn a_read_only_server_offers_no_change_of_access() {
    let options = access::Options { auth: Auth::Tokens, mode: Mode::ReadOnly, ..access::Options::default() };
    let server = Guarded::with(options).await;
    let admin = server.token(&[Scope::Admin]).await;
    let page = server.call_as(&admin, "GET /access").await;
    for part in ["Make a token", "data-call=\"DELETE\""] {
        assert!(!page.text().contains(part), "{part}: {}", page.text());
    }
}
