//! What one process does for all: which process that is, and that no other does it.

use std::{sync::Arc, time::Duration};

use windlass_conformance::cases::rig::{Rig, task};
use windlass_core::{Count, Precision, State, Store, store::Retention};
use windlass_postgres::{PostgresStore, inside};

use crate::support::PostgresHarness;

const TERM: &str = "SELECT term FROM {s}.leader";
/// Longer than a term lasts without being extended.
const OVER: Duration = Duration::from_secs(16);

fn at_once() -> Retention {
    Retention { history_age: Duration::from_secs(1), ..Retention::default() }
}

/// Two stores, and a task that has ended long enough ago to be removed.
async fn two<'h>(harness: &'h PostgresHarness, rig: &Rig<'h>) -> (Arc<PostgresStore>, Arc<PostgresStore>) {
    end_one(rig).await;
    (harness.open_again(|_| {}).await, harness.open_again(|_| {}).await)
}

async fn end_one(rig: &Rig<'_>) {
    let id = rig.add(task("a")).await;
    rig.cancel(id).await.unwrap();
    rig.advance(Duration::from_secs(2)).await;
}

#[tokio::test]
async fn one_of_two_leads_and_the_other_takes_over_under_a_new_term() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    let (one, two) = two(&harness, &rig).await;
    assert_eq!(one.retain(&at_once()).await.unwrap().moved, 1);
    let first = harness.number(TERM).await;
    end_one(&rig).await;
    assert_eq!(two.retain(&at_once()).await.unwrap().moved, 0, "the other one leads");
    assert_eq!(one.retain(&at_once()).await.unwrap().moved, 1);
    assert_eq!(harness.number(TERM).await, first, "it goes on in its term");
    end_one(&rig).await;
    rig.advance(OVER).await;
    assert_eq!(two.retain(&at_once()).await.unwrap().moved, 1, "the term is over");
    assert_eq!(harness.number(TERM).await, first + 1);
    end_one(&rig).await;
    assert_eq!(one.retain(&at_once()).await.unwrap().moved, 0);
    // A leader that returns after its own term was over gets a new term too.
    rig.advance(OVER).await;
    assert_eq!(two.retain(&at_once()).await.unwrap().moved, 1);
    assert_eq!(harness.number(TERM).await, first + 2);
}

#[tokio::test]
async fn a_leader_whose_term_is_over_writes_nothing() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    let (one, two) = two(&harness, &rig).await;
    one.retain(&Retention::default()).await.unwrap();
    let term = harness.number(TERM).await;
    rig.advance(OVER).await;
    assert_eq!(inside::remove_history(&one, term).await, Ok(0), "its time is over");
    two.retain(&Retention::default()).await.unwrap();
    assert_eq!(inside::remove_history(&one, term).await, Ok(0), "another one leads");
    assert_eq!(inside::remove_history(&one, term + 1).await, Ok(0), "under a term that is not its own");
    assert_eq!(inside::remove_history(&two, term).await, Ok(0), "nor may that one under an old term");
    assert_eq!(rig.all().await.len(), 1);
    assert_eq!(inside::remove_history(&two, term + 1).await, Ok(1));
}

#[tokio::test]
async fn many_tasks_are_counted_by_the_leader() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    for n in [10_000, 150] {
        rig.store.enqueue(vec![task("a"); n]).await.unwrap();
    }
    rig.add_many("b", 3).await;
    let ready = async || -> Vec<Count> {
        let lanes = rig.store.lane_records().await.unwrap();
        lanes.iter().map(|lane| lane.depth.count(State::Ready)).collect()
    };
    let before = ready().await;
    assert!(
        before.iter().map(|count| count.n).sum::<u64>() >= 10_000,
        "as far as a look reaches: {before:?}"
    );
    assert!(before[0].n <= 10_000, "the leader has not counted yet: {before:?}");
    assert!(before.iter().all(|count| count.precision == Precision::AtLeast), "and it says so: {before:?}");
    rig.store.retain(&Retention::default()).await.unwrap();
    let after = ready().await;
    assert_eq!((after[0].to_string(), after[1].n), ("~10,150".to_owned(), 3));
    let dead = rig.store.lane_records().await.unwrap()[0].depth.count(State::Dead);
    assert_eq!(dead.precision, Precision::Exact, "small figures are exact");
    let other = harness.open_again(|_| {}).await;
    assert_eq!(other.lane_records().await.unwrap()[0].depth.ready, 10_150, "the figures are for all");
}
