//! Settlements find a row by its task's id, also if the row has moved since the claim, and they change no
//! other row.

use windlass_conformance::cases::rig::Rig;
use windlass_core::{Outcome, State};

use crate::support::PostgresHarness;

/// Three rows were written again since they were claimed, each in another way.
#[tokio::test]
async fn a_row_that_was_moved_is_settled_with_the_others() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    let ids = rig.add_many("a", 20).await;
    let mut worker = rig.worker().await;
    let claimed = worker.claim(20).await;
    let moved = [ids[3].raw(), ids[7].raw()];
    harness
        .execute(&format!("UPDATE {{s}}.task SET progress = 'half' WHERE id IN ({}, {})", moved[0], moved[1]))
        .await;
    worker
        .store
        .progress(worker.id, windlass_core::LeaseRef { id: ids[5], lease: 1 }, "half".to_owned())
        .await
        .unwrap();
    let ends = claimed.into_iter().map(|task| (task, Outcome::Done(None))).collect();
    assert_eq!(worker.settle(ends).await.fenced, []);
    assert_eq!(harness.number("SELECT count(*) FROM {s}.task").await, 0);
    assert_eq!(harness.number("SELECT count(*) FROM {s}.history WHERE progress = 'half'").await, 3);
    assert_eq!(harness.number("SELECT count(*) FROM {s}.history").await, 20);
    rig.assert_sound().await;
}

/// A request to end is applied wherever the row is.
#[tokio::test]
async fn an_attempt_that_was_asked_to_end_may_still_succeed() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    let ids = rig.add_many("a", 2).await;
    let mut worker = rig.worker().await;
    let claimed = worker.claim(2).await;
    assert_eq!(rig.cancel(ids[1]).await, Ok(State::Running));
    let ends = claimed.into_iter().map(|task| (task, Outcome::Done(None))).collect();
    assert_eq!(worker.settle(ends).await.fenced, []);
    let states = [rig.state(ids[0]).await, rig.state(ids[1]).await];
    assert_eq!(states, [State::Done, State::Done]);
}

/// Failures of one batch: of rows that moved, of a task that was asked to end, of one that turns out to
/// belong to a job, and of one that another worker has by now. Each is settled by its id.
#[tokio::test]
async fn failures_of_moved_rows_are_settled_by_id() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    let ids = rig.add_many("a", 6).await;
    let mut worker = rig.worker().await;
    let claimed = worker.claim(6).await;
    let raw = |place: usize| ids[place].raw();
    harness.execute(&format!("UPDATE {{s}}.task SET progress = 'half' WHERE id = {}", raw(1))).await;
    assert_eq!(rig.cancel(ids[2]).await, Ok(State::Running));
    harness.execute(&format!("UPDATE {{s}}.task SET job = 'unsaid' WHERE id = {}", raw(3))).await;
    harness.execute(&format!("UPDATE {{s}}.task SET lease = lease + 1 WHERE id = {}", raw(4))).await;
    let fail = |task| (task, Outcome::retry("broken"));
    let settled = worker.settle(claimed.into_iter().map(fail).collect()).await;
    assert_eq!(settled.fenced, [ids[4]]);
    assert!(settled.next_due.is_some());
    let states = rig.states(&ids).await;
    assert_eq!(states[0], State::Scheduled);
    assert_eq!(states[1], State::Scheduled);
    assert_eq!(states[2], State::Cancelled);
    assert_eq!(states[3], State::Scheduled);
    assert_eq!(states[4], State::Running);
    assert_eq!(states[5], State::Scheduled);
    let logged = "SELECT count(*) FROM {s}.task WHERE error = 'broken' AND jsonb_array_length(log) = 1";
    assert_eq!(harness.number(logged).await, 4);
}

