//! Moments between two transactions at a gate; the test holds each of them open.

use std::{pin::Pin, sync::Arc, time::Duration};

use tokio_postgres::Client;
use windlass_conformance::cases::rig::{MANY, Rig, name, of_job, step_of};
use windlass_core::{
    JobChange, JobRecord, NewTask, Outcome, Result, Rules, Start, State, Store, TaskId, store::Retention,
};
use windlass_postgres::{Schema, enqueue_within};

use crate::support::PostgresHarness;

/// A check under way.
pub type Running<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;
/// A rule of this store only.
pub type Check = for<'a> fn(&'a PostgresHarness) -> Running<'a>;

/// Makes a test of each, and a table of them for the tests with broken statements.
macro_rules! checks {
    ($($check:ident,)*) => {
        pub const CHECKS: &[(&str, Check)] = &[
            $((concat!("own::", stringify!($check)), |harness| Box::pin($check(harness))),)*
        ];

        mod tests {
            $(
                #[tokio::test]
                async fn $check() {
                    super::$check(&crate::support::PostgresHarness::new()).await;
                }
            )*
        }
    };
}

checks! {
    no_commit_leaves_more_ready_than_the_limit_allows,
    a_limit_that_falls_waits_for_a_claim_under_way,
    a_task_that_was_claimed_meanwhile_is_not_taken_back,
    a_place_about_to_be_passed_on_is_taken,
    the_leader_gives_out_unused_room,
    each_of_two_new_workers_has_all_jobs_looked_at,
    a_late_step_comes_after_those_committed_before_it,
    steps_keep_the_order_of_append_when_the_clock_goes_back,
}

/// Refuses a commit that leaves a job with ready tasks above its limit.
const GUARD: &str = "
CREATE FUNCTION {s}.guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (
    SELECT 1 FROM {s}.job AS j
    WHERE j.name = NEW.job AND j.concurrency < (SELECT count(*) FROM {s}.task AS t WHERE t.job = j.name AND t.state IN (1, 2))
      AND EXISTS (SELECT 1 FROM {s}.task AS t WHERE t.job = j.name AND t.state = 1)
  ) THEN
    RAISE EXCEPTION 'more of job % is ready than its limit allows', NEW.job;
  END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER guard AFTER INSERT OR UPDATE ON {s}.task DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW WHEN (NEW.job IS NOT NULL) EXECUTE FUNCTION {s}.guard();
";

/// The first worker's admission has not yet run when the second worker registers, and the second one's may
/// run after the first worker is there.
async fn each_of_two_new_workers_has_all_jobs_looked_at(harness: &PostgresHarness) {
    let rig = Rig::open(harness).await;
    rig.limit("j", 2).await;
    rig.add_all(vec![of_job("j"); 3]).await;
    assert_eq!(rig.figures("j").await, (0, 0, 3), "there is no worker");
    let row = "
        INSERT INTO {s}.worker (
          lease_ttl_ms, min_claim_no, registered_at, renewed_at, expires_at, pid, slots, available, in_flight, draining, host, version,
          kinds, queues
        )
        SELECT 30000, 0, n.now, n.now, n.now + 30000, 1, 1, 1, 0, false, 'other', '0', ARRAY['other'], ARRAY[]::text[]
        FROM (SELECT {s}.now_ms() AS now) AS n";
    harness.execute(row).await;
    let _worker = rig.worker().await;
    assert_eq!(rig.figures("j").await, (2, 0, 1));
}

/// Before admission could correct such a state, a worker could claim the task: so no commit may leave it even
/// for a moment.
async fn no_commit_leaves_more_ready_than_the_limit_allows(harness: &PostgresHarness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    harness.execute(GUARD).await;
    rig.limit("j", 2).await;
    rig.add_all(vec![of_job("j"); 6]).await;
    let later = NewTask { start: Start::In(Duration::from_secs(1)), ..of_job("j") };
    rig.add_all(vec![later; 3]).await;
    let running = worker.claim(MANY).await;
    rig.limit("j", 1).await;
    // More tasks run than the limit allows, since it fell. A task that is handed back, becomes due or loses
    // its worker has no room.
    worker.end(&running[0], Outcome::Release).await;
    assert_eq!(rig.figures("j").await, (0, 1, 5));
    rig.advance(Duration::from_secs(2)).await;
    assert_eq!(rig.promote().await, 3);
    assert_eq!(rig.figures("j").await, (0, 1, 8));
    rig.limit("j", 3).await;
    assert_eq!(worker.claim(MANY).await.len(), 2);
    rig.limit("j", 1).await;
    assert_eq!(rig.let_die(worker).await, 3);
    let mut heir = rig.worker().await;
    for left in (0..9).rev() {
        let claimed = heir.claim_one().await;
        assert_eq!(rig.figures("j").await, (0, 1, left));
        heir.finish(&claimed).await;
    }
    rig.assert_sound().await;
}

