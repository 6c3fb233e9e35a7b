//! Comparisons of leases read little, however many tasks have ended, and a comparison that was cut off is no
//! answer.

use tokio_postgres::Client;
use windlass_conformance::cases::rig::{Rig, lease_of};
use windlass_core::{Error, LeaseRef, State};

use crate::support::PostgresHarness;

/// Tasks that ended while a snapshot was held.
const ENDED: i64 = 20_000;
/// Index entries that a few statements for a few leases may read.
const ENTRIES_MAX: i64 = 100;

const HELD: &str = include_str!("../../sql/leases/held.sql");

/// A store with another statement for the leases of a worker.
fn with_held(from: &str, to: &str) -> PostgresHarness {
    let text = HELD.replace(from, to);
    assert_ne!(text, HELD, "{from}");
    PostgresHarness::new().with(move |mut options| {
        options.replaced = vec![("held".to_owned(), text.clone())];
        options
    })
}

/// A snapshot that lasts as long as the connection.
async fn hold_snapshot(harness: &PostgresHarness) -> Client {
    let client = harness.client().await;
    client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1").await.unwrap();
    client
}

#[tokio::test]
async fn comparisons_and_undone_claims_read_no_ended_tasks() {
    // The server counts the reads of a statement when its transaction ends, not a second later.
    let harness = with_held(
        "\nFROM windlass.task AS t\n",
        "\nFROM (SELECT pg_stat_force_next_flush() OFFSET 0) AS counted, windlass.task AS t\n",
    );
    let rig = Rig::open(&harness).await;
    rig.add_many("a", 3).await;
    let mut worker = rig.worker().await;
    let leases: Vec<LeaseRef> = worker.claim(3).await.iter().map(lease_of).collect();
    let compared = rig.store.reconcile(worker.id, worker.claim_no, &leases).await.unwrap();
    assert_eq!((compared.handed_back, compared.lost), (0, vec![]));
    let _holder = hold_snapshot(&harness).await;
    harness
        .execute(&format!(
            "INSERT INTO {{s}}.task (
               id, worker, claim_no, lane, priority, lease, attempt, max_attempts, crashes, state, encoding, payload
             )
             SELECT n, {}, 1, 1, 0, 1, 1, 10, 0, 2, 0, '' FROM generate_series(1, {ENDED}) AS n;
             DELETE FROM {{s}}.task WHERE id <= {ENDED}",
            worker.id.0
        ))
        .await;
    let read =
        async || harness.number("SELECT pg_stat_get_tuples_returned('{s}.task_running'::regclass)").await;
    let before = read().await;
    let compared = rig.store.reconcile(worker.id, worker.claim_no, &leases[1..]).await.unwrap();
    assert_eq!((compared.handed_back, compared.lost), (1, vec![]), "one is not named any more");
    rig.store.unclaim(worker.id, worker.claim_no + 1).await.unwrap();
    let entries = read().await - before;
    assert!(entries <= ENTRIES_MAX, "{entries} entries");
    rig.assert_sound().await;
}

#[tokio::test]
async fn a_lease_that_was_named_before_goes_back() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    let ids = rig.add_many("a", 3).await;
    let mut worker = rig.worker().await;
    let leases: Vec<LeaseRef> = worker.claim(3).await.iter().map(lease_of).collect();
    for (named, handed_back) in [(&leases[..], 0), (&leases[1..], 1), (&leases[2..], 1), (&leases[2..], 0)] {
        let compared = rig.store.reconcile(worker.id, worker.claim_no, named).await.unwrap();
        assert_eq!((compared.handed_back, compared.lost), (handed_back, vec![]));
    }
    assert_eq!(rig.states(&ids).await, [State::Ready, State::Ready, State::Running]);
    rig.assert_sound().await;
}

#[tokio::test]
async fn a_comparison_that_is_cut_off_tells_only_losses() {
    let harness = with_held("WHERE t.state = 2", "WHERE pg_sleep(60) IS NOT NULL AND t.state = 2");
    let rig = Rig::open(&harness).await;
    rig.add_many("a", 2).await;
    let mut worker = rig.worker().await;
    let lease = lease_of(&worker.claim(2).await[0]);
    let never = LeaseRef { lease: lease.lease + 1, ..lease };
    let cut_off = rig.store.reconcile(worker.id, worker.claim_no, &[lease]).await;
    assert!(matches!(cut_off, Err(Error::Unavailable(_))), "nothing more is held? {cut_off:?}");
    let compared = rig.store.reconcile(worker.id, worker.claim_no, &[lease, never]).await.unwrap();
    assert_eq!((compared.handed_back, compared.lost), (0, vec![never]));
}
