//! The server commits and the answer is lost: the caller does not know the outcome.

use std::collections::BTreeSet;

use e2e::{
    postgres::{Load, Place, judge, until},
    process,
    up::Up,
};
use serde_json::json;
use windlass_scratch::{Proxy, Target as Sessions};

use crate::{LIMIT, enqueue, target};

/// How many answers are dropped at a time.
const LOST: u64 = 4;

#[tokio::test(flavor = "multi_thread")]
async fn a_settlement_whose_answer_is_lost_is_known_by_its_receipt() {
    let place = Place::shared().unwrap().patient();
    let target = target().await;
    let proxy = Proxy::start(place.url()).unwrap();
    let worker = place.worker_at(&proxy.url(), 16).await.unwrap();
    let load = Load::start(&place, &target).await.unwrap();
    let settlements = Sessions::application(place.sessions_for("settlements"));
    let rounds = if crate::is_long() { 20 } else { 3 };
    for round in 1..=rounds {
        load.more(20).await.unwrap();
        // Both the transaction and the statement that commits itself; not the settings of a new connection.
        proxy.drop_answers_tagged(settlements.clone(), LOST, &["COMMIT", "SELECT"]);
        assert!(proxy.wait_dropped(round * LOST, LIMIT), "{:?}", proxy.counts());
    }
    let acknowledged = load.stop().await.unwrap();
    let judged = judge(&place, &acknowledged, &target).await.unwrap();
    assert_eq!(judged.claimed_again(), 0, "what was settled did not run again");
    let text = worker.transcript();
    assert!(text.contains("the store cannot be reached"), "no settlement was in doubt: {text}");
    assert!(!text.contains("lease lost"), "its own settlement was taken for another's: {text}");
    assert_eq!(place.count("SELECT count(*) FROM windlass.fenced").unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_of_a_lost_claim_run_before_the_next_heartbeat() {
    // No heartbeat, and so no comparison of leases, within the time of this test: only the undo of the claim
    // helps.
    let place = Place::shared()
        .unwrap()
        .with("WINDLASS_LEASE_TTL_MS", "600000")
        .with("WINDLASS_HEARTBEAT_MS", "200000")
        // No slow start either.
        .with("WINDLASS_ADMISSION", "off");
    let target = target().await;
    let proxy = Proxy::start(place.url()).unwrap();
    // The tasks are enqueued before the worker starts, so its first claim takes all of them.
    let ids = enqueue(&place, &target, 10).await;
    let claims = Sessions::application(place.sessions_for("claims"));
    // The statement that takes tasks; a look is a SELECT.
    proxy.drop_answers_tagged(claims, LOST, &["UPDATE"]);
    let worker = place.worker_at(&proxy.url(), 16).await.unwrap();
    let judged = judge(&place, &ids, &target).await.unwrap();
    assert!(proxy.wait_dropped(LOST, LIMIT), "{:?}", proxy.counts());
    assert!(judged.released >= 10, "no lost claim had taken anything: {judged:?}");
    assert_eq!(judged.crashes, 0);
    let book = target.book();
    assert!(book.arrivals.values().all(|times| *times == 1), "a lost claim ran nothing: {:?}", book.arrivals);
    drop(book);
    assert!(!worker.transcript().contains("lease lost"), "{}", worker.transcript());
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_answers_of_claims_strand_no_task() {
    let place = Place::shared().unwrap().patient();
    let target = target().await;
    let proxy = Proxy::start(place.url()).unwrap();
    let [far, _near] = [place.worker_at(&proxy.url(), 8).await.unwrap(), place.worker(8).await.unwrap()];
    let load = Load::start(&place, &target).await.unwrap();
    let claims = Sessions::application(place.sessions_for("claims"));
    let rounds = if crate::is_long() { 40 } else { 6 };
    for round in 1..=rounds {
        let done = place.done_by(far.pid()).unwrap();
        until("the worker goes on", || Ok(place.done_by(far.pid())? > done)).await.unwrap();
        // Arming and disarming the doorbell are among them.
        proxy.drop_answers(claims.clone(), 2);
        assert!(proxy.wait_dropped(round * 2, LIMIT), "{:?}", proxy.counts());
    }
    let acknowledged = load.stop().await.unwrap();
    let judged = judge(&place, &acknowledged, &target).await.unwrap();
    assert_eq!(judged.crashes, 0, "no worker was taken for dead");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_of_a_lost_enqueue_gives_the_same_task() {
    let place = Place::shared().unwrap();
    let target = target().await;
    let proxy = Proxy::start(place.url()).unwrap();
    let mut command = place.command_at(&proxy.url(), ["up", "--listen", "127.0.0.1:0"]).unwrap();
    command.env("WINDLASS_STORE_CONNECTIONS", "1");
    // Only the calls below may be answered on that connection: no sample, no audit.
    command.env("WINDLASS_METRICS", "off");
    let up = Up::start(command).unwrap();
    let api = up.api();
    let task = json!({"kind": "http", "payload": {"url": target.url()}});
    // After the first task the lane is known, so that the next answer to a client is about its task.
    let first = api.post("/v1/tasks", &task).await.unwrap();
    assert_eq!(first.status, 201, "{first:?}");
    let clients = Sessions::application(place.sessions_for("clients"));
    proxy.drop_answers_tagged(clients.clone(), 1, &["SELECT"]);
    let lost = api.post("/v1/tasks", &task).await.unwrap();
    assert_eq!(proxy.dropped(), 1);
    assert_eq!(lost.error_code(), Some("unknown_outcome"), "{lost:?}");
    assert!(lost.ids().is_empty(), "no id, no promise: {lost:?}");

    let payload = task["payload"].to_string();
    let call = || {
        let arguments = ["enqueue", "http", "--payload", &payload, "--key", "once"];
        process::run(place.command_at(&proxy.url(), arguments).unwrap()).unwrap()
    };
    proxy.drop_answers_tagged(clients.clone(), 1, &["COMMIT"]);
    let said = call();
    assert_eq!(proxy.dropped(), 2, "{said:?}");
    assert_eq!(said.code, Some(5), "{said:?}");
    assert!(said.stderr.contains("may have taken effect"), "{said:?}");
    assert_eq!(said.stdout, "", "no id, no promise: {said:?}");
    let again = call();
    assert_eq!(again.code, Some(0), "{again:?}");
    assert!(again.stderr.contains("already there"), "{again:?}");
    let twice = call();
    assert_eq!(again.stdout, twice.stdout);

    let mut ids: BTreeSet<String> = first.ids().into_iter().collect();
    ids.insert(again.stdout.trim().to_owned());
    let judged = judge(&place, &ids, &target).await.unwrap();
    assert_eq!(judged.leases.len(), 3, "each of the lost ones had been written once");
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_answers_of_keyed_enqueues_make_one_task_each() {
    let place = Place::shared().unwrap();
    let target = target().await;
    let proxy = Proxy::start(place.url()).unwrap();
    let _worker = place.worker(16).await.unwrap();
    let load = Load::keyed(&place, &proxy.url(), &target).await.unwrap();
    let clients = Sessions::application(place.sessions_for("clients"));
    let rounds = if crate::is_long() { 40 } else { 5 };
    for round in 1..=rounds {
        load.more(12).await.unwrap();
        proxy.drop_answers_tagged(clients.clone(), 2, &["COMMIT"]);
        assert!(proxy.wait_dropped(round * 2, LIMIT), "{:?}", proxy.counts());
    }
    let (unknown, _) = load.failures();
    assert!(unknown > 0, "the client was told what became of every call");
    let acknowledged = load.stop().await.unwrap();
    let judged = judge(&place, &acknowledged, &target).await.unwrap();
    assert_eq!(judged.leases.len(), acknowledged.len(), "a repeated call made another task");
}
