//! NO-FALSE-DEATH: another session holds a lock that a duty waits for.

use e2e::postgres::{Place, Wire, judge, until};

use crate::{enqueue, target, until_open};

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_that_waits_for_a_lock_does_not_cost_the_lease() {
    let place = Place::shared().unwrap();
    let target = target().await;
    target.hold();
    let mut victim = place.worker(1).await.unwrap();
    let mut ids = enqueue(&place, &target, 1).await;
    until_open(&target, 1).await;
    let mut holder = Wire::connect(&place).unwrap();
    holder.run(&format!("BEGIN; SELECT 1 FROM {}.task FOR UPDATE", place.schema())).unwrap();
    victim.kill().unwrap();

    let heir = place.worker(4).await.unwrap();
    let registration = place.registration(heir.pid()).unwrap().unwrap();
    let duties = place.sessions_for("duties");
    let waiting = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = '{duties}' AND wait_event_type = 'Lock'"
    );
    until("the sweep waits", || Ok(place.count(&waiting)? == 1)).await.unwrap();
    // It keeps its lease after the first lease time, because it renewed it.
    let renewed = format!("SELECT renewed_at FROM windlass.worker WHERE id = {registration}");
    let beyond = place.count(&renewed).unwrap() + 2 * place.lease_ttl().as_millis() as u64;
    until("it renews its lease", || Ok(place.count(&renewed)? > beyond)).await.unwrap();

    drop(holder);
    target.release();
    ids.extend(enqueue(&place, &target, 1).await);
    judge(&place, &ids, &target).await.unwrap();
    assert_eq!(place.registration(heir.pid()).unwrap(), Some(registration));
    assert!(!heir.transcript().contains("lease lost"), "{}", heir.transcript());
}
