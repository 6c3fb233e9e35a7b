//! The short way of a claim: what it takes, and where it leaves everything to the long one.

use std::time::Duration;

use tokio_postgres::{Client, Row};
use windlass_conformance::cases::rig::{Rig, task};
use windlass_core::{NewTask, Outcome, Payload, source::Rest};
use windlass_postgres::{Options, inside};

use crate::{place::Place, support::PostgresHarness};

/// A live worker, two lanes, and three ready tasks: 11 and 12 in the first lane, 21 with a higher priority in the second.
const FILL: &str = "
INSERT INTO {s}.lane (queue, kind) VALUES ('q', 'a'), ('q', 'b');
INSERT INTO {s}.worker (lease_ttl_ms, min_claim_no, registered_at, renewed_at, expires_at, pid, slots, available, in_flight,
  draining, host, version, kinds, queues)
VALUES (10000, 5, 0, 0, {s}.now_ms() + 600000, 1, 1, 1, 1, false, 'h', '0', '{a,b}', '{}');
INSERT INTO {s}.task (id, ready_seq, lane, priority, lease, attempt, max_attempts, crashes, state, encoding, payload, job)
VALUES (12, 2, 1, 0, 0, 0, 10, 0, 1, 0, '1', NULL), (11, 1, 1, 0, 3, 2, 10, 0, 1, 0, '1', 'j'),
  (21, 3, 2, 7, 0, 0, 10, 0, 1, 0, '1', NULL);
";

/// Claims that take longer than a look may be old, many times over.
const CLAIMS_MAX: usize = 2_000;

struct Desk {
    place: Place,
    client: Client,
    quick: String,
    named: String,
}

impl Desk {
    async fn new() -> Self {
        let place = Place::new();
        drop(place.make().await);
        place.execute(FILL).await;
        let client = place.client().await;
        let statements = inside::statements(&place.options().schema);
        let text =
            |name| statements.iter().find(|statement| statement.name == name).unwrap().text.to_string();
        Self { place, client, quick: text("claim_quick"), named: text("claim_named") }
    }

    /// Claims under number 5, and undoes it; answers (task, lease, attempt).
    async fn claim(&mut self, lanes: &[i32], n: i64) -> Vec<(i64, i32, i32)> {
        self.claim_from(lanes, n, false).await
    }

    /// The same, from deep in the line or not.
    async fn claim_from(&mut self, lanes: &[i32], n: i64, is_deep: bool) -> Vec<(i64, i32, i32)> {
        let (high, low) = (vec![i32::MAX; lanes.len()], vec![i32::MIN; lanes.len()]);
        let after = vec![-1_i64; lanes.len()];
        let too_many = if lanes.len() < 2 { i64::MAX } else { n - 1 };
        let undone = self.client.transaction().await.unwrap();
        let rows = undone
            .query(&self.quick, &[&1_i64, &5_i64, &n, &lanes, &high, &low, &after, &too_many, &is_deep])
            .await
            .unwrap();
        // What is as usual is left out: the first lease, the first attempt.
        let number = |row: &Row, column| row.get::<_, Option<i32>>(column).unwrap_or(1);
        let mut taken: Vec<_> = rows.iter().map(|row| (row.get(0), number(row, 1), number(row, 2))).collect();
        undone.rollback().await.unwrap();
        taken.sort_unstable();
        taken
    }

    /// Claims one task under number 5, and undoes it; answers (task, lease, attempt).
    async fn claim_named(&mut self, task: i64, lanes: &[i32]) -> Option<(i64, i32, i32)> {
        let undone = self.client.transaction().await.unwrap();
        let row = undone.query_opt(&self.named, &[&1_i64, &5_i64, &task, &lanes]).await.unwrap();
        undone.rollback().await.unwrap();
        row.map(|row| (row.get(0), row.get(1), row.get(2)))
    }
}

#[tokio::test]
async fn a_task_that_was_named_is_taken_wherever_it_stands_in_its_line() {
    let mut desk = Desk::new().await;
    assert_eq!(desk.claim_named(11, &[1]).await, Some((11, 4, 3)));
    assert_eq!(desk.claim_named(12, &[2, 1]).await, Some((12, 1, 1)));
    assert_eq!(desk.claim_named(21, &[1]).await, None, "in a lane that was not asked for");
    assert_eq!(desk.claim_named(13, &[1]).await, None, "unknown");
    desk.place.execute("UPDATE {s}.task SET state = 2, worker = 1 WHERE id = 11").await;
    assert_eq!(desk.claim_named(11, &[1]).await, None, "taken");
}

#[tokio::test]
async fn it_takes_the_first_of_a_lane_under_the_next_lease() {
    let mut desk = Desk::new().await;
    assert_eq!(desk.claim(&[1], 1).await, [(11, 4, 3)]);
    assert_eq!(desk.claim(&[1], 2).await, [(11, 4, 3), (12, 1, 1)]);
    assert_eq!(desk.claim(&[1], 9).await, [(11, 4, 3), (12, 1, 1)]);
    assert_eq!(desk.claim(&[2], 9).await, [(21, 1, 1)]);
}

