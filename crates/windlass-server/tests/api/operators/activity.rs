//! The last calls that changed something, the same on every server of a fleet.

use serde_json::{Value, json};
use windlass_core::{Scope, Store};

use crate::{access::Guarded, harness::Api};

fn abouts(activity: &Value) -> Vec<String> {
    let calls = activity["calls"].as_array().unwrap();
    calls.iter().map(|call| call["about"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn calls_that_changed_something_are_listed_newest_first() {
    let server = Guarded::start().await;
    let admin = server.token(&[Scope::Admin]).await;
    server.call_as(&admin, "POST /v1/queues/mail/pause").await;
    server.call_as(&admin, "GET /v1/queues").await;
    server.call_as(&admin, "POST /v1/queues/mail/resume").await;
    let activity = server.call_as(&admin, "GET /v1/activity").await.json();
    assert_eq!(abouts(&activity), ["/v1/queues/mail/resume", "/v1/queues/mail/pause"]);
    let newest = &activity["calls"][0];
    assert_eq!(newest["who"], format!("token {}", &admin[3..19]));
    assert_eq!(
        (&newest["call"], &newest["result"]),
        (&json!("POST /v1/queues/{name}/resume"), &json!("done"))
    );
    let page = server.call_as(&admin, "GET /v1/activity?limit=1").await.json();
    let next = page["next"].as_u64().unwrap();
    let rest = server.call_as(&admin, &format!("GET /v1/activity?after={next}")).await.json();
    assert_eq!((abouts(&rest), rest.get("next")), (vec!["/v1/queues/mail/pause".to_owned()], None));
    server.call_as(&admin, "GET /v1/activity?limit=0").await.error(400);
}

#[tokio::test]
async fn every_server_of_a_fleet_shows_the_same_activity() {
    let server = Guarded::start().await;
    let admin = server.token(&[Scope::Admin]).await;
    server.call_as(&admin, "POST /v1/queues/mail/pause").await;
    let here = server.call_as(&admin, "GET /v1/activity").await.json();
    let other = server.again().await;
    let head = format!(
        "GET /v1/activity HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {admin}\r\nconnection: close"
    );
    assert_eq!(other.raw(&head, b"").await.json(), here);
}

#[tokio::test]
async fn a_call_that_changed_nothing_is_not_in_the_activity() {
    let server = Guarded::start().await;
    let (admin, read) = (server.token(&[Scope::Admin]).await, server.token(&[Scope::Read]).await);
    server.call_as(&read, "POST /v1/queues/mail/pause").await.error(403);
    server.call_as(&admin, "POST /v1/workflows/none/skip").await.error(404);
    server.call_as(&read, "DELETE /v1/sessions/none").await.error(404);
    server.call("POST /v1/queues/mail/pause", "").await.error(401);
    assert_eq!(server.call_as(&admin, "GET /v1/activity").await.json(), json!({"calls": []}));
}

#[tokio::test]
async fn a_dry_run_is_not_in_the_activity_and_a_run_names_itself() {
    let api = Api::start().await;
    for body in [r#"{"action":"retry","dry_run":true}"#, r#"{"action":"retry"}"#] {
        assert!(api.post("/v1/runs", body).await.status < 300);
    }
    api.post("/v1/tasks/retry", r#"{"dry_run":true}"#).await;
    api.post("/v1/tasks/retry", "{}").await;
    let activity = api.get("/v1/activity").await.json();
    assert_eq!(abouts(&activity), ["/v1/tasks/retry", "/v1/runs/1"]);
    assert_eq!(activity["calls"][1]["who"], "anybody");
}

#[tokio::test]
async fn the_last_calls_are_written_before_a_server_ends() {
    let mut api = Api::start().await;
    api.post_nothing("/v1/queues/mail/pause").await;
    let store = api.store.clone();
    api.stop();
    api.ended().await;
    let calls = store.operators().calls(None, 10).await.unwrap();
    assert_eq!(calls.len(), 1, "{calls:?}");
}
