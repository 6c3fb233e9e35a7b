//! Callers in REPEATABLE READ and SERIALIZABLE.

use tokio_postgres::IsolationLevel::{self, ReadCommitted, RepeatableRead, Serializable};
use tokio_postgres::{Client, Transaction};
use windlass_conformance::cases::rig::{Rig, in_queue, keyed, task};
use windlass_core::Enqueued;

use crate::{
    desk::{add, caller},
    support::PostgresHarness,
};

async fn begin(db: &mut Client, level: IsolationLevel) -> Transaction<'_> {
    db.build_transaction().isolation_level(level).start().await.unwrap()
}

#[tokio::test]
async fn every_level_enqueues_commits_and_answers_from_keys() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    let (mut db, mut worker) = (caller().await, rig.worker().await);
    for (number, level) in [ReadCommitted, RepeatableRead, Serializable].into_iter().enumerate() {
        let mut tx = begin(&mut db, level).await;
        let plain = add(&rig, &mut tx, &in_queue("a", &format!("q{number}"))).await.unwrap();
        let known = add(&rig, &mut tx, &keyed(&format!("k{number}"))).await.unwrap();
        tx.commit().await.unwrap();
        let mut tx = begin(&mut db, level).await;
        let again = add(&rig, &mut tx, &keyed(&format!("k{number}"))).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(again, Enqueued::existing(known.id));
        assert_eq!(worker.claim_ids(10).await, [plain.id, known.id]);
    }
    rig.assert_sound().await;
}

#[tokio::test]
async fn callers_at_once_without_keys_do_not_fail_each_other() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    rig.add(task("a")).await;
    for level in [RepeatableRead, Serializable] {
        let (mut one, mut two) = (caller().await, caller().await);
        let (mut first, mut second) = (begin(&mut one, level).await, begin(&mut two, level).await);
        for _ in 0..3 {
            add(&rig, &mut first, &task("a")).await.unwrap();
            add(&rig, &mut second, &task("a")).await.unwrap();
        }
        first.commit().await.unwrap();
        second.commit().await.unwrap();
    }
    assert_eq!(rig.worker().await.claim_ids(100).await.len(), 13);
}

#[tokio::test]
async fn serializable_callers_with_new_keys_do_not_fail_each_other() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    rig.add(keyed("first")).await;
    let (mut one, mut two) = (caller().await, caller().await);
    let (mut first, mut second) = (begin(&mut one, Serializable).await, begin(&mut two, Serializable).await);
    add(&rig, &mut first, &keyed("x")).await.unwrap();
    add(&rig, &mut second, &keyed("y")).await.unwrap();
    first.commit().await.unwrap();
    second.commit().await.unwrap();
}

#[tokio::test]
async fn a_caller_with_an_old_snapshot_is_told_to_try_again() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    let mut db = caller().await;
    for (number, level) in [RepeatableRead, Serializable].into_iter().enumerate() {
        let key = format!("k{number}");
        let mut tx = begin(&mut db, level).await;
        tx.query_one("SELECT 1", &[]).await.unwrap();
        let id = rig.add(keyed(&key)).await;
        let error = add(&rig, &mut tx, &keyed(&key)).await.unwrap_err();
        assert!(error.is_retryable() && error.to_string().contains("40001"), "{error}");
        tx.rollback().await.unwrap();
        let mut tx = begin(&mut db, level).await;
        let again = add(&rig, &mut tx, &keyed(&key)).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(again, Enqueued::existing(id));
    }
}
