//! A caller that may enqueue uses up the lanes, and the store has room again when they stand empty.

use std::{fmt::Write, sync::Arc};

use windlass_conformance::MemoryStore;
use windlass_core::{
    Rules, Scope, Store,
    lanes::LOOK_EVERY,
    store::{Filter, Retention},
    time::ManualClock,
};
use windlass_server::{
    Operations,
    access::{self, Auth},
    http::Options,
};

use crate::{
    access::Guarded,
    harness::{Answer, Api},
};

/// The bound of this store.
const LANES_MAX: usize = 50;

async fn start() -> Guarded {
    let clock = Arc::new(ManualClock::new("2027-01-31T09:30:00Z".parse().unwrap()));
    let rules = Rules { lanes_max: LANES_MAX, ..Rules::default() };
    let store = Arc::new(MemoryStore::new(clock.clone(), rules));
    let operations = Operations::new(store.clone());
    let access = access::Options { auth: Auth::Tokens, ..access::Options::default() };
    let options = Options { access, ..Options::default() };
    let api = Api::around(store, clock, operations.clone(), options).await;
    Guarded { api, operations }
}

/// Adds a task in a queue of its own for each of these numbers, in one batch.
async fn add(server: &Guarded, token: &str, numbers: std::ops::Range<usize>) -> Answer {
    let mut body = String::from(r#"{"tasks":["#);
    for number in numbers.clone() {
        let comma = if number == numbers.start { "" } else { "," };
        write!(body, r#"{comma}{{"kind":"a","queue":"q{number}"}}"#).unwrap();
    }
    body.push_str("]}");
    let head = format!(
        "POST /v1/tasks HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}",
        body.len()
    );
    server.api.raw(&head, body.as_bytes()).await
}

async fn listed(server: &Guarded, token: &str) -> usize {
    server.call_as(token, "GET /v1/queues").await.json()["queues"].as_array().unwrap().len()
}

#[tokio::test]
async fn lanes_that_a_token_used_up_are_free_when_they_are_empty() {
    let server = start().await;
    let token = server.token(&[Scope::Enqueue]).await;
    let reader = server.token(&[Scope::Read]).await;
    for first in (0..LANES_MAX).step_by(10) {
        assert_eq!(add(&server, &token, first..first + 10).await.status, 201);
    }
    let (code, message) = add(&server, &token, 1_000..1_001).await.error(400);
    assert_eq!(code, "invalid");
    assert!(message.contains("at most 50 pairs of queue and kind in use"), "{message}");
    assert_eq!(add(&server, &token, 0..10).await.status, 201, "queues that are there go on");
    assert_eq!(listed(&server, &reader).await, LANES_MAX);

    let left = server.api.store.tasks(&Filter::default(), None, 1_000).await.unwrap();
    let ids: Vec<_> = left.tasks.iter().map(|task| task.id).collect();
    server.api.store.cancel(&ids, "junk").await.unwrap();
    for _ in 0..2 {
        server.api.clock.advance(LOOK_EVERY);
        server.api.store.retain(&Retention::default()).await.unwrap();
    }
    assert_eq!(listed(&server, &reader).await, LANES_MAX / 10, "a tenth stays, also if it is empty");
    assert_eq!(add(&server, &token, 1_000..1_040).await.status, 201);
}
