//! HINTS-ONLY: the session that receives notifications is ended, and no other.

use e2e::postgres::{Place, judge, until};

use crate::{enqueue, target};

#[tokio::test(flavor = "multi_thread")]
async fn a_terminated_listener_listens_again() {
    // No worker polls for a minute, which is longer than this test waits for any event.
    let place = Place::shared()
        .unwrap()
        .patient()
        .with("WINDLASS_POLL_INTERVAL_MS", "60000")
        .with("WINDLASS_POLL_INTERVAL_MAX_MS", "60000");
    let target = target().await;
    let worker = place.worker(4).await.unwrap();
    let listener = place.sessions_for("listen");
    let of_listener = format!("FROM pg_stat_activity WHERE application_name = '{listener}'");
    let pid = || place.ask(&format!("SELECT pid {of_listener} AND query LIKE 'LISTEN%' AND state = 'idle'"));
    let is_armed = || Ok(place.count("SELECT count(*) FROM windlass.doorbell")? == 1);
    // Before the first task there is no lane to listen for.
    let mut ids = enqueue(&place, &target, 1).await;
    until("the worker is idle", is_armed).await.unwrap();
    for _ in 0..3 {
        let before = pid().unwrap();
        // The listener's number changes only with its process, so the doorbell must be armed once more.
        place.ask("DELETE FROM windlass.doorbell").unwrap();
        assert_eq!(place.ask(&format!("SELECT pg_terminate_backend(pid) {of_listener}")).unwrap(), "t");
        until("it listens again", || Ok(pid().is_ok_and(|now| !now.is_empty() && now != before)))
            .await
            .unwrap();
        until("it asked to be rung", is_armed).await.unwrap();
        ids.extend(enqueue(&place, &target, 1).await);
        let (done, wanted) = (|| place.done_by(worker.pid()), ids.len() as u64);
        until("the task was heard of", || Ok(done()? == wanted)).await.unwrap();
    }
    assert_eq!(judge(&place, &ids, &target).await.unwrap().claimed_again(), 0);
}
