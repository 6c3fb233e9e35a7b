//! S2: a token that names queues or kinds is valid only for those, and a worker belongs to the token that
//! registered it.

use serde_json::json;
use tonic::{Code, codegen::tokio_stream::wrappers::ReceiverStream};
use windlass_core::{Name, NewTask, Payload, Scope, Store};
use windlass_proto::v1::{
    self, store_client::StoreClient, tasks_client::TasksClient, work_down, work_up,
    workers_client::WorkersClient,
};
use windlass_server::api::TokenRequest;

use crate::{access::Guarded, foreign::with, wire::Wire};

async fn token(server: &Guarded, scope: &str, queues: &[&str], kinds: &[&str]) -> String {
    let names = |texts: &[&str]| texts.iter().map(|&text| Name::new("name", text).unwrap()).collect();
    let request = TokenRequest {
        scopes: vec![scope.to_owned()],
        queues: names(queues),
        kinds: names(kinds),
        ..TokenRequest::default()
    };
    server.operations.create_token(request).await.unwrap().token
}

async fn post(server: &Guarded, token: &str, path: &str, body: &str) -> crate::harness::Answer {
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\nconnection: close",
        body.len()
    );
    server.api.raw(&head, body.as_bytes()).await
}

#[tokio::test]
async fn a_bound_token_enqueues_only_into_its_queues_and_kinds() {
    let server = Guarded::start().await;
    let token = token(&server, "enqueue", &["mail"], &["send"]).await;
    let (wire, origin) = Wire::connect(&format!("http://{}", server.api.address)).await;
    let mut tasks = TasksClient::with_origin(wire, origin);
    for (queue, kind, status) in [("mail", "send", 201), ("pay", "send", 403), ("mail", "drop", 403)] {
        let body = json!({"kind": kind, "queue": queue}).to_string();
        let one = post(&server, &token, "/v1/tasks", &body).await;
        assert_eq!(one.status, status, "{}", one.text());
        let batch = post(&server, &token, "/v1/tasks", &format!(r#"{{"tasks":[{body}]}}"#)).await;
        assert_eq!(batch.status, status, "{}", batch.text());
        let task = Some(v1::NewTask { kind: kind.into(), queue: queue.into(), ..Default::default() });
        let told = tasks.enqueue(with(&token, v1::EnqueueRequest { task: task.clone() })).await;
        let batch = v1::EnqueueBatchRequest { tasks: task.into_iter().collect() };
        let batch = tasks.enqueue_batch(with(&token, batch)).await;
        for told in [told.map(|_| ()), batch.map(|_| ())] {
            let code = told.err().map(|told| told.code());
            assert_eq!(code, (status == 403).then_some(Code::PermissionDenied));
        }
    }
    let refused = post(&server, &token, "/v1/tasks", r#"{"kind":"send","queue":"pay"}"#).await.error(403).1;
    assert!(refused.ends_with("is for queue mail, kind send, not for queue pay"), "{refused}");
    assert_eq!(server.api.store.lane_records().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_bound_worker_gets_only_tasks_of_its_queues_and_kinds() {
    let server = Guarded::start().await;
    let token = token(&server, "work", &["mail"], &[]).await;
    let store = server.api.store.clone();
    for queue in ["pay", "mail"] {
        let task = NewTask {
            queue: Name::new("queue", queue).unwrap(),
            ..NewTask::new("a", Payload::bytes(*b"x")).unwrap()
        };
        store.enqueue(vec![task]).await.unwrap();
    }
    let (wire, origin) = Wire::connect(&format!("http://{}", server.api.address)).await;
    let mut workers = WorkersClient::with_origin(wire.clone(), origin.clone());
    let introduce = |queues: &[&str]| v1::RegisterRequest {
        kinds: vec!["a".into()],
        queues: queues.iter().map(|&queue| queue.into()).collect(),
        max_capacity: 10,
        ..Default::default()
    };
    let refused = workers.register(with(&token, introduce(&["pay"]))).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    let worker_id = workers.register(with(&token, introduce(&[]))).await.unwrap().into_inner().worker_id;
    let known = store.workers().await.unwrap();
    assert_eq!(
        known[0].queues.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["mail"],
        "it serves no other"
    );
    let every_lane = v1::Demand {
        worker_id: worker_id.clone(),
        claim_no: 1,
        lanes: (0..10).collect(),
        max_tasks: 10,
        prefers: vec![],
    };
    let mut stores = StoreClient::with_origin(wire, origin);
    let request = v1::ClaimForRequest { demands: vec![every_lane] };
    let claimed = stores.claim_for(with(&token, request)).await.unwrap().into_inner().tasks;
    let queues: Vec<_> = claimed.iter().map(|task| task.lane.as_ref().unwrap().queue.as_str()).collect();
    assert_eq!(queues, ["mail"]);
    let claim = v1::ClaimRequest { worker_id, max_tasks: 10, kinds: vec!["a".into()], ..Default::default() };
    assert_eq!(workers.claim(with(&token, claim)).await.unwrap().into_inner().tasks, []);
}

#[tokio::test]
async fn a_bound_worker_receives_only_its_own_cancellations() {
    let server = Guarded::start().await;
    let token = token(&server, "work", &["mail"], &[]).await;
    let store = server.api.store.clone();
    let add = async |queue: &str| {
        let queue = Name::new("queue", queue).unwrap();
        let task = NewTask { queue, ..NewTask::new("a", Payload::bytes(*b"x")).unwrap() };
        store.enqueue(vec![task]).await.unwrap()[0].id
    };
    let other = server.api.worker(&["a"]).await;
    let foreign = add("pay").await;
    assert_eq!(other.claim().await.id, foreign);
    let own = add("mail").await;
    let (wire, origin) = Wire::connect(&format!("http://{}", server.api.address)).await;
    let mut workers = WorkersClient::with_origin(wire.clone(), origin.clone());
    let (up, said) = tokio::sync::mpsc::channel(8);
    let say = async |message| up.send(v1::WorkUp { message: Some(message) }).await.unwrap();
    let register = v1::RegisterRequest { kinds: vec!["a".into()], max_capacity: 1, ..Default::default() };
    say(work_up::Message::Hello(v1::Hello { register: Some(register), ..Default::default() })).await;
    say(work_up::Message::Credit(v1::Credit { tasks: 1 })).await;
    let mut work = workers.work(with(&token, ReceiverStream::new(said))).await.unwrap().into_inner();
    let mut next = async || work.message().await.unwrap().unwrap().message.unwrap();
    while !matches!(next().await, work_down::Message::Tasks(_)) {}
    let mut stores = StoreClient::with_origin(wire, origin);
    let mut hints = stores.watch_hints(with(&token, v1::WatchHintsRequest {})).await.unwrap().into_inner();
    let mut hint = async || hints.message().await.unwrap().unwrap().hint.unwrap();
    assert!(matches!(hint().await, v1::hint::Hint::Listening(_)));
    for id in [foreign, own] {
        store.cancel(&[id], "a secret").await.unwrap();
    }
    let heard = loop {
        if let work_down::Message::Cancel(cancel) = next().await {
            break cancel.task_id;
        }
    };
    assert_eq!(heard, own.to_string(), "the first that it hears of is its own");
    add("mail").await;
    loop {
        match hint().await {
            v1::hint::Hint::Ready(_) => break,
            v1::hint::Hint::Cancel(cancel) => panic!("{cancel:?}"),
            _ => {}
        }
    }
}

#[tokio::test]
async fn a_worker_belongs_to_its_token_on_every_server() {
    let server = Guarded::start().await;
    let tokens = [server.token(&[Scope::Work]).await, server.token(&[Scope::Work]).await];
    let admin = server.token(&[Scope::Admin]).await;
    let (wire, origin) = Wire::connect(&format!("http://{}", server.api.address)).await;
    let mut workers = WorkersClient::with_origin(wire, origin);
    let introduction = v1::RegisterRequest { kinds: vec!["a".into()], max_capacity: 1, ..Default::default() };
    let worker_id = workers.register(with(&tokens[0], introduction)).await.unwrap().into_inner().worker_id;
    let beat = || v1::HeartbeatRequest { worker_id: worker_id.clone(), ..Default::default() };
    // A second server on the same store, which has not seen the registration.
    let second = server.again().await;
    let (wire, origin) = Wire::connect(&format!("http://{}", second.address)).await;
    let mut elsewhere = WorkersClient::with_origin(wire, origin);
    for workers in [&mut workers, &mut elsewhere] {
        workers.heartbeat(with(&tokens[0], beat())).await.unwrap();
        let refused = workers.heartbeat(with(&tokens[1], beat())).await.unwrap_err();
        assert_eq!(refused.code(), Code::FailedPrecondition, "as if it had expired: {refused:?}");
        workers.heartbeat(with(&admin, beat())).await.unwrap();
    }
}

#[tokio::test]
async fn bounds_are_listed_and_refused_where_they_have_no_effect() {
    let server = Guarded::start().await;
    let admin = server.token(&[Scope::Admin]).await;
    let made =
        post(&server, &admin, "/v1/tokens", r#"{"scopes":["work"],"queues":["mail"],"name":"m"}"#).await;
    assert_eq!((made.status, &made.json()["queues"]), (201, &json!(["mail"])), "{}", made.text());
    let listed = server.call_as(&admin, "GET /v1/tokens").await.json();
    let found = listed["tokens"].as_array().unwrap().iter().find(|token| token["name"] == "m").unwrap();
    assert_eq!((&found["queues"], &found["scopes"]), (&json!(["mail"]), &json!(["work"])));
    for scopes in ["read", "admin", "work\",\"read"] {
        let body = format!(r#"{{"scopes":["{scopes}"],"kinds":["a"]}}"#);
        let refused = post(&server, &admin, "/v1/tokens", &body).await.error(400);
        assert_eq!(refused.1, "queues and kinds bind the scopes enqueue and work only");
    }
}
