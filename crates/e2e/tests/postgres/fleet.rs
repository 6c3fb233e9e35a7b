//! A third of the fleet is killed every few seconds while clients continue.

use std::{sync::Arc, time::Duration};

use e2e::{
    postgres::{Load, Place, judge},
    rng::Rng,
    target::Target,
};

const WORKERS: usize = 6;
/// How many of them are killed at a time.
const KILLED: usize = WORKERS / 3;
/// How long a request takes: long enough that most workers have an open one.
const LATENCY: Duration = Duration::from_millis(120);
/// Pause between two kills: it only spaces the faults, nothing waits for it.
const BETWEEN_MS: (u64, u64) = (1_500, 3_500);

#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_under_kills_finishes_every_task_once() {
    // Kills from outside must not count against the tasks, however often they are hit.
    let place = Place::shared().unwrap().with("WINDLASS_MAX_CRASHES", "1000");
    let target = Arc::new(Target::start(LATENCY).await.unwrap());
    let seed = Rng::seed();
    println!("seed {seed}");
    let mut rng = Rng::new(seed);
    let mut fleet = Vec::new();
    for _ in 0..WORKERS {
        fleet.push(place.worker(6).await.unwrap());
    }
    let load = Load::start(&place, &target).await.unwrap();
    let rounds = if crate::is_long() { 60 } else { 5 };
    for _ in 0..rounds {
        tokio::time::sleep(Duration::from_millis(rng.between(BETWEEN_MS.0, BETWEEN_MS.1))).await;
        for _ in 0..KILLED {
            let mut victim = fleet.remove(rng.between(0, fleet.len() as u64) as usize);
            victim.kill().unwrap();
        }
        for _ in 0..KILLED {
            fleet.push(place.worker(6).await.unwrap());
        }
        load.more(1).await.unwrap();
    }
    let acknowledged = load.stop().await.unwrap();
    let judged = judge(&place, &acknowledged, &target).await.unwrap();
    println!(
        "{} tasks, {} crashes, {} ran again",
        acknowledged.len(),
        judged.crashes,
        judged.claimed_again()
    );
    assert!(judged.crashes > 0, "no kill hit a running task, so nothing was shown");
}
