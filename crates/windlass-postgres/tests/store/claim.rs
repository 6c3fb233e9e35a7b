//! Claims of several workers at once, and what a refused one leaves behind.

use std::time::Duration;

use windlass_conformance::cases::rig::{Rig, task};
use windlass_core::{Error, NewTask, Start};

use crate::support::PostgresHarness;

/// Its locks are released when it answers: the next claim does not skip the tasks that it had taken.
#[tokio::test]
async fn a_refused_claim_leaves_nothing_locked() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    let ids = rig.add_many("a", 20).await;
    let (mut live, mut gone) = (rig.worker().await, rig.worker().await);
    gone.store.retire(gone.id).await.unwrap();
    for round in 0..20 {
        let demands = [live.demand(20).await, gone.demand(20).await];
        assert_eq!(live.store.claim(&demands).await, Err(Error::WorkerExpired));
        let claimed = live.claim_ids(20).await;
        assert_eq!(claimed, ids, "round {round}");
        live.store.unclaim(live.id, live.claim_no).await.unwrap();
    }
    let sessions =
        format!("SELECT count(*) FROM pg_locks WHERE relation = '{}.task'::regclass", harness.schema());
    assert_eq!(harness.number(&sessions).await, 0);
}

/// While claims are full they pass over rows that a session has locked. Later claims find these rows, also
/// when the lock has been released.
#[tokio::test]
async fn a_task_whose_lock_was_released_is_claimed() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    let mut ids = rig.add_many("a", 60).await;
    let mut worker = rig.worker().await;
    let mut claimed = worker.claim_ids(10).await;
    let schema = harness.schema();
    let locked = format!("BEGIN; SELECT 1 FROM {schema}.task WHERE state = 1 FOR UPDATE; ROLLBACK");
    harness.execute(&locked).await;
    ids.extend(rig.add_many("a", 25).await);
    while claimed.len() < ids.len() {
        claimed.extend(worker.claim_ids(10).await);
    }
    claimed.sort_unstable();
    assert_eq!(claimed, ids);
}

/// A transaction that drew its numbers early and committed late may have left thousands of tasks behind the
/// read position. One claim a second from the head would be too slow for them.
#[tokio::test]
async fn tasks_far_behind_are_claimed_by_successive_claims() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    rig.add_many("a", 30).await;
    harness.execute("UPDATE {s}.task SET ready_seq = ready_seq + 1000000").await;
    let mut worker = rig.worker().await;
    for _ in 0..3 {
        assert_eq!(worker.claim(10).await.len(), 10);
    }
    rig.add_many("a", 60).await;
    rig.advance(Duration::from_secs(5)).await;
    assert_eq!(worker.claim(10).await.len(), 10, "from the head");
    for _ in 0..5 {
        assert_eq!(worker.claim(10).await.len(), 10);
    }
}

/// The transaction that makes due tasks ready locks them first.
#[tokio::test]
async fn due_tasks_are_claimed_in_order() {
    const DELAY: Duration = Duration::from_millis(10);
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    rig.add_many("a", 30).await;
    let mut worker = rig.worker().await;
    worker.claim(5).await;
    worker.claim(5).await;
    let urgent = rig.add(NewTask { priority: 9, start: Start::In(DELAY), ..task("a") }).await;
    rig.advance(DELAY).await;
    assert_eq!(rig.promote().await, 1);
    assert_eq!(worker.claim_ids(5).await.first(), Some(&urgent));
}
