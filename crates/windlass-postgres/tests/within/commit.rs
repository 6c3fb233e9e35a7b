//! A committed transaction adds its tasks, a rolled back one adds nothing, and an open one delays no other
//! caller.

use std::time::Duration;

use windlass_conformance::{
    Harness,
    cases::rig::{Rig, in_queue, keyed, name, task},
};
use windlass_core::{Error, OnFailure, Outcome, Payload, RetryPolicy, Start, State, TraceContext};

use crate::{
    desk::{add, caller, number, rows, schema},
    support::PostgresHarness,
};

#[tokio::test]
async fn a_task_is_claimed_after_the_commit_and_not_before() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    let (mut db, mut worker) = (caller().await, rig.worker().await);
    let mut tx = db.transaction().await.unwrap();
    let first = add(&rig, &mut tx, &task("a")).await.unwrap();
    let second = add(&rig, &mut tx, &task("a")).await.unwrap();
    assert!(!first.existing && first.id < second.id);
    assert_eq!(worker.claim_ids(10).await, []);
    assert_eq!(rig.store.task(first.id).await.unwrap(), None);
    tx.commit().await.unwrap();
    assert_eq!(worker.claim_ids(10).await, [first.id, second.id]);
    assert_eq!(rig.task(first.id).await.max_attempts, 10);
    rig.assert_sound().await;
}

#[tokio::test]
async fn a_rollback_leaves_nothing_not_even_the_key_or_the_lane() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    let mut db = caller().await;
    let mut tx = db.transaction().await.unwrap();
    let gone = add(&rig, &mut tx, &keyed("k")).await.unwrap();
    add(&rig, &mut tx, &in_queue("b", "other")).await.unwrap();
    tx.rollback().await.unwrap();
    assert_eq!(rows(&rig).await, 0);

    let mut tx = db.transaction().await.unwrap();
    let again = add(&rig, &mut tx, &keyed("k")).await.unwrap();
    assert!(!again.existing && again.id != gone.id);
    // A rollback to a savepoint removes what was added after it, and only that.
    let mut inner = tx.savepoint("s").await.unwrap();
    add(&rig, &mut inner, &in_queue("b", "other")).await.unwrap();
    inner.rollback().await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(rows(&rig).await, 3, "a task, its key and its lane");
    assert_eq!(rig.worker().await.claim_ids(10).await, [again.id]);
}

#[tokio::test]
async fn everything_that_a_task_may_bring_arrives() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    let mut db = caller().await;
    let policy = RetryPolicy { base: Duration::from_secs(3), ..RetryPolicy::default() };
    let mut rich = in_queue("a", "mail");
    rich.payload = Payload::bytes([0, 159, 255]);
    rich.priority = -7;
    rich.max_attempts = Some(3);
    rich.timeout = Some(Duration::from_micros(1));
    rich.retry = Some(policy);
    rich.job = Some(name("tenant-7"));
    let mut tx = db.transaction().await.unwrap();
    let id = add(&rig, &mut tx, &rich).await.unwrap().id;
    tx.commit().await.unwrap();

    let claimed = rig.worker().await.claim_one().await;
    assert_eq!((claimed.id, &claimed.payload, claimed.priority), (id, &rich.payload, -7));
    assert_eq!((claimed.max_attempts, claimed.timeout), (3, Some(Duration::from_millis(1))));
    assert_eq!((claimed.retry, claimed.job.clone()), (Some(policy), Some(name("tenant-7"))));
    assert_eq!(claimed.lane.queue.as_str(), "mail");
}

#[tokio::test]
async fn scheduled_tasks_wait_for_the_clock_of_the_store() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    let (mut db, now) = (caller().await, harness.now().await);
    let with = |start| windlass_core::NewTask { start, ..task("a") };
    let mut tx = db.transaction().await.unwrap();
    let delayed = add(&rig, &mut tx, &with(Start::In(Duration::from_mins(1)))).await.unwrap().id;
    let at = with(Start::At(now.after(Duration::from_mins(2))));
    let dated = add(&rig, &mut tx, &at).await.unwrap().id;
    let past = add(&rig, &mut tx, &with(Start::At(now.before(Duration::from_mins(1))))).await.unwrap().id;
    tx.commit().await.unwrap();

    assert_eq!(rig.task(delayed).await.due_at, Some(now.after(Duration::from_mins(1))));
    assert_eq!(rig.task(dated).await.due_at, Some(now.after(Duration::from_mins(2))));
    assert_eq!((rig.state(delayed).await, rig.state(past).await), (State::Scheduled, State::Ready));
    rig.advance(Duration::from_secs(61)).await;
    assert_eq!(rig.promote().await, 1);
    assert_eq!(rig.state(delayed).await, State::Ready);
    rig.assert_sound().await;
}

#[tokio::test]
async fn what_breaks_a_rule_is_refused_before_anything_is_sent() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    let mut db = caller().await;
    let mut tx = db.transaction().await.unwrap();
    let too_large = windlass_core::NewTask { payload: Payload::bytes(vec![0; (1 << 20) + 1]), ..task("a") };
    let no_attempts = windlass_core::NewTask { max_attempts: Some(0), ..task("a") };
    let no_workflow = windlass_core::NewTask { on_failure: Some(OnFailure::Skip), ..task("a") };
    for bad in [too_large, no_attempts, no_workflow, keyed("")] {
        let error = add(&rig, &mut tx, &bad).await.unwrap_err();
        assert!(matches!(error, Error::Invalid(_)), "{error}");
    }
    // The transaction can still be used.
    add(&rig, &mut tx, &task("a")).await.unwrap();
    tx.commit().await.unwrap();
}

