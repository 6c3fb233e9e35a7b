//! Idempotency keys: one task per (queue, key), also after it ended, also for calls at the same time.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use windlass_core::{Error, NewTask, Outcome, Payload, Rules, store::Retention, task::Key};

use crate::{
    cases::rig::{Rig, keyed, name},
    harness::Harness,
};

/// Callers at once with one key.
const CALLERS: usize = 64;

fn other_payload(key: &str) -> NewTask {
    NewTask { payload: Payload::json(&2).unwrap(), ..keyed(key) }
}

fn ignoring_conflicts(task: NewTask) -> NewTask {
    let key = task.key.map(|key| Key { ignore_conflict: true, ..key });
    NewTask { key, ..task }
}

pub async fn the_same_key_gives_the_same_task(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let first = rig.store.enqueue(vec![keyed("k")]).await.unwrap()[0];
    let second = rig.store.enqueue(vec![keyed("k")]).await.unwrap()[0];
    assert_eq!((first.existing, second.existing, second.id), (false, true, first.id));
    rig.worker().await.claim_one().await;
    let third = rig.store.enqueue(vec![keyed("k")]).await.unwrap()[0];
    assert_eq!((third.existing, third.id), (true, first.id), "also while it runs");
    assert_eq!(rig.all().await.len(), 1);
}

pub async fn the_same_key_twice_in_a_batch_gives_one_task(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let answers = rig.store.enqueue(vec![keyed("k"), keyed("k")]).await.unwrap();
    assert_eq!((answers[0].existing, answers[1].existing), (false, true));
    assert_eq!(answers[0].id, answers[1].id);
    assert_eq!(rig.all().await.len(), 1);
}

pub async fn the_same_key_in_another_queue_is_another_task(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let here = rig.add(keyed("k")).await;
    let there = rig.add(NewTask { queue: name("other"), ..keyed("k") }).await;
    assert_ne!(here, there);
}

pub async fn another_payload_under_the_same_key_is_a_conflict(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let id = rig.add(keyed("k")).await;
    let conflict = Err(Error::KeyConflict { key: "k".to_owned(), existing: id });
    assert_eq!(rig.store.enqueue(vec![other_payload("k")]).await, conflict);
    let other_kind = NewTask { kind: name("b"), ..keyed("k") };
    assert_eq!(rig.store.enqueue(vec![other_kind]).await, conflict);
}

pub async fn a_batch_that_contradicts_itself_is_invalid(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    rig.add(keyed("known")).await;
    let (ignoring, others) = (ignoring_conflicts(keyed("known")), other_payload("known"));
    for batch in [
        vec![keyed("new"), other_payload("new")],
        vec![keyed("known"), others.clone()],
        vec![others.clone(), keyed("known")],
        vec![ignoring, others],
    ] {
        let answer = rig.store.enqueue(batch).await;
        assert!(matches!(answer, Err(Error::Invalid(_))), "{answer:?}");
    }
    assert_eq!(rig.all().await.len(), 1, "whatever the store knows, nothing is added");
}

pub async fn each_task_of_a_batch_is_compared_with_the_holder(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let id = rig.add(keyed("k")).await;
    let (ignoring, others) = (ignoring_conflicts(other_payload("k")), other_payload("k"));
    let conflict = Err(Error::KeyConflict { key: "k".to_owned(), existing: id });
    assert_eq!(rig.store.enqueue(vec![ignoring.clone(), others.clone()]).await, conflict);
    assert_eq!(rig.store.enqueue(vec![others, ignoring.clone()]).await, conflict);
    let answers = rig.store.enqueue(vec![ignoring.clone(), ignoring]).await.unwrap();
    assert!(answers.iter().all(|answer| answer.existing && answer.id == id), "{answers:?}");
}

pub async fn a_caller_that_ignores_conflicts_hides_none(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    rig.add(keyed("k")).await;
    let mut callers = Vec::new();
    for n in 0..CALLERS {
        let (store, ignores) = (Arc::clone(&rig.store), n % 2 == 0);
        let task = other_payload("k");
        let task = if ignores { ignoring_conflicts(task) } else { task };
        callers.push((ignores, tokio::spawn(async move { store.enqueue(vec![task]).await })));
    }
    for (ignores, caller) in callers {
        assert_eq!(caller.await.unwrap().is_ok(), ignores);
    }
}

