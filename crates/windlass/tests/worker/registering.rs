//! The first registration: the worker waits for a store that cannot be reached, but not after a refusal.

use std::{sync::Arc, time::Instant};

use tokio::sync::Notify;
use windlass::{Error, Outcome, TaskState, WorkerError, worker::DrainReport};

use crate::{
    rig::{act, enqueue, quick, staged, start, until, until_state},
    staged::{Act, On},
};

#[tokio::test]
async fn a_worker_waits_for_a_store_that_cannot_be_reached_yet() {
    let store = staged();
    let away = || Act::Fail(Error::Unavailable("no server answers".into()));
    store.next(On::Register, [away(), away(), Act::LoseAnswer]);
    let ids = enqueue(&*store, 2).await;
    let worker = start(store.clone(), act(|_| async { Outcome::Done(None) }), quick());
    until_state(&*store, &ids, TaskState::Done).await;
    assert_eq!(store.calls(On::Register), 4);
    worker.stop().await;
}

/// The lease counts from the moment of the request.
#[tokio::test]
async fn an_expired_registration_is_repeated() {
    let (store, gate) = (staged(), Arc::new(Notify::new()));
    store.next(On::Register, [Act::Late(gate.clone())]);
    let ids = enqueue(&*store, 1).await;
    let worker = start(store.clone(), act(|_| async { Outcome::Done(None) }), quick());
    until("it has asked", async || store.calls(On::Register) == 1).await;
    let asked_before = Instant::now();
    until("that lease is over", async || asked_before.elapsed() > quick().lease_ttl).await;
    gate.notify_one();
    until_state(&*store, &ids, TaskState::Done).await;
    assert_eq!((store.calls(On::Register), worker.status().self_fences), (2, 0));
    worker.stop().await;
}

#[tokio::test]
async fn a_refused_registration_is_not_retried() {
    let store = staged();
    store.always(On::Register, Some(Act::Fail(Error::Invalid("this server requires a token".into()))));
    let worker = start(store.clone(), act(|_| async { Outcome::Done(None) }), quick());
    let ended = worker.ended().await;
    assert!(matches!(&ended, Err(WorkerError::Register(Error::Invalid(_)))), "{ended:?}");
    assert_eq!(store.calls(On::Register), 1);
}

#[tokio::test]
async fn a_worker_that_waits_for_its_store_can_be_stopped() {
    let store = staged();
    store.always(On::Register, Some(Act::Fail(Error::Unavailable("no server answers".into()))));
    let worker = start(store.clone(), act(|_| async { Outcome::Done(None) }), quick());
    until("it has asked", async || store.calls(On::Register) > 1).await;
    assert_eq!(worker.stop().await, DrainReport::default());
}