/// An open transaction delays neither callers that want the same new lane, nor the settlement of a task whose
/// key it has read. A call that waited for it would never end.
#[tokio::test]
async fn an_open_transaction_delays_no_other_caller() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    let (mut db, mut worker) = (caller().await, rig.worker().await);
    let id = rig.add(keyed("k")).await;
    let running = worker.claim_one().await;

    let mut tx = db.transaction().await.unwrap();
    let seen = add(&rig, &mut tx, &keyed("k")).await.unwrap();
    assert_eq!((seen.id, seen.existing), (id, true));
    let held = add(&rig, &mut tx, &in_queue("b", "fresh")).await.unwrap().id;
    add(&rig, &mut tx, &keyed("another")).await.unwrap();

    worker.end(&running, Outcome::Done(None)).await;
    assert_eq!(rig.state(id).await, State::Done);
    let beside = rig.add(in_queue("b", "fresh")).await;
    let keyed_beside = rig.add(keyed("third")).await;
    let mut other = caller().await;
    let mut tx_beside = other.transaction().await.unwrap();
    let within = add(&rig, &mut tx_beside, &in_queue("b", "fresh")).await.unwrap().id;
    tx_beside.commit().await.unwrap();
    let mut found = worker.claim_ids(10).await;
    found.sort_unstable();
    assert_eq!(found, [beside, keyed_beside, within]);

    tx.commit().await.unwrap();
    assert!(worker.claim_ids(10).await.contains(&held));
    assert_eq!(number(&rig, "SELECT count(*) FROM {s}.lane WHERE queue = 'fresh'").await, 1);
    rig.assert_sound().await;
}

#[tokio::test]
async fn transactions_that_make_the_same_lanes_both_commit() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    let (mut one, mut two) = (caller().await, caller().await);
    let (mut first, mut second) = (one.transaction().await.unwrap(), two.transaction().await.unwrap());
    for queue in ["x", "y"] {
        add(&rig, &mut first, &in_queue("a", queue)).await.unwrap();
    }
    for queue in ["y", "x"] {
        add(&rig, &mut second, &in_queue("a", queue)).await.unwrap();
    }
    let (first, second) = tokio::join!(first.commit(), second.commit());
    first.unwrap();
    second.unwrap();
    assert_eq!(rig.worker().await.claim_ids(10).await.len(), 4);
    rig.assert_sound().await;
}

/// Claims start where the last one stopped. A task that was added before that and committed after it must
/// still be found.
#[tokio::test]
async fn a_task_of_a_slow_transaction_is_found_by_the_next_claim() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    let (mut db, mut worker) = (caller().await, rig.worker().await);
    rig.add(task("a")).await;
    worker.claim_one().await;
    let mut tx = db.transaction().await.unwrap();
    let slow = add(&rig, &mut tx, &task("a")).await.unwrap().id;
    let slow_too = add(&rig, &mut tx, &task("a")).await.unwrap().id;
    for _ in 0..3 {
        let id = rig.add(task("a")).await;
        assert_eq!(worker.claim_ids(1).await, [id]);
    }
    // As if it had begun long ago.
    let began =
        "CREATE OR REPLACE FUNCTION {s}.began_ms() RETURNS bigint LANGUAGE sql STABLE AS 'SELECT 0::bigint'";
    caller().await.batch_execute(&began.replace("{s}", &schema(&rig))).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(worker.claim_ids(1).await, [slow]);
    assert_eq!(worker.claim_ids(1).await, [slow_too]);
}

#[tokio::test]
async fn a_trace_comes_with_the_task_from_rust_and_from_sql() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    let (mut db, mut worker) = (caller().await, rig.worker().await);
    let trace = |n: u64| TraceContext { trace_id: 7, span_id: n, sampled: true };
    let traced = |n: u64| windlass_core::NewTask { trace: Some(trace(n)), ..task("a") };

    let mut tx = db.transaction().await.unwrap();
    add(&rig, &mut tx, &traced(1)).await.unwrap();
    add(&rig, &mut tx, &traced(2)).await.unwrap();
    tx.commit().await.unwrap();

    let tx = db.transaction().await.unwrap();
    let set = format!("SET LOCAL w3c.traceparent = '{}'", trace(3));
    tx.batch_execute(&set).await.unwrap();
    let call = "SELECT {s}.enqueue('a')".replace("{s}", &schema(&rig));
    tx.query(&call, &[]).await.unwrap();
    tx.commit().await.unwrap();

    let mut tx = db.transaction().await.unwrap();
    add(&rig, &mut tx, &task("a")).await.unwrap();
    tx.commit().await.unwrap();

    let garbage = format!("SET w3c.traceparent = '{}'", "x".repeat(200));
    db.batch_execute(&garbage).await.unwrap();
    db.query(&call, &[]).await.unwrap();

    let seen: Vec<_> = worker.claim(10).await.into_iter().map(|task| task.trace).collect();
    assert_eq!(seen, [Some(trace(1)), Some(trace(2)), Some(trace(3)), None, None]);
}