/// Which of them go first would have to be compared.
#[tokio::test]
async fn of_several_lanes_it_takes_all_or_nothing() {
    let mut desk = Desk::new().await;
    assert_eq!(desk.claim(&[1, 2], 4).await.len(), 3);
    assert_eq!(desk.claim(&[1, 2], 3).await, []);
    assert_eq!(desk.claim(&[1, 2], 1).await, []);
}

/// Each of these is something that only the long way knows what to do with.
#[tokio::test]
async fn where_more_must_be_known_it_takes_nothing() {
    for change in [
        "UPDATE {s}.worker SET expires_at = {s}.now_ms() - 1",
        "UPDATE {s}.worker SET ended_at = 1",
        "UPDATE {s}.worker SET min_claim_no = 6",
        "DELETE FROM {s}.worker",
        "INSERT INTO {s}.paused_queue (queue, paused_at) VALUES ('q', 0)",
        "UPDATE {s}.task SET crashes = 2 WHERE id = 12",
        "UPDATE {s}.task SET crashes = 2, state = 2, worker = 1 WHERE id = 21",
        "UPDATE {s}.task SET paced = true WHERE id = 11",
    ] {
        let mut desk = Desk::new().await;
        assert_eq!(desk.claim(&[1], 9).await.len(), 2, "before {change}");
        assert!(desk.claim_named(11, &[1]).await.is_some(), "before {change}");
        desk.place.execute(change).await;
        assert_eq!(desk.claim(&[1], 9).await, [], "after {change}");
        assert_eq!(desk.claim_named(11, &[1]).await, None, "after {change}");
    }
}

/// As every claim: what somebody is at is left to them.
#[tokio::test]
async fn it_waits_for_nobody() {
    let mut desk = Desk::new().await;
    let mut other = desk.place.client().await;
    let held = other.transaction().await.unwrap();
    held.execute(&desk.place.of("SELECT 1 FROM {s}.task WHERE id = 11 FOR UPDATE"), &[]).await.unwrap();
    let taken = desk.claim(&[1], 9).await;
    assert_eq!(desk.claim_named(11, &[1]).await, None);
    held.rollback().await.unwrap();
    assert_eq!(taken, [(12, 1, 1)]);
}

/// To try each lock costs a fleet more than to take what nobody wants.
#[tokio::test]
async fn deep_in_a_line_it_passes_over_what_anybody_has_locked() {
    let mut desk = Desk::new().await;
    assert_eq!(desk.claim_from(&[1], 9, true).await, [(11, 4, 3), (12, 1, 1)]);
    // That was undone, and its locks are still to be seen.
    assert_eq!(desk.claim_from(&[1], 9, true).await, []);
    assert_eq!(desk.claim(&[1], 9).await, [(11, 4, 3), (12, 1, 1)]);
}

/// As the promotion of due tasks does. The lock of whoever made a version stays to be seen on it.
#[tokio::test]
async fn deep_in_a_line_it_takes_what_was_locked_and_then_changed() {
    let mut desk = Desk::new().await;
    let changed = "BEGIN; SELECT 1 FROM {s}.task WHERE id = 12 FOR UPDATE; UPDATE {s}.task SET ready_seq = 3 WHERE id = 12; COMMIT";
    desk.place.execute(changed).await;
    assert_eq!(desk.claim_from(&[1], 9, true).await, [(11, 4, 3), (12, 1, 1)]);
}

/// The short way leaves out what is as usual, the long one says it all; what a task is like comes through both.
#[tokio::test]
async fn a_claim_tells_of_a_task_what_its_record_says_whichever_way_it_goes() {
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

/// Where every claim is full, none of them asks why there is no more; what was due long ago and what waits at a gate is looked at all the
/// same.
#[tokio::test]
async fn where_there_is_plenty_what_is_overdue_and_what_waits_at_a_gate_is_noticed() {
    let harness = PostgresHarness::new().with(|options| Options { trusts_hearsay: true, ..options });
    let rig = Rig::open(&harness).await;
    rig.add_many("a", 100).await;
    let mut worker = rig.worker().await;
    assert_eq!(worker.claim(50).await.len(), 50);
    let due = rig.harness.now().await.as_ms() + 10;
    harness.execute(&format!("SELECT {{s}}.enqueue('a', run_at => to_timestamp({due} / 1000.0))")).await;
    rig.advance(Duration::from_millis(20)).await;
    let mut is_due_known = false;
    for _ in 0..CLAIMS_MAX {
        rig.add_many("a", 50).await;
        let answer = worker.try_claim(50).await.unwrap();
        assert_eq!((answer.tasks.len(), answer.rest), (50, Rest::More));
        if let (false, Some(next_due)) = (is_due_known, answer.next_due) {
            assert_eq!(next_due.as_ms(), due);
            is_due_known = true;
            // Now, when nobody looks at the gates any more because a worker has come.
            harness.execute("SELECT {s}.enqueue('a', job => 'j')").await;
        } else if is_due_known && harness.number("SELECT count(*) FROM {s}.task WHERE state = 3").await == 0 {
            return;
        }
    }
    panic!("what is overdue is noticed: {is_due_known}; what waits at a gate is not");
}