pub async fn a_conflict_can_be_ignored_by_the_caller(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let id = rig.add(keyed("k")).await;
    let answer = rig.store.enqueue(vec![ignoring_conflicts(other_payload("k"))]).await.unwrap()[0];
    assert_eq!((answer.id, answer.existing), (id, true));
    assert_eq!(rig.task(id).await.payload, keyed("k").payload, "the first payload stays");
}

pub async fn a_key_is_remembered_after_its_task_ended(harness: &dyn Harness) {
    let rules = Rules { idempotency_ttl: Duration::from_hours(48), ..Rules::default() };
    let rig = Rig::with(harness, rules).await;
    let ids = [rig.add(keyed("done")).await, rig.add(keyed("cancelled")).await];
    let mut worker = rig.worker().await;
    let done = worker.claim_one().await;
    worker.end(&done, Outcome::Done(None)).await;
    rig.cancel(ids[1]).await.unwrap();
    rig.advance(Duration::from_hours(47)).await;
    let off = Retention { history_age: Duration::ZERO, ..Retention::default() };
    while rig.store.retain(&off).await.unwrap().more {}
    assert_eq!(rig.all().await, [], "history is gone");
    for (key, id) in ["done", "cancelled"].into_iter().zip(ids) {
        let answer = rig.store.enqueue(vec![keyed(key)]).await.unwrap()[0];
        assert_eq!((answer.id, answer.existing), (id, true), "{key}");
        assert!(matches!(rig.store.enqueue(vec![other_payload(key)]).await, Err(Error::KeyConflict { .. })));
    }
}

pub async fn a_key_is_free_again_after_its_time(harness: &dyn Harness) {
    let rules = Rules { idempotency_ttl: Duration::from_hours(48), ..Rules::default() };
    let rig = Rig::with(harness, rules).await;
    let id = rig.add(keyed("k")).await;
    rig.advance(Duration::from_hours(100)).await;
    assert!(
        rig.store.enqueue(vec![keyed("k")]).await.unwrap()[0].existing,
        "an unfinished task keeps its key"
    );
    rig.cancel(id).await.unwrap();
    rig.advance(Duration::from_hours(49)).await;
    assert!(rig.store.enqueue(vec![keyed("k")]).await.unwrap()[0].existing, "so does one that is kept");
    let off = Retention { history_age: Duration::ZERO, ..Retention::default() };
    while rig.store.retain(&off).await.unwrap().more {}
    let answer = rig.store.enqueue(vec![other_payload("k")]).await.unwrap()[0];
    assert!(!answer.existing && answer.id != id);
    assert!(rig.store.enqueue(vec![other_payload("k")]).await.unwrap()[0].existing, "and taken again");
}

pub async fn many_callers_at_once_with_one_key_make_one_task(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut callers = Vec::new();
    for _ in 0..CALLERS {
        let store = harness.connect(&rig.store).await;
        callers.push(tokio::spawn(async move { store.enqueue(vec![keyed("k")]).await.unwrap()[0] }));
    }
    let mut answers = Vec::new();
    for caller in callers {
        answers.push(caller.await.unwrap());
    }
    let ids: BTreeSet<_> = answers.iter().map(|answer| answer.id).collect();
    assert_eq!((ids.len(), rig.all().await.len()), (1, 1));
    assert_eq!(answers.iter().filter(|answer| !answer.existing).count(), 1, "one caller made it");
}

pub async fn one_callers_conflict_fails_only_that_caller(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    rig.add(keyed("taken")).await;
    let mut callers = Vec::new();
    for n in 0..CALLERS {
        let store = Arc::clone(&rig.store);
        let bad = n % 8 == 3;
        let task = if bad { other_payload("taken") } else { keyed(&format!("free {n}")) };
        callers.push((bad, tokio::spawn(async move { store.enqueue(vec![task]).await })));
    }
    for (bad, caller) in callers {
        assert_eq!(caller.await.unwrap().is_err(), bad);
    }
    assert_eq!(rig.all().await.len(), 1 + CALLERS - CALLERS / 8);
}
