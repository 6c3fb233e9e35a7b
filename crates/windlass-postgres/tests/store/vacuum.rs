//! Dead rows: the leader vacuums them, and they do not delay renewals and figures.

use std::sync::Arc;

use tokio_postgres::Client;
use windlass_conformance::cases::rig::{Rig, task};
use windlass_core::{Claimed, Outcome, Store as _, TaskId, WorkerReport, store::Retention};
use windlass_postgres::{Options, PostgresStore};

use crate::{
    place::{Place, tasks},
    support::PostgresHarness,
    wait::until,
};

/// More dead rows than a vacuum needs to be worth its cost.
const DEAD: usize = 41_000;

/// Tasks that were added and removed; autovacuum is too slow to see them within a test.
async fn leave_dead_rows(place: &Place) {
    let client = place.client().await;
    let text = format!(
        "INSERT INTO {{s}}.task (id, ready_seq, lane, priority, lease, attempt, max_attempts, crashes, state, encoding, payload)
         SELECT n, n, 1, 0, 0, 0, 10, 0, 1, 0, '' FROM generate_series(1, {DEAD}) AS n;
         DELETE FROM {{s}}.task"
    );
    client.batch_execute(&place.of(&text)).await.unwrap();
    // So that the server shows its figures at once.
    client.batch_execute("SELECT pg_stat_force_next_flush()").await.unwrap();
    until("the server has counted", async || dead(place).await >= DEAD as i64).await;
}

const DEAD_ROWS: &str = "SELECT pg_stat_get_dead_tuples('{s}.task'::regclass)";
const VACUUMS: &str = "SELECT pg_stat_get_vacuum_count('{s}.task'::regclass)";

async fn dead(place: &Place) -> i64 {
    place.number(DEAD_ROWS).await
}

async fn lead(store: &PostgresStore) {
    store.retain(&Retention::default()).await.unwrap();
}

#[tokio::test]
async fn the_leader_cleans_up_what_tasks_left_behind() {
    let place = Place::new();
    let store = place.make().await;
    store.enqueue(tasks("a", 1)).await.unwrap();
    leave_dead_rows(&place).await;
    until("they are removed", async || {
        lead(&store).await;
        dead(&place).await < 100 && place.number(VACUUMS).await > 0
    })
    .await;
}

#[tokio::test]
async fn with_the_setting_off_autovacuum_does_it_alone() {
    let place = Place::new();
    drop(place.make().await);
    let options = Options { vacuum: false, ..place.options() };
    let store = PostgresStore::open(&place.location(), options).await.unwrap();
    leave_dead_rows(&place).await;
    lead(&store).await;
    let watching = place.make().await;
    // The first store would have vacuumed before the other one does.
    drop(store);
    place.execute("UPDATE {s}.leader SET expires_at = 0").await;
    assert_eq!(place.number(VACUUMS).await, 0);
    lead(&watching).await;
    until("the one with the setting has cleaned up", async || place.number(VACUUMS).await > 0).await;
}

/// Each settled task counts, also one whose row does not exist any more.
#[tokio::test]
async fn a_leader_that_settles_many_tasks_cleans_up_at_once() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    rig.add(task("a")).await;
    let mut worker = rig.worker().await;
    let claimed = worker.claim_one().await;
    let removed = |id| (Claimed { id: TaskId::from_raw(id), ..claimed.clone() }, Outcome::Done(None));
    let ends = (1..=50_000).map(removed).collect();
    worker.store.retain(&Retention::default()).await.unwrap();
    worker.settle(ends).await;
    until("it has cleaned up", async || harness.number(VACUUMS).await > 0).await;
}

/// Holds an advisory lock until it is dropped.
async fn lock(harness: &PostgresHarness, number: i64) -> Client {
    let client = harness.client().await;
    client.query_one("SELECT pg_advisory_lock($1)", &[&number]).await.unwrap();
    client
}

/// A statement that waits for an advisory lock before it reads.
fn waits(text: &str, number: i64) -> String {
    let waits = format!("WITH held_up AS MATERIALIZED (SELECT pg_advisory_xact_lock_shared({number}))\n");
    format!(
        "{waits}{}",
        text.replace("\nFROM windlass.task AS t\nWHERE", "\nFROM held_up, windlass.task AS t\nWHERE")
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renewal_does_not_wait_for_a_comparison_of_leases() {
    const LOCK: i64 = 7_301;
    let held = waits(include_str!("../../sql/leases/held.sql"), LOCK);
    let harness = PostgresHarness::new().with(move |mut options| {
        options.replaced = vec![("held".to_owned(), held.clone())];
        options
    });
    let rig = Rig::open(&harness).await;
    let worker = rig.worker().await;
    let id = worker.id;
    let holder = lock(&harness, LOCK).await;
    let store = Arc::clone(&rig.store);
    let comparison = tokio::spawn(async move { store.reconcile(id, u64::MAX, &[]).await });
    until("the comparison waits", async || {
        let text =
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 7301 AND NOT granted";
        harness.client().await.query_one(text, &[]).await.unwrap().get::<_, i64>(0) == 1
    })
    .await;
    rig.store.renew(id, WorkerReport::default()).await.unwrap();
    assert!(!comparison.is_finished(), "it was answered before the renewal");
    drop(holder);
    let _ = comparison.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn figures_that_take_too_long_are_those_of_the_leader() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    rig.store.enqueue(vec![task("a"); 3]).await.unwrap();
    rig.store.retain(&Retention::default()).await.unwrap();
    let slow = include_str!("../../sql/upkeep/depth_now.sql").replace(
        "SELECT d.lane, d.state, count(*)\n",
        "SELECT d.lane, d.state, count(*) + 0 * count(nextval('windlass.tried')) + count(pg_sleep(20))\n",
    );
    harness.execute("CREATE SEQUENCE {s}.tried").await;
    let other = harness
        .open_again(move |options| options.replaced = vec![("depth_now".to_owned(), slow.clone())])
        .await;
    rig.store.enqueue(vec![task("a"); 4]).await.unwrap();
    for _ in 0..2 {
        let lanes = other.lane_records().await.unwrap();
        assert_eq!(lanes[0].depth.ready, 3, "what the leader counted last");
    }
    // A call that took too long is not repeated for the next caller. A sequence keeps its numbers when a
    // statement is cancelled.
    assert_eq!(harness.number("SELECT last_value FROM {s}.tried").await, 1);
}
