//! Enqueues that wait out an outage, on a store whose enqueues fail as the test tells it. Time is paused.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod support;

use std::{sync::Arc, time::Duration};

use support::staged;
use tokio::time::Instant;
use windlass::{Client, Error, Task, store::Filter};
use windlass_conformance::{
    Staged,
    staged::{Act, On},
};

#[derive(serde::Serialize, serde::Deserialize, Task)]
struct Greet(u32);

const MINUTE: Duration = Duration::from_mins(1);

fn away() -> Act {
    Act::Fail(Error::Unavailable("away".into()))
}

fn rig() -> (Arc<Staged>, Client) {
    let store = staged();
    (store.clone(), Client::new(store))
}

async fn count(client: &Client) -> usize {
    client.store().tasks(&Filter::default(), None, 100).await.unwrap().tasks.len()
}

#[tokio::test(start_paused = true)]
async fn an_enqueue_waits_out_an_outage_that_changed_nothing() {
    let (store, client) = rig();
    store.next(On::Enqueue, [away(), Act::Fail(Error::StoreFull("full".into())), away()]);
    client.enqueue(Greet(1)).retry_for(MINUTE).await.unwrap();
    assert_eq!((store.left(On::Enqueue), count(&client).await), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn without_retry_for_the_first_error_is_returned() {
    let (store, client) = rig();
    store.next(On::Enqueue, [away(), away()]);
    assert!(matches!(client.enqueue(Greet(1)).await, Err(Error::Unavailable(_))));
    assert!(matches!(client.enqueue_all([Greet(1)]).await, Err(Error::Unavailable(_))));
    assert_eq!(count(&client).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_tried_again_only_with_a_key() {
    let (store, client) = rig();
    store.next(On::Enqueue, [Act::LoseAnswer]);
    let error = client.enqueue(Greet(1)).retry_for(MINUTE).await.unwrap_err();
    assert!(matches!(error, Error::Unknown(_)), "{error}");
    assert_eq!(count(&client).await, 1, "it was added, and not a second time");

    store.next(On::Enqueue, [Act::LoseAnswer, Act::LoseAnswer]);
    let answer = client.enqueue(Greet(2)).key("two").retry_for(MINUTE).await.unwrap();
    assert!(answer.existing, "the lost call had added it");
    assert_eq!((store.left(On::Enqueue), count(&client).await), (0, 2));
}

#[tokio::test(start_paused = true)]
async fn after_a_lost_answer_only_a_fully_keyed_batch_is_resent() {
    let (store, client) = rig();
    store.next(On::Enqueue, [Act::LoseAnswer]);
    let keyed = [("a", Greet(1)), ("b", Greet(2))];
    let answers = client.enqueue_all_keyed(keyed).retry_for(MINUTE).await.unwrap();
    assert!(answers.iter().all(|answer| answer.existing));
    assert_eq!(count(&client).await, 2);

    store.next(On::Enqueue, [Act::LoseAnswer]);
    let mut mixed = vec![Greet(3).new_task().unwrap(), Greet(4).new_task().unwrap()];
    mixed[0].key = Some(windlass::task::Key { text: "c".into(), ignore_conflict: false });
    let error = client.enqueue_all_raw(mixed).retry_for(MINUTE).await.unwrap_err();
    assert!(matches!(error, Error::Unknown(_)), "{error}");
    assert_eq!(count(&client).await, 4, "nothing was added twice");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_the_answer_at_once() {
    let (store, client) = rig();
    store.next(On::Enqueue, [Act::Fail(Error::Conflict("no".into())), away()]);
    let error = client.enqueue(Greet(1)).key("k").retry_for(MINUTE).await.unwrap_err();
    assert!(matches!(error, Error::Conflict(_)), "{error}");
    assert_eq!(store.left(On::Enqueue), 1);
}

#[tokio::test(start_paused = true)]
async fn after_its_time_the_last_error_is_the_answer() {
    let (store, client) = rig();
    store.next(On::Enqueue, (0..10_000).map(|_| away()));
    let started = Instant::now();
    let error = client.enqueue(Greet(1)).retry_for(Duration::from_secs(10)).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error}");
    // The clock is paused: it shows how long the client slept.
    let slept = started.elapsed();
    assert!(slept <= Duration::from_secs(10) && slept >= Duration::from_secs(8), "{slept:?}");
    assert!((10..=30).contains(&(10_000 - store.left(On::Enqueue))), "{} left", store.left(On::Enqueue));
}
