//! Fleets of different sizes: for the store, each member is a process of its own.

use windlass_conformance::cases::fleet::a_fleet_finishes_every_task_once;

use crate::support::PostgresHarness;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_workers_finish_every_task_once() {
    a_fleet_finishes_every_task_once(&PostgresHarness::new(), 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_workers_finish_every_task_once() {
    a_fleet_finishes_every_task_once(&PostgresHarness::new(), 4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_workers_finish_every_task_once() {
    a_fleet_finishes_every_task_once(&PostgresHarness::new(), 8).await;
}
