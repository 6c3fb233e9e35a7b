//! An operator ends every session of the store, again and again, under load.

use e2e::postgres::{Load, Place, judge, until};

use crate::target;

#[tokio::test(flavor = "multi_thread")]
async fn sessions_that_are_all_ended_under_load_cost_nothing() {
    let place = Place::shared().unwrap().patient();
    let target = target().await;
    let workers = [place.worker(16).await.unwrap(), place.worker(16).await.unwrap()];
    let load = Load::start(&place, &target).await.unwrap();
    let rounds = if crate::is_long() { 60 } else { 5 };
    let schema = place.schema();
    for _ in 0..rounds {
        load.more(40).await.unwrap();
        let ended = place
            .count(&format!(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name LIKE '{schema} %'"
            ))
            .unwrap();
        assert!(ended >= 8, "only {ended} sessions were ended");
    }
    for worker in &workers {
        let done = place.done_by(worker.pid()).unwrap();
        until("a worker works again", || Ok(place.done_by(worker.pid())? > done)).await.unwrap();
    }
    let acknowledged = load.stop().await.unwrap();
    let judged = judge(&place, &acknowledged, &target).await.unwrap();
    assert_eq!(judged.crashes, 0, "no worker was taken for dead");
}
