//! ENQ-DURABLE and DONE-DURABLE: the server crashes under load and comes back.

use e2e::{
    postgres::{Load, Place, judge_after_crashes, until},
    process::Process,
};
use windlass_scratch::{ClusterOptions, Mode};

use crate::target;

const WORKERS: usize = 2;
/// Connections that one process may request per crash: it has eight, and a few tries of each while the server
/// starts.
const ATTEMPTS_MAX: usize = 60;

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_of_the_server_loses_no_task() {
    // A commit survives a crash of the server even if it does not wait for the disk; only the machine must
    // keep running.
    let options = ClusterOptions::new().without_fsync().set("log_connections", "on");
    let place = Place::alone(&options).unwrap();
    let cluster = place.cluster().unwrap();
    let target = target().await;
    let mut workers: Vec<Process> = Vec::new();
    for _ in 0..WORKERS {
        workers.push(place.worker(16).await.unwrap());
    }
    let load = Load::start(&place, &target).await.unwrap();
    let rounds = if crate::is_long() { 10 } else { 2 };
    for round in 0..rounds {
        load.more(60).await.unwrap();
        let before = attempts(&cluster.log());
        let given_up =
            |worker: &Process| worker.transcript().matches("lease lost: handlers cancelled").count();
        let given_up_before: Vec<usize> = workers.iter().map(given_up).collect();
        cluster.stop(Mode::Immediate).unwrap();
        if round % 2 == 1 {
            // Away for longer than the lease time.
            let all = || {
                Ok(workers.iter().zip(&given_up_before).all(|(worker, before)| given_up(worker) > *before))
            };
            until("every worker has given up its lease", all).await.unwrap();
        }
        cluster.start_again().unwrap();
        for worker in &workers {
            let done = place.done_by(worker.pid()).unwrap();
            until("a worker works again", || Ok(place.done_by(worker.pid())? > done)).await.unwrap();
        }
        load.more(60).await.unwrap();
        let asked = attempts(&cluster.log()) - before;
        // The workers, the client and the watcher.
        let most = (WORKERS + 2) * ATTEMPTS_MAX;
        assert!(asked <= most, "{asked} connections were asked for, more than {most}");
    }
    let acknowledged = load.stop().await.unwrap();
    judge_after_crashes(&place, &acknowledged, &target, rounds).await.unwrap();
    for worker in &mut workers {
        assert!(worker.ended().unwrap().is_none(), "{}", worker.transcript());
    }
}

/// How often a process other than the test requested a connection.
fn attempts(log: &str) -> usize {
    log.lines().filter(|line| line.contains("connection received: host=127.0.0.1")).count()
}