/// The rows have another order than their tasks, and each failure has an error, a lease and a due time of its
/// own: each is written to its own row.
#[tokio::test]
async fn each_failure_of_a_batch_is_written_to_its_own_row() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    let ids = rig.add_many("a", 12).await;
    // Tasks with an odd number were tried before, so their rows are after the others.
    harness
        .execute("UPDATE {s}.task SET lease = 4, attempt = 2, log = '[[1,4,7,1,2,1,\"before\"]]' WHERE ready_seq % 2 = 1")
        .await;
    let mut worker = rig.worker().await;
    let later = |n: u64| std::time::Duration::from_millis(1_000 + n);
    for way in ["retry", "snooze", "dead"] {
        let claimed = worker.claim(12).await;
        assert_eq!(claimed.len(), 12, "{way}");
        let ends = claimed.into_iter().map(|task| {
            let n = ids.iter().position(|id| *id == task.id).unwrap() as u64;
            let outcome = match way {
                "retry" => Outcome::retry_after(later(n), format!("no \"{n}\"\\ü\n")),
                "snooze" => Outcome::snooze(later(n)),
                _ => Outcome::dead(format!("dead {n}")),
            };
            (task, outcome)
        });
        let ends: Vec<_> = ends.collect();
        let now = rig.harness.now().await.as_ms();
        let settled = worker.settle(ends).await;
        assert_eq!(settled.fenced, [], "{way}");
        let is_due = (way != "dead").then_some(now + 1_000);
        assert_eq!(settled.next_due.map(windlass_core::Timestamp::as_ms), is_due, "{way}");
        for (n, id) in ids.iter().enumerate() {
            let task = rig.task(*id).await;
            let error = if way == "dead" { format!("dead {n}") } else { format!("no \"{n}\"\\ü\n") };
            assert_eq!(task.error.as_deref(), Some(error.as_str()), "{way} {n}");
            let state = if way == "dead" { State::Dead } else { State::Scheduled };
            assert_eq!(task.state, state, "{way} {n}");
            if way != "dead" {
                assert_eq!(
                    task.due_at.map(windlass_core::Timestamp::as_ms),
                    Some(now + 1_000 + n as i64),
                    "{way} {n}"
                );
            }
            let last = task.attempts.last().unwrap();
            let expected = if way == "snooze" { None } else { Some(error) };
            assert_eq!((last.lease, last.error.clone()), (task.lease, expected), "{way} {n}");
        }
        rig.advance(std::time::Duration::from_secs(2)).await;
        rig.promote().await;
    }
    rig.assert_sound().await;
}

/// The server noted the moved row of the batch as lost, and crashed before the row was looked up by its id.
async fn cut_off_after_its_receipt(outcome: Outcome, then: State) {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    rig.add_many("a", 1).await;
    let mut worker = rig.worker().await;
    let task = worker.claim_one().await;
    let (id, lost) = (task.id.raw(), i64::MAX);
    let noted = format!(
        "INSERT INTO {{s}}.fenced (worker, settler_no, batch_no, task) VALUES ({}, 0, 1,",
        worker.id.0
    );
    harness
        .execute(&format!(
            "INSERT INTO {{s}}.receipt (worker, settler_no, batch_no) VALUES ({}, 0, 1);
             {noted} {id}); {noted} {lost})",
            worker.id.0
        ))
        .await;
    let gone = windlass_core::Claimed { id: windlass_core::TaskId::from_raw(lost), ..task.clone() };
    let ends = vec![(task.clone(), outcome.clone()), (gone.clone(), outcome)];
    let batch = std::sync::Arc::new(worker.batch(ends).await);
    for _ in 0..2 {
        let settled = worker.store.settle(std::sync::Arc::clone(&batch)).await.unwrap();
        assert_eq!(settled.fenced, [gone.id], "what is really lost stays lost");
        assert_eq!(rig.state(task.id).await, then);
    }
}

#[tokio::test]
async fn a_batch_cut_off_after_its_receipt_is_looked_up_again() {
    cut_off_after_its_receipt(Outcome::Done(None), State::Done).await;
}

#[tokio::test]
async fn failures_cut_off_after_their_receipt_are_looked_up_again() {
    let outcome = Outcome::retry("broken");
    cut_off_after_its_receipt(outcome, State::Scheduled).await;
}
