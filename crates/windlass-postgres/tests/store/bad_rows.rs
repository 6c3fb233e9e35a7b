//! Rows that no correct program writes: they stop only their own tasks, not others.

use std::time::Duration;

use windlass_conformance::cases::rig::{Rig, SWEPT_AFTER, name, task};
use windlass_core::{
    NewTask, Outcome, State,
    store::{Filter, Redrive, Retention},
};

use crate::support::PostgresHarness;

/// Columns of a task that another program filled with nonsense.
const GARBAGE: [&str; 7] = [
    "log = '{}'",
    "log = '\"text\"'",
    "log = '[1, [2], null]'",
    "retry = 'soon'",
    "job = ''",
    "encoding = 99",
    "timeout_ms = -5",
];

/// A lane with a name that is not allowed, and a task in each state in it; and a task in a lane that does not
/// exist.
const LOST: &str = "
INSERT INTO {s}.lane (queue, kind) VALUES (E'bad\\nname', 'a');
INSERT INTO {s}.paused_queue (queue, paused_at) VALUES (E'worse\\nname', 0);
INSERT INTO {s}.task (id, ready_seq, due_at, ended_at, lane, priority, lease, attempt, max_attempts, crashes, state, encoding, payload)
SELECT n, CASE s.state WHEN 1 THEN nextval('{s}.seq') END, CASE s.state WHEN 0 THEN 1 END, CASE s.state WHEN 6 THEN 1 END,
  CASE WHEN n < 4 THEN (SELECT max(id) FROM {s}.lane) ELSE 999 END, 5, 0, 0, 3, 0, s.state, 0, '1'
FROM generate_series(1, 6) AS n, LATERAL (SELECT (ARRAY[0, 1, 6])[1 + n % 3]::smallint AS state) AS s;
INSERT INTO {s}.history (id, ended_at, lane, priority, lease, attempt, max_attempts, state, encoding, ran, payload)
SELECT 9, 1763000000000, max(id), 0, 1, 1, 3, 5, 0, true, '1' FROM {s}.lane;
";

#[tokio::test]
async fn garbage_in_a_row_stops_neither_claim_nor_end() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    let ids = rig.add_many("a", GARBAGE.len() + 1).await;
    for (garbage, id) in GARBAGE.iter().zip(&ids) {
        harness.execute(&format!("UPDATE {{s}}.task SET {garbage} WHERE id = {}", id.raw())).await;
    }
    let mut worker = rig.worker().await;
    let claimed = worker.claim(100).await;
    assert_eq!(claimed.iter().map(|task| task.id).collect::<Vec<_>>(), ids);
    let ends = claimed.into_iter().map(|task| (task, Outcome::retry_after(Duration::ZERO, "x"))).collect();
    assert_eq!(worker.settle(ends).await.fenced, []);
    assert_eq!(rig.promote().await, ids.len() as u64);
    assert_eq!(rig.all().await.len(), ids.len());
    // A list with nonsense in it stays a list, and is shown as none.
    for task in rig.all().await.into_iter().filter(|task| task.id != ids[2]) {
        assert_eq!(task.attempts.last().map(|attempt| attempt.error.clone()), Some(Some("x".to_owned())));
    }
}

#[tokio::test]
async fn garbage_in_a_row_stops_neither_sweep_nor_redrive() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    let tasks = vec![NewTask { max_attempts: Some(1), ..task("a") }; GARBAGE.len() + 1];
    let ids: Vec<_> = rig.store.enqueue(tasks).await.unwrap().iter().map(|task| task.id).collect();
    let mut worker = rig.worker().await;
    worker.claim(100).await;
    for (garbage, id) in GARBAGE.iter().zip(&ids) {
        harness.execute(&format!("UPDATE {{s}}.task SET {garbage} WHERE id = {}", id.raw())).await;
    }
    assert_eq!(rig.let_die(worker).await, ids.len() as u64);
    let dead = "UPDATE {s}.task SET state = 6, ended_at = 1, ready_seq = NULL, log = '{}'";
    harness.execute(dead).await;
    let redrives: Vec<_> = ids.iter().map(|id| Redrive { id: *id, delay: Duration::ZERO }).collect();
    for changed in rig.store.redrive(&redrives).await.unwrap() {
        assert_eq!(changed.result, Ok(State::Scheduled));
    }
    rig.advance(SWEPT_AFTER).await;
    assert_eq!(rig.promote().await, ids.len() as u64);
}

#[tokio::test]
async fn tasks_in_impossible_lanes_stop_no_other_tasks() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    let good = rig.add_many("a", 2).await;
    harness.execute(LOST).await;
    let other = harness.open_again(|_| {}).await;
    let rig = Rig { harness: &harness, store: other };
    assert_eq!(rig.promote().await, 2, "a due task becomes ready in any lane");
    let mut worker = rig.worker().await;
    assert_eq!(worker.claim_ids(100).await, good);
    assert_eq!(rig.all().await.iter().map(|task| task.id).collect::<Vec<_>>(), [good[1], good[0]]);
    for state in State::ALL {
        let filter = Filter { state: Some(state), ..Filter::default() };
        rig.store.tasks(&filter, None, 10).await.unwrap();
    }
    assert_eq!(rig.store.lane_records().await.unwrap().len(), 1);
    assert_eq!(rig.store.paused_queues().await.unwrap(), []);
    rig.store.set_queue_paused(&name("default"), true).await.unwrap();
    assert_eq!(rig.store.paused_queues().await.unwrap(), [name("default")]);
    let ended =
        rig.store.ended(&[good[0], windlass_core::TaskId::from_raw(9)], Duration::ZERO).await.unwrap();
    assert!(ended.iter().all(|(id, _)| *id != good[0]), "{ended:?}");
    let unreadable = rig.store.task(windlass_core::TaskId::from_raw(9)).await.unwrap_err();
    assert!(unreadable.to_string().contains("queue"), "{unreadable}");
    rig.advance(Duration::from_hours(2)).await;
    let retention = Retention { history_age: Duration::from_hours(1), ..Retention::default() };
    rig.store.retain(&retention).await.unwrap();
    assert!(!rig.store.audit().await.unwrap().is_empty(), "and the audit names what is lost");
}
