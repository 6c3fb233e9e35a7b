//! FAILOVER-KEEPS: the primary crashes under load and its standby takes its place.

use std::time::Instant;

use e2e::{
    postgres::{Load, Place, judge_after_crashes, until},
    process::{Process, run},
};
use windlass_scratch::ClusterOptions;

use crate::target;

#[tokio::test(flavor = "multi_thread")]
async fn a_promoted_standby_has_every_acknowledged_task() {
    let place = Place::replicated(&ClusterOptions::new().without_fsync()).unwrap();
    let target = target().await;
    let mut workers: Vec<Process> = vec![place.worker(16).await.unwrap(), place.worker(16).await.unwrap()];
    let load = Load::start(&place, &target).await.unwrap();
    let rounds = if crate::is_long() { 10 } else { 2 };
    for round in 0..rounds {
        load.more(60).await.unwrap();
        let died = Instant::now();
        place.fail_over().unwrap();
        let promoted = died.elapsed();
        load.more(1).await.unwrap();
        let enqueued = died.elapsed();
        for worker in &workers {
            let done = place.done_by(worker.pid()).unwrap();
            until("a worker works again", || Ok(place.done_by(worker.pid())? > done)).await.unwrap();
        }
        println!(
            "round {round}: promoted after {promoted:.1?}, an enqueue after {enqueued:.1?}, every worker after {:.1?}",
            died.elapsed()
        );
        place.rejoin().unwrap();
    }
    load.more(60).await.unwrap();
    let (unknown, refused) = load.failures();
    let acknowledged = load.stop().await.unwrap();
    println!("{} acknowledged, {unknown} calls in doubt, {refused} refused", acknowledged.len());
    judge_after_crashes(&place, &acknowledged, &target, rounds).await.unwrap();
    for worker in &mut workers {
        assert!(worker.ended().unwrap().is_none(), "{}", worker.transcript());
    }
}

#[test]
fn a_standby_in_the_place_of_the_primary_is_named() {
    let place = Place::replicated(&ClusterOptions::new().without_fsync()).unwrap();
    let standby = place.standby().unwrap().url();
    let say = |url: &str| run(place.command_at(url, ["tasks", "ls"]).unwrap()).unwrap();
    let said = say(&standby);
    assert_eq!(said.code, Some(4), "{said:?}");
    assert!(said.stderr.contains("accepts no writes: it is a standby"), "{said:?}");
    let said = say(&format!("{standby}?target_session_attrs=read-write"));
    assert!(said.stderr.contains("database does not allow writes"), "{said:?}");
}
