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
