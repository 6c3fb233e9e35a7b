//! Lanes that are retired while a caller's transaction is open, and their bounds.

use tokio_postgres::IsolationLevel::{self, ReadCommitted, RepeatableRead};
use windlass_conformance::cases::rig::{Rig, in_queue};
use windlass_core::{Rules, TaskId, lanes::LOOK_EVERY, store::Retention};

use crate::{
    desk::{add, caller, number},
    support::PostgresHarness,
};

const IN_USE: &str = "SELECT count(*) FROM {s}.lane WHERE NOT retired";

async fn rig(harness: &PostgresHarness) -> Rig<'_> {
    let rig = Rig::with(harness, Rules { lanes_max: 2, ..Rules::default() }).await;
    harness.execute("UPDATE {s}.meta SET value = 2 WHERE name = 'lanes_max'").await;
    rig.add(in_queue("a", "q")).await;
    finish_all(&rig).await;
    rig
}

async fn finish_all(rig: &Rig<'_>) -> Vec<TaskId> {
    let mut worker = rig.worker().await;
    let mut ids = Vec::new();
    for task in worker.claim(100).await {
        worker.finish(&task).await;
        ids.push(task.id);
    }
    ids
}

async fn look(rig: &Rig<'_>) {
    rig.advance(LOOK_EVERY).await;
    rig.store.retain(&Retention::default()).await.unwrap();
}

/// Adds a task in a transaction that is open while this many looks follow.
async fn add_over(rig: &Rig<'_>, level: IsolationLevel, looks: usize) -> TaskId {
    let mut db = caller().await;
    let mut tx = db.build_transaction().isolation_level(level).start().await.unwrap();
    let id = add(rig, &mut tx, &in_queue("a", "q")).await.unwrap().id;
    for _ in 0..looks {
        look(rig).await;
    }
    tx.commit().await.unwrap();
    id
}

#[tokio::test]
async fn a_transaction_open_over_two_looks_brings_its_lane_back() {
    let harness = PostgresHarness::new();
    let rig = rig(&harness).await;
    let id = add_over(&rig, ReadCommitted, 2).await;
    assert_eq!(number(&rig, IN_USE).await, 1);
    assert_eq!(finish_all(&rig).await, [id]);
    rig.assert_sound().await;
}

/// Such a transaction sees the lanes as they were when it began.
#[tokio::test]
async fn a_task_of_an_old_snapshot_is_found_by_the_next_look() {
    let harness = PostgresHarness::new();
    let rig = rig(&harness).await;
    let id = add_over(&rig, RepeatableRead, 2).await;
    look(&rig).await;
    assert_eq!(number(&rig, IN_USE).await, 1);
    assert_eq!(finish_all(&rig).await, [id]);
}

#[tokio::test]
async fn a_transaction_brings_a_retired_lane_back_when_it_commits() {
    let harness = PostgresHarness::new();
    let rig = rig(&harness).await;
    look(&rig).await;
    for level in [ReadCommitted, RepeatableRead] {
        look(&rig).await;
        look(&rig).await;
        assert_eq!(number(&rig, IN_USE).await, 0);
        let id = add_over(&rig, level, 0).await;
        assert_eq!(number(&rig, IN_USE).await, 1);
        assert_eq!(finish_all(&rig).await, [id]);
    }
    assert_eq!(number(&rig, "SELECT count(*) FROM {s}.lane").await, 1, "it is the lane that it was");
    rig.assert_sound().await;
}

#[tokio::test]
async fn a_transaction_is_refused_new_lanes_over_either_bound() {
    let harness = PostgresHarness::new();
    let rig = rig(&harness).await;
    let refused = async |queue: &str| {
        let mut db = caller().await;
        let mut tx = db.transaction().await.unwrap();
        add(&rig, &mut tx, &in_queue("a", queue)).await.unwrap_err().to_string()
    };
    rig.add(in_queue("a", "other")).await;
    let text = refused("new").await;
    assert!(text.contains("at most 2 pairs of queue and kind in use"), "{text}");
    finish_all(&rig).await;
    look(&rig).await;
    look(&rig).await;
    harness
        .execute("INSERT INTO {s}.lane (queue, kind, retired, idle_since) SELECT 'l' || n, 'a', true, 0 FROM generate_series(1, 18) AS n")
        .await;
    let text = refused("new").await;
    assert!(text.contains("at most 20 pairs of queue and kind;"), "{text}");
    add_over(&rig, ReadCommitted, 0).await;
}
