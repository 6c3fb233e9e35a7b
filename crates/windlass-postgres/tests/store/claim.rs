//! Claims of several workers at once, and what a refused one leaves behind.

use windlass_conformance::cases::rig::Rig;
use windlass_core::Error;

use crate::support::PostgresHarness;

/// Its locks are gone when it answers: the next claim does not skip what it had taken.
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

/// While claims come back full, rows that somebody has locked are passed over, also if that is over: a claim that finds less takes them.
#[tokio::test]
async fn what_was_locked_once_is_claimed_all_the_same() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    let mut ids = rig.add_many("a", 60).await;
    let mut worker = rig.worker().await;
    let mut claimed = worker.claim_ids(10).await;
    let schema = harness.schema();
    let locked = format!("BEGIN; SELECT 1 FROM {schema}.task WHERE state = 1 FOR UPDATE; ROLLBACK");
    harness.execute(&locked).await;
    claimed.extend(worker.claim_ids(10).await);
    ids.extend(rig.add_many("a", 20).await);
    while claimed.len() < ids.len() {
        let more = worker.claim_ids(10).await;
        assert!(!more.is_empty(), "{} of {} were claimed", claimed.len(), ids.len());
        claimed.extend(more);
    }
    claimed.sort_unstable();
    assert_eq!(claimed, ids);
}
