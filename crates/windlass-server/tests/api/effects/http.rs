//! Every HTTP route.

use windlass_core::Store;
use windlass_server::access::CALLS;

use super::{Bearer, Dump, Scene};

/// The path of a call that names things of other callers, and a body that would change them.
fn hostile(call: &str, scene: &Scene) -> (String, String) {
    let (method, route) = call.split_once(' ').unwrap();
    let dead = scene.dead.to_string();
    let victim = scene.victim.claimed.id.to_string();
    let id = match route {
        // A task that has ended, so that the call returns at once.
        "/v1/tasks/{id}/retry" | "/v1/tasks/{id}/wait" => dead.clone(),
        "/v1/tasks/{id}" if method == "DELETE" => dead.clone(),
        route if route.starts_with("/v1/tasks/") => victim,
        route if route.starts_with("/v1/sessions/") => scene.session.to_string(),
        route if route.starts_with("/v1/runs/") => "1".to_owned(),
        route if route.starts_with("/v1/workers/") => scene.victim.worker.to_string(),
        _ => scene.token(Bearer::Admin).unwrap()[3..19].to_owned(),
    };
    let name = match route.split('/').nth(2) {
        Some("queues") if route.ends_with("resume") => "frozen",
        Some("queues") => "default",
        Some("jobs") => "j",
        Some("workflows") => "w",
        _ if route.ends_with("resume") => "paused",
        _ => "tonight",
    };
    let body = match call {
        "POST /v1/tasks" => r#"{"kind":"a","queue":"default","job":"j"}"#,
        "POST /v1/tasks/cancel" => r#"{"filter":{"state":"ready"}}"#,
        "POST /v1/tasks/retry" | "POST /v1/tasks/remove" => r#"{"filter":{"state":"dead"}}"#,
        "POST /v1/runs" => r#"{"action":"remove","filter":{"state":"dead"}}"#,
        "POST /v1/tasks/wait" => return (route.to_owned(), format!(r#"{{"ids":["{dead}"]}}"#)),
        "PUT /v1/jobs/{name}" => r#"{"concurrency":1000}"#,
        "PUT /v1/schedules/{name}" => r#"{"cron":"* * * * *","task":{"kind":"a"}}"#,
        "PUT /v1/workers/{id}" => r#"{"slots":1}"#,
        "POST /v1/tokens" => r#"{"scopes":["admin"]}"#,
        "POST /v1/login" => r#"{"token":"wl_0123456789abcdef_"}"#,
        _ if method == "GET" => "",
        _ => "{}",
    };
    (route.replace("{id}", &id).replace("{name}", name), body.to_owned())
}

#[tokio::test]
async fn a_route_changes_only_what_its_caller_may_change() {
    for call in CALLS.iter().filter(|call| call.name.contains(' ')) {
        for bearer in Bearer::ALL {
            let scene = Scene::set().await;
            let paused = windlass_core::ScheduleRow {
                name: super::scene::name("paused"),
                paused: true,
                ..scene.tonight.clone()
            };
            let store = scene.server.api.store.clone();
            store.schedules().put(&paused).await.unwrap();
            let (path, body) = hostile(call.name, &scene);
            let method = call.name.split_once(' ').unwrap().0;
            let token = scene.token(bearer).map(|token| format!("authorization: Bearer {token}\r\n"));
            let head = format!(
                "{method} {path} HTTP/1.1\r\nhost: localhost\r\norigin: http://localhost\r\n{}content-type: application/json\r\n\
                 content-length: {}\r\nconnection: close",
                token.unwrap_or_default(),
                body.len()
            );
            let before = Dump::of(&*store).await;
            let answer = scene.server.api.raw(&head, body.as_bytes()).await;
            let after = Dump::of(&*store).await;
            let what = format!("{bearer:?} calls {method} {path}, answered {}", answer.status);
            if matches!(answer.status, 401 | 403) {
                assert_eq!(before, after, "{what}");
            }
            before.assert_allowed(&after, &scene, bearer, &what);
            let is_potent = bearer == Bearer::Admin && call.destructive;
            assert!(!is_potent || before != after, "{what}: it would change nothing for any caller");
        }
    }
}
