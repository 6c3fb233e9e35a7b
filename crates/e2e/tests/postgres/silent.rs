//! A peer that falls silent without closing the connection: only deadlines help.

use std::time::Duration;

use e2e::{
    postgres::{Load, Place, Wire, judge, until, until_within},
    process::START_LIMIT,
};
use windlass_scratch::Proxy;

use crate::{enqueue, target, until_open};

/// The deadlines of a claim, its undo, a registration and new connections, one after the other, with a
/// margin; the usual limit of a statement is longer.
const DEADLINES: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_of_a_silent_server_fences_itself_and_recovers() {
    let place = Place::shared().unwrap();
    let target = target().await;
    let proxy = Proxy::start(place.url()).unwrap();
    let mut far = place.worker_at(&proxy.url(), 8).await.unwrap();
    let _near = place.worker(8).await.unwrap();
    let load = Load::start(&place, &target).await.unwrap();
    until("the worker works", || Ok(place.done_by(far.pid())? > 0)).await.unwrap();

    let first = place.registration(far.pid()).unwrap().unwrap();
    proxy.black_hole(true);
    far.wait_for(START_LIMIT, |line| line.contains("lease lost: handlers cancelled").then_some(())).unwrap();
    let ended = format!("SELECT count(ended_at) FROM windlass.worker WHERE id = {first}");
    until("others take it for dead", || Ok(place.count(&ended)? == 1)).await.unwrap();

    // Connections in the black hole stay silent for ever, as after a firewall dropped their state: the
    // worker's own deadlines must end them.
    proxy.black_hole(false);
    let done = place.done_by(far.pid()).unwrap();
    let works = || Ok(place.done_by(far.pid())? > done);
    until_within(DEADLINES, "the worker works again", works).await.unwrap();
    assert!(far.ended().unwrap().is_none(), "{}", far.transcript());

    proxy.cut_all();
    let done = place.done_by(far.pid()).unwrap();
    until("it works on other connections", || Ok(place.done_by(far.pid())? > done)).await.unwrap();
    let acknowledged = load.stop().await.unwrap();
    judge(&place, &acknowledged, &target).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_of_a_silent_client_frees_its_tasks() {
    let place = Place::shared().unwrap();
    let target = target().await;
    target.hold();
    let proxy = Proxy::start(place.url()).unwrap();
    let mut far = place.worker_at(&proxy.url(), 1).await.unwrap();
    let ids = enqueue(&place, &target, 1).await;
    until_open(&target, 1).await;

    // The settlement waits for a lock within its transaction, and its client falls silent meanwhile. The
    // server continues when the lock is free, and receives neither a commit nor a rollback.
    let mut holder = Wire::connect(&place).unwrap();
    holder.run(&format!("BEGIN; SELECT 1 FROM {}.task FOR UPDATE", place.schema())).unwrap();
    target.release();
    let settlements = place.sessions_for("settlements");
    let sessions = |state: &str| {
        place.count(&format!(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = '{settlements}' AND {state}"
        ))
    };
    until("the settlement waits", || Ok(sessions("wait_event_type = 'Lock'")? == 1)).await.unwrap();
    proxy.black_hole(true);
    drop(holder);
    until("its transaction is left open", || Ok(sessions("state = 'idle in transaction'")? == 1))
        .await
        .unwrap();

    let near = place.worker(1).await.unwrap();
    judge(&place, &ids, &target).await.unwrap();
    assert_eq!(place.done_by(near.pid()).unwrap(), 1, "another worker has done it");
    far.kill().unwrap();
}
