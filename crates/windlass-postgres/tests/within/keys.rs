//! Idempotency keys inside callers' transactions.

use std::time::Duration;

use windlass_conformance::{
    Harness,
    cases::rig::{Rig, keyed},
};
use windlass_core::{Enqueued, Error, NewTask, Outcome, Payload, Rules, State, store::Retention, task::Key};

use crate::{
    desk::{add, caller, number},
    support::PostgresHarness,
};

#[tokio::test]
async fn the_same_key_gives_the_same_task_to_every_caller() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    let mut db = caller().await;
    let mut tx = db.transaction().await.unwrap();
    let first = add(&rig, &mut tx, &keyed("k")).await.unwrap();
    let twice = add(&rig, &mut tx, &keyed("k")).await.unwrap();
    assert_eq!(twice, Enqueued::existing(first.id));
    tx.commit().await.unwrap();
    let outside = rig.store.enqueue(vec![keyed("k")]).await.unwrap();
    assert_eq!(outside, [Enqueued::existing(first.id)]);
    assert_eq!(number(&rig, "SELECT count(*) FROM {s}.task").await, 1);
    rig.assert_sound().await;
}

#[tokio::test]
async fn another_payload_under_a_key_is_refused_or_answered_as_wanted() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    let mut db = caller().await;
    let id = rig.add(keyed("k \"x\"")).await;
    let other = NewTask { payload: Payload::json_text("7").unwrap(), ..keyed("k \"x\"") };
    let mut tx = db.transaction().await.unwrap();
    let error = add(&rig, &mut tx, &other).await.unwrap_err();
    assert_eq!(error, Error::KeyConflict { key: "k \"x\"".to_owned(), existing: id });
    // The transaction has failed, as after any failed statement.
    let error = add(&rig, &mut tx, &other).await.unwrap_err();
    assert!(matches!(error, Error::Conflict(_)), "{error}");
    tx.rollback().await.unwrap();

    let key = Some(Key { text: "k \"x\"".to_owned(), ignore_conflict: true });
    let mut tx = db.transaction().await.unwrap();
    let found = add(&rig, &mut tx, &NewTask { key, ..other }).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(found, Enqueued::existing(id));
}

#[tokio::test]
async fn a_key_is_free_again_when_its_task_is_forgotten() {
    let harness = PostgresHarness::new();
    let ttl = Duration::from_mins(1);
    let rig = Rig::with(&harness, Rules { idempotency_ttl: ttl, ..Rules::default() }).await;
    let (mut db, mut worker) = (caller().await, rig.worker().await);
    let id = rig.add(keyed("k")).await;
    let task = worker.claim_one().await;
    worker.end(&task, Outcome::Done(None)).await;
    // The task is kept in the history, so the key still belongs to it.
    rig.advance(ttl * 2).await;
    let mut tx = db.transaction().await.unwrap();
    assert_eq!(add(&rig, &mut tx, &keyed("k")).await.unwrap(), Enqueued::existing(id));
    tx.commit().await.unwrap();

    rig.advance(Duration::from_hours(48)).await;
    let all_gone = Retention { history_age: Duration::from_secs(1), ..Retention::default() };
    while rig.store.retain(&all_gone).await.unwrap().more {}
    assert_eq!(rig.store.task(id).await.unwrap(), None);
    let mut tx = db.transaction().await.unwrap();
    let new = add(&rig, &mut tx, &keyed("k")).await.unwrap();
    tx.commit().await.unwrap();
    assert!(!new.existing && new.id != id);
    assert_eq!(rig.state(new.id).await, State::Ready);
    assert!(harness.now().await > new.id.enqueued_at().before(Duration::from_secs(1)));
    rig.assert_sound().await;
}

#[tokio::test]
async fn many_callers_with_one_key_make_one_task() {
    const CALLERS: usize = 64;
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    let mut callers = Vec::new();
    for _ in 0..CALLERS {
        callers.push(caller().await);
    }
    let calls = callers.into_iter().map(|mut db| {
        let rig = &rig;
        async move {
            let mut tx = db.transaction().await.unwrap();
            let answer = add(rig, &mut tx, &keyed("k")).await.unwrap();
            tx.commit().await.unwrap();
            answer
        }
    });
    let answers = join_all(calls).await;
    assert_eq!(answers.len(), CALLERS);
    assert_eq!(answers.iter().filter(|answer| !answer.existing).count(), 1);
    assert!(answers.iter().all(|answer| answer.id == answers[0].id));
    assert_eq!(number(&rig, "SELECT count(*) FROM {s}.task").await, 1);
}

#[tokio::test]
async fn a_waiting_caller_gets_the_key_if_the_first_rolls_back() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    let (mut one, mut two) = (caller().await, caller().await);
    let pid: i32 = two.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    let mut first = one.transaction().await.unwrap();
    let mut second = two.transaction().await.unwrap();
    let task = keyed("k");
    let lost = add(&rig, &mut first, &task).await.unwrap();
    let undo = async {
        let waits = format!("SELECT cardinality(pg_blocking_pids({pid}))::bigint");
        while number(&rig, &waits).await == 0 {}
        first.rollback().await.unwrap();
    };
    let (won, ()) = tokio::join!(add(&rig, &mut second, &task), undo);
    let won = won.unwrap();
    assert!(!won.existing && won.id != lost.id);
    second.commit().await.unwrap();
    assert_eq!(rig.worker().await.claim_ids(10).await, [won.id]);
}

/// All of them at once, on this task; the answers are in their order.
async fn join_all<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut pending: Vec<_> = futures.into_iter().map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(|cx| {
        for (future, answer) in &mut pending {
            if answer.is_none()
                && let std::task::Poll::Ready(value) = future.as_mut().poll(cx)
            {
                *answer = Some(value);
            }
        }
        if pending.iter().all(|(_, answer)| answer.is_some()) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    pending.into_iter().filter_map(|(_, answer)| answer).collect()
}