/// Sets a limit in the background.
fn set_limit(store: &Arc<dyn Store>, limit: u32) -> tokio::task::JoinHandle<Result<JobRecord>> {
    let (store, change) =
        (Arc::clone(store), JobChange { concurrency: Some(Some(limit)), ..JobChange::default() });
    tokio::spawn(async move { store.gates().set_job(&name("j"), &change).await })
}

/// Looks until a session waits for this connection, or until the committed limit of the job is 0. Answers
/// whether the limit was first.
async fn is_in_force_first(harness: &PostgresHarness, holder: &Client) -> bool {
    let pid: i32 = holder.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    let watcher = harness.client().await;
    let look = format!(
        "SELECT EXISTS (SELECT 1 FROM pg_stat_activity AS a WHERE {pid} = ANY (pg_blocking_pids(a.pid))),
           EXISTS (SELECT 1 FROM \"{}\".job WHERE concurrency = 0)",
        harness.schema()
    );
    loop {
        let row = watcher.query_one(&look, &[]).await.unwrap();
        let (is_waited_for, is_in_force): (bool, bool) = (row.get(0), row.get(1));
        if is_waited_for || is_in_force {
            return is_in_force;
        }
    }
}

/// A claim under way may still roll back. So the limit must wait for the claim: once it is in force, no ready
/// task may be above it.
async fn a_limit_that_falls_waits_for_a_claim_under_way(harness: &PostgresHarness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    rig.limit("j", 1).await;
    rig.add(of_job("j")).await;
    let claimer = harness.client().await;
    let lock = format!("BEGIN; SELECT 1 FROM \"{}\".task WHERE state = 1 FOR UPDATE", harness.schema());
    claimer.batch_execute(&lock).await.unwrap();
    let setting = set_limit(&rig.store, 0);
    assert!(!is_in_force_first(harness, &claimer).await, "a limit of 0 with a ready task");
    claimer.batch_execute("ROLLBACK").await.unwrap();
    setting.await.unwrap().unwrap();
    assert_eq!(rig.figures("j").await, (0, 0, 1));
    assert_eq!(worker.claim_ids(MANY).await, []);
    rig.assert_sound().await;
}

async fn a_task_that_was_claimed_meanwhile_is_not_taken_back(harness: &PostgresHarness) {
    let rig = Rig::open(harness).await;
    let worker = rig.worker().await;
    rig.limit("j", 1).await;
    let id = rig.add(of_job("j")).await;
    let claimer = harness.client().await;
    let claim = format!(
        "BEGIN; UPDATE \"{}\".task SET state = 2, ready_seq = NULL, worker = {}, claim_no = 1, lease = 1, attempt = 1",
        harness.schema(),
        worker.id.0
    );
    claimer.batch_execute(&claim).await.unwrap();
    let setting = set_limit(&rig.store, 0);
    is_in_force_first(harness, &claimer).await;
    claimer.batch_execute("COMMIT").await.unwrap();
    setting.await.unwrap().unwrap();
    assert_eq!(rig.state(id).await, State::Running);
    assert_eq!(rig.figures("j").await, (0, 1, 0), "what runs goes on above the new limit");
    rig.assert_sound().await;
}

/// The process of a settlement died before it could pass the place on, and another transaction has just taken
/// note of the place.
async fn a_place_about_to_be_passed_on_is_taken(harness: &PostgresHarness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    rig.limit("j", 2).await;
    rig.add_all(vec![of_job("j"); 4]).await;
    let running = worker.claim(MANY).await;
    assert_eq!(running.len(), 2);
    harness
        .execute(&format!(
            "DELETE FROM {{s}}.task WHERE id = {}; INSERT INTO {{s}}.freed (jobs, places) VALUES ('{{j}}', '{{1}}')",
            running[0].id.raw()
        ))
        .await;
    let admitter = harness.client().await;
    let take = format!("SELECT 1 FROM \"{}\".freed FOR UPDATE", harness.schema());
    admitter.batch_execute("BEGIN").await.unwrap();
    assert_eq!(admitter.query(&take, &[]).await.unwrap().len(), 1);
    rig.add(of_job("j")).await;
    assert_eq!(rig.figures("j").await, (0, 1, 3), "one runs and one place is about to be passed on");
    admitter.batch_execute("ROLLBACK").await.unwrap();
    rig.store.admit(MANY).await.unwrap();
    assert_eq!(rig.figures("j").await, (1, 1, 2));
    rig.assert_sound().await;
}

/// There was no worker when the tasks were added, and the first worker died before admission looked at the
/// jobs: nothing in `gate_todo` names them.
async fn the_leader_gives_out_unused_room(harness: &PostgresHarness) {
    let rig = Rig::open(harness).await;
    rig.limit("limited", 2).await;
    rig.limit("partly", 2).await;
    rig.worker().await.claim(MANY).await;
    for job in ["limited", "partly", "unlimited"] {
        rig.add_all(vec![of_job(job); 4]).await;
    }
    harness
        .execute(
            "UPDATE {s}.task SET state = 3, ready_seq = NULL
             WHERE state = 1 AND (job <> 'partly' OR id = (SELECT min(id) FROM {s}.task WHERE job = 'partly'));
             DELETE FROM {s}.gate_todo",
        )
        .await;
    rig.store.admit(MANY).await.unwrap();
    assert_eq!(rig.figures("limited").await, (0, 0, 4), "an admission does not help: gate_todo is empty");
    rig.store.retain(&Retention::default()).await.unwrap();
    assert_eq!(rig.figures("limited").await, (2, 0, 2));
    assert_eq!(rig.figures("partly").await, (2, 0, 2));
    assert_eq!(rig.figures("unlimited").await, (4, 0, 0));
    rig.assert_sound().await;
}

/// Appends a step inside the caller's transaction.
async fn append(
    harness: &PostgresHarness,
    tx: &mut tokio_postgres::Transaction<'_>,
    step: &NewTask,
) -> TaskId {
    let schema = Schema::new(&harness.schema()).unwrap();
    enqueue_within(tx, &schema, &Rules::default(), step).await.unwrap().id
}

async fn a_late_step_comes_after_those_committed_before_it(harness: &PostgresHarness) {
    let rig = Rig::open(harness).await;
    let (mut worker, mut db) = (rig.worker().await, harness.client().await);
    let mut tx = db.transaction().await.unwrap();
    let slow = append(harness, &mut tx, &step_of("w")).await;
    let quick = rig.add_all(vec![step_of("w"); 2]).await;
    assert!(slow < quick[0]);
    let first = worker.claim_one().await;
    assert_eq!(first.id, quick[0]);
    tx.commit().await.unwrap();
    assert_eq!(worker.claim_ids(MANY).await, [], "one step at a time");
    assert_eq!(rig.states(&[slow, quick[1]]).await, [State::Waiting; 2]);
    worker.finish(&first).await;
    for id in [quick[1], slow] {
        let step = worker.claim_one().await;
        assert_eq!(step.id, id);
        worker.finish(&step).await;
    }
    assert_eq!(rig.workflow("w").await, None);
    rig.assert_sound().await;
}

async fn steps_keep_the_order_of_append_when_the_clock_goes_back(harness: &PostgresHarness) {
    let rig = Rig::open(harness).await;
    let (mut worker, mut db) = (rig.worker().await, harness.client().await);
    let mut tx = db.transaction().await.unwrap();
    let first = append(harness, &mut tx, &step_of("w")).await;
    harness.execute("UPDATE {s}.test_clock SET ms = ms - 60000").await;
    let second = append(harness, &mut tx, &step_of("w")).await;
    assert!(second < first, "ids follow the clock");
    harness.execute("UPDATE {s}.test_clock SET ms = ms + 60000").await;
    tx.commit().await.unwrap();
    for id in [first, second] {
        let step = worker.claim_one().await;
        assert_eq!(step.id, id);
        worker.finish(&step).await;
    }
    rig.assert_sound().await;
}
