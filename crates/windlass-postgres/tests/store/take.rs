//! The statement that takes tasks, and the look that a busy worker does from time to time.

use std::time::Duration;

use tokio_postgres::Client;
use windlass_conformance::cases::rig::{Rig, task};
use windlass_core::{NewTask, Outcome, Payload, source::Rest};
use windlass_postgres::inside;

use crate::{place::Place, support::PostgresHarness, wait::until};

/// A live worker, two lanes, and three ready tasks: 11 and 12 in the first lane, 21 with a higher priority in
/// the second.
const FILL: &str = "
INSERT INTO {s}.lane (queue, kind) VALUES ('q', 'a'), ('q', 'b');
INSERT INTO {s}.worker (lease_ttl_ms, min_claim_no, registered_at, renewed_at, expires_at, pid, slots, available, in_flight,
  draining, host, version, kinds, queues)
VALUES (10000, 5, 0, 0, {s}.now_ms() + 600000, 1, 1, 1, 1, false, 'h', '0', '{a,b}', '{}');
INSERT INTO {s}.task (id, ready_seq, lane, priority, lease, attempt, max_attempts, crashes, state, encoding, payload, job)
VALUES (12, 2, 1, 0, 0, 0, 10, 0, 1, 0, '1', NULL), (11, 1, 1, 0, 3, 2, 10, 0, 1, 0, '1', 'j'),
  (21, 3, 2, 7, 0, 0, 10, 0, 1, 0, '1', NULL);
";

struct Desk {
    place: Place,
    client: Client,
    take: String,
}

impl Desk {
    async fn new() -> Self {
        let place = Place::new();
        drop(place.make().await);
        place.execute(FILL).await;
        let client = place.client().await;
        let statements = inside::statements(&place.options().schema);
        let take = statements.iter().find(|statement| statement.name == "take").unwrap().text.to_string();
        Self { place, client, take }
    }

    /// Claims under number 5, and undoes it; answers (task, lease, attempt) and what is noted for the gates.
    async fn claim_noting(&mut self, lanes: &[i32], n: i64) -> (Vec<(i64, i32, i32)>, i64) {
        let (high, low) = (vec![i32::MAX; lanes.len()], vec![i32::MIN; lanes.len()]);
        let (after, several) = (vec![-1_i64; lanes.len()], lanes.len() > 1);
        let undone = self.client.transaction().await.unwrap();
        let rows = undone
            .query(
                &self.take,
                &[&1_i64, &5_i64, &n, &lanes, &high, &low, &after, &2_i32, &1_000_i64, &lanes, &several],
            )
            .await
            .unwrap();
        let mut taken: Vec<_> = rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect();
        let todo = self.place.of("SELECT count(*) FROM {s}.gate_todo");
        let noted = undone.query_one(&todo, &[]).await.unwrap().get(0);
        undone.rollback().await.unwrap();
        taken.sort_unstable();
        (taken, noted)
    }

    async fn claim(&mut self, lanes: &[i32], n: i64) -> Vec<(i64, i32, i32)> {
        self.claim_noting(lanes, n).await.0
    }
}

#[tokio::test]
async fn it_takes_the_first_of_a_lane_under_the_next_lease() {
    let mut desk = Desk::new().await;
    assert_eq!(desk.claim(&[1], 1).await, [(11, 4, 3)]);
    assert_eq!(desk.claim(&[1], 2).await, [(11, 4, 3), (12, 1, 1)]);
    assert_eq!(desk.claim(&[1], 9).await, [(11, 4, 3), (12, 1, 1)]);
    assert_eq!(desk.claim(&[2], 9).await, [(21, 1, 1)]);
}

#[tokio::test]
async fn of_several_lanes_it_takes_the_first_of_all() {
    let mut desk = Desk::new().await;
    assert_eq!(desk.claim(&[1, 2], 1).await, [(21, 1, 1)]);
    assert_eq!(desk.claim(&[1, 2], 2).await, [(11, 4, 3), (21, 1, 1)]);
    assert_eq!(desk.claim(&[1, 2], 4).await.len(), 3);
}

