//! One task on its way: workers may get it before it is on disk; its caller is answered after that.

use windlass_conformance::cases::rig::{Hand, Rig, task};
use windlass_core::{Error, Hint, NewTask, Store, TaskId};
use windlass_postgres::{Options, PostgresStore};
use windlass_scratch::{Cluster, ClusterOptions, Mode};

use crate::{
    doorbell::{hint, idle},
    place::{Place, count, tasks},
    support::PostgresHarness,
    wait::until,
};

/// The server writes asynchronous commits only after ten seconds: what no flush waited for is lost when it is
/// killed.
#[tokio::test]
async fn an_acknowledged_task_survives_a_crash_of_the_server() {
    let options = ClusterOptions::new().without_fsync().set("wal_writer_delay", "10s");
    let cluster = Cluster::start(&options).unwrap();
    let place = Place::at(&cluster.url());
    let store = place.make().await;
    for _ in 0..3 {
        let mut acknowledged = None;
        until("a task is acknowledged", async || {
            acknowledged = store.enqueue(tasks("a", 1)).await.ok();
            acknowledged.is_some()
        })
        .await;
        cluster.restart(Mode::Immediate).unwrap();
        let id = acknowledged.unwrap()[0].id;
        let mut found = None;
        until("the server answers", async || {
            found = store.task(id).await.ok();
            found.is_some()
        })
        .await;
        assert!(found.flatten().is_some(), "{id} is lost");
    }
    store.close().await.unwrap();
}

/// The same for a task that the server has already leased to a worker.
#[tokio::test]
async fn an_acknowledged_leased_task_survives_a_crash() {
    let options = ClusterOptions::new().without_fsync().set("wal_writer_delay", "10s");
    let cluster = Cluster::start(&options).unwrap();
    let harness = PostgresHarness::at(&cluster.url());
    let rig = Rig::open(&harness).await;
    rig.add(task("a")).await;
    let mut worker = rig.worker().await;
    worker.claim(10).await;
    let demand = worker.demand(1).await;
    let (enqueued, claimed, safe) = rig.store.enqueue_for(task("a"), &demand).await.unwrap();
    assert!(claimed.is_some());
    safe.wait().await.unwrap();
    let demand = worker.demand(1).await;
    rig.add(task("b")).await;
    let other = NewTask { max_attempts: Some(3), ..task("b") };
    let (ready, claimed, safe) = rig.store.enqueue_for(other, &demand).await.unwrap();
    assert!(claimed.is_none(), "another stands before it");
    safe.wait().await.unwrap();
    cluster.restart(Mode::Immediate).unwrap();
    for id in [enqueued.id, ready.id] {
        let mut found = None;
        until("the server answers", async || {
            found = rig.store.task(id).await.ok();
            found.is_some()
        })
        .await;
        assert!(found.flatten().is_some(), "{id} is lost");
    }
}

/// The task has been added, and it is unknown whether it will survive a crash.
#[tokio::test]
async fn a_task_whose_flush_failed_is_in_doubt() {
    let place = Place::new();
    let store = place.make().await;
    store.enqueue(tasks("a", 1)).await.unwrap();
    store.close().await.unwrap();
    let replaced = vec![("flush".to_owned(), "SELECT (1 / (random() * 0)::integer)::text".to_owned())];
    let options = Options { replaced, ..place.options() };
    let store = PostgresStore::open(&place.location(), options).await.unwrap();
    let answer = store.enqueue(tasks("a", 1)).await;
    assert!(matches!(answer, Err(Error::Unknown(_))), "{answer:?}");
    assert_eq!(count(&*store).await, 2);
    store.close().await.unwrap();
}

/// Behind a pooler the next statement may run on a server that never had the task, so the first one waits for
/// the disk.
#[tokio::test]
async fn a_task_behind_a_pooler_needs_no_second_statement() {
    let place = Place::new();
    let store = place.make().await;
    store.enqueue(tasks("a", 1)).await.unwrap();
    store.close().await.unwrap();
    let replaced = vec![("flush".to_owned(), "SELECT (1 / (random() * 0)::integer)::text".to_owned())];
    let options = Options { replaced, pooled: true, ..place.options() };
    let store = PostgresStore::open(&place.location(), options).await.unwrap();
    store.enqueue(tasks("a", 1)).await.unwrap();
    assert_eq!(count(&*store).await, 2);
    store.close().await.unwrap();
}

/// An older task that no process was told of: the test wrote its row.
const OLDER_TASK: &str = "
INSERT INTO {s}.task (id, ready_seq, lane, priority, lease, attempt, max_attempts, crashes, state, encoding, payload)
VALUES (7, nextval('{s}.seq'), 1, 0, 0, 0, 10, 0, 1, 0, '1')";

/// An idle worker that was told of one task, while an older ready task exists of which it was not told.
async fn told_of_one(harness: &PostgresHarness) -> (Hand<'_>, TaskId) {
    let rig = Rig::open(harness).await;
    rig.add(task("a")).await;
    let worker = idle(&rig).await;
    let mut hints = worker.store.hints();
    harness.execute(&OLDER_TASK.replace("{s}", &harness.schema())).await;
    let id = rig.add(task("a")).await;
    assert_eq!(hint(&mut hints).await, Hint::Ready);
    (worker, id)
}

async fn claim_ids(worker: &mut Hand<'_>) -> Vec<i64> {
    worker.claim(10).await.iter().map(|task| task.id.raw()).collect()
}

#[tokio::test]
async fn a_hint_of_one_task_finds_older_tasks_too() {
    let harness = PostgresHarness::new();
    let (mut worker, id) = told_of_one(&harness).await;
    let mut taken = claim_ids(&mut worker).await;
    assert!(taken.contains(&id.raw()));
    // This claim is empty if the first one took both tasks.
    taken.extend(claim_ids(&mut worker).await);
    taken.sort_unstable();
    assert_eq!(taken, [7, id.raw()]);
}

#[tokio::test]
async fn a_removed_task_is_not_waited_for() {
    let harness = PostgresHarness::new();
    let (mut worker, id) = told_of_one(&harness).await;
    harness.execute(&format!("DELETE FROM {}.task WHERE id = {}", harness.schema(), id.raw())).await;
    assert_eq!(claim_ids(&mut worker).await, [7]);
}