#[tokio::test]
async fn a_worker_that_may_not_claim_takes_nothing() {
    for change in [
        "UPDATE {s}.worker SET expires_at = {s}.now_ms() - 1",
        "UPDATE {s}.worker SET ended_at = 1",
        "UPDATE {s}.worker SET min_claim_no = 6",
        "DELETE FROM {s}.worker",
        "DELETE FROM {s}.lease_epoch",
        "UPDATE {s}.task SET crashes = 2 WHERE id = 12",
        "UPDATE {s}.task SET crashes = 2, suspect = -1, state = 2, worker = 1, claimed_at = {s}.now_ms() WHERE id = 21",
    ] {
        let mut desk = Desk::new().await;
        assert_eq!(desk.claim(&[1], 9).await.len(), 2, "before {change}");
        desk.place.execute(change).await;
        assert_eq!(desk.claim(&[1], 9).await, [], "after {change}");
    }
}

#[tokio::test]
async fn a_paused_queue_keeps_only_its_own_lanes_back() {
    let mut desk = Desk::new().await;
    desk.place.execute("UPDATE {s}.lane SET queue = 'other' WHERE id = 2").await;
    desk.place.execute("INSERT INTO {s}.paused_queue (queue, paused_at) VALUES ('q', 0)").await;
    assert_eq!(desk.claim(&[1, 2], 9).await, [(21, 1, 1)]);
    assert_eq!(desk.claim(&[1], 9).await, []);
}

#[tokio::test]
async fn the_start_of_a_task_whose_job_has_a_delay_is_noted() {
    let mut desk = Desk::new().await;
    let (_, before) = desk.claim_noting(&[1], 9).await;
    desk.place.execute("UPDATE {s}.task SET paced = true WHERE id = 11").await;
    let (taken, noted) = desk.claim_noting(&[1], 9).await;
    assert_eq!((taken.len(), noted), (2, before + 1));
}

#[tokio::test]
async fn it_passes_over_a_task_that_is_locked() {
    let mut desk = Desk::new().await;
    let mut other = desk.place.client().await;
    let held = other.transaction().await.unwrap();
    held.execute(&desk.place.of("SELECT 1 FROM {s}.task WHERE id = 11 FOR UPDATE"), &[]).await.unwrap();
    let taken = desk.claim(&[1], 9).await;
    held.rollback().await.unwrap();
    assert_eq!(taken, [(12, 1, 1)]);
}

#[tokio::test]
async fn a_claim_answers_what_the_record_of_a_task_says() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    let unusual = NewTask {
        priority: -3,
        max_attempts: Some(2),
        payload: Payload::bytes(vec![0, 255]),
        timeout: Some(Duration::from_secs(7)),
        ..task("b")
    };
    let ids = rig.add_all(vec![task("a"), task("b"), unusual, NewTask { priority: 4, ..task("a") }]).await;
    let mut worker = rig.worker().await;
    for round in 1..=4 {
        let claimed = worker.claim(9).await;
        assert_eq!(claimed.len(), ids.len());
        for task in &claimed {
            let record = rig.task(task.id).await;
            assert_eq!((task.lease, task.lease), (round, record.lease));
            assert_eq!((task.attempt, task.max_attempts), (record.attempt, record.max_attempts));
            assert_eq!((task.crashes, task.priority), (record.crashes, record.priority));
            assert_eq!((&task.lane, &task.payload), (&record.lane, &record.payload));
            assert_eq!(task.timeout, record.timeout);
        }
        worker.settle(claimed.into_iter().map(|task| (task, Outcome::Release)).collect()).await;
    }
}

/// While every claim is full, a look that is due finds overdue tasks, and has admission look at the gates.
#[tokio::test]
async fn a_worker_whose_claims_are_full_looks_now_and_then() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    rig.add_many("a", 100).await;
    let mut worker = rig.worker().await;
    assert_eq!(worker.claim(50).await.len(), 50);
    let due = rig.harness.now().await.as_ms() + 10;
    harness.execute(&format!("SELECT {{s}}.enqueue('a', run_at => to_timestamp({due} / 1000.0))")).await;
    harness.execute("SELECT {s}.enqueue('a', job => 'j')").await;
    let mut next_due = None;
    for _ in 0..3 {
        rig.advance(Duration::from_millis(100)).await;
        rig.add_many("a", 50).await;
        let answer = worker.try_claim(50).await.unwrap();
        assert_eq!((answer.tasks.len(), answer.rest), (50, Rest::More));
        next_due = next_due.or(answer.next_due);
    }
    assert_eq!(next_due.map(windlass_core::Timestamp::as_ms), Some(due));
    until("what waits at the gate is admitted", async || {
        harness.number("SELECT count(*) FROM {s}.task WHERE state = 3").await == 0
    })
    .await;
}
