//! The parts of the history: made ahead, filled by the hour, dropped whole.

use std::time::Duration;

use windlass_conformance::cases::rig::{Rig, name, step_of, task};
use windlass_core::{Outcome, State, TaskId, WorkflowAction, store::Retention};

use crate::support::PostgresHarness;

const HOUR: Duration = Duration::from_hours(1);
/// Long enough that whole parts are dropped, and not only rows removed.
const KEPT: Retention =
    Retention { history_age: Duration::from_hours(8), history_max_bytes: 1 << 30, dead_age: Duration::MAX };

async fn end_one(rig: &Rig<'_>) -> TaskId {
    rig.add(task("a")).await;
    let mut worker = rig.worker().await;
    let claimed = worker.claim_one().await;
    worker.end(&claimed, Outcome::Done(None)).await;
    worker.store.retire(worker.id).await.unwrap();
    claimed.id
}

async fn retain(rig: &Rig<'_>) -> u64 {
    let mut moved = 0;
    loop {
        let report = rig.store.retain(&KEPT).await.unwrap();
        moved += report.moved;
        if !report.more {
            return moved;
        }
    }
}

/// The part that holds a task.
async fn part_of(harness: &PostgresHarness, id: TaskId) -> String {
    let text = format!("SELECT tableoid::regclass::text FROM {}.history WHERE id = $1", harness.schema());
    let name: String = harness.client().await.query_one(&text, &[&id.raw()]).await.unwrap().get(0);
    name.rsplit('.').next().unwrap().to_owned()
}

/// The part for an hour of the store's clock, counted from now.
async fn part_in(harness: &PostgresHarness, hours: i64) -> String {
    let now = harness.number("SELECT ms FROM {s}.test_clock").await;
    format!("history_{}", (now.div_euclid(3_600_000) + hours) * 3_600_000)
}

async fn has(harness: &PostgresHarness, part: &str) -> bool {
    let listed = harness.number(&format!("SELECT count(*) FROM {{s}}.part WHERE name = '{part}'")).await;
    let there =
        harness.number(&format!("SELECT (to_regclass('{{s}}.{part}') IS NOT NULL)::integer::bigint")).await;
    assert_eq!(listed, there, "{part}");
    there == 1
}

#[tokio::test]
async fn parts_are_made_ahead_and_filled_by_the_hour() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    retain(&rig).await;
    for hours in 0..=7 {
        assert!(has(&harness, &part_in(&harness, hours).await).await, "{hours} hours ahead");
    }
    let first = end_one(&rig).await;
    assert_eq!(part_of(&harness, first).await, part_in(&harness, 0).await);
    rig.advance(3 * HOUR).await;
    let second = end_one(&rig).await;
    assert_eq!(part_of(&harness, second).await, part_in(&harness, 0).await);
    retain(&rig).await;
    assert!(has(&harness, &part_in(&harness, 7).await).await, "more are made as time goes on");
    assert_eq!(rig.all().await.len(), 2);
}

#[tokio::test]
async fn a_row_without_a_part_is_removed_from_the_rest() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    retain(&rig).await;
    rig.advance(20 * HOUR).await;
    let id = end_one(&rig).await;
    assert_eq!(part_of(&harness, id).await, "history_rest");
    // The hour of the rows in the rest can no longer have a part of its own; the next hours can.
    assert_eq!(retain(&rig).await, 0);
    assert!(!has(&harness, &part_in(&harness, 0).await).await);
    assert!(has(&harness, &part_in(&harness, 1).await).await);
    let second = end_one(&rig).await;
    assert_eq!(part_of(&harness, second).await, "history_rest");
    rig.advance(9 * HOUR).await;
    assert_eq!(retain(&rig).await, 2);
    assert_eq!(rig.all().await, []);
}

#[tokio::test]
async fn old_parts_are_dropped_whole() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    retain(&rig).await;
    let part = part_in(&harness, 0).await;
    for _ in 0..3 {
        end_one(&rig).await;
    }
    rig.advance(4 * HOUR).await;
    let younger = end_one(&rig).await;
    rig.advance(Duration::from_mins(270)).await;
    assert_eq!(retain(&rig).await, 0, "the part has an hour that is not old enough yet");
    rig.advance(HOUR).await;
    assert_eq!(retain(&rig).await, 3);
    assert!(!has(&harness, &part).await);
    assert_eq!(rig.all().await.iter().map(|task| task.id).collect::<Vec<_>>(), [younger]);
}

#[tokio::test]
async fn a_blocker_in_a_dropped_part_goes_to_the_rest() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    retain(&rig).await;
    let part = part_in(&harness, 0).await;
    let ids = rig.add_all(vec![step_of("w"); 2]).await;
    rig.cancel(ids[0]).await.unwrap();
    end_one(&rig).await;
    assert_eq!(part_of(&harness, ids[0]).await, part);
    rig.advance(10 * HOUR).await;
    assert_eq!(retain(&rig).await, 1, "what blocks nothing");
    assert!(!has(&harness, &part).await);
    assert_eq!(part_of(&harness, ids[0]).await, "history_rest");
    assert_eq!(rig.state(ids[0]).await, State::Cancelled);
    rig.store.gates().change_workflow(&name("w"), WorkflowAction::Skip).await.unwrap();
    assert_eq!(retain(&rig).await, 1);
    assert_eq!(rig.store.task(ids[0]).await, Ok(None));
}

#[tokio::test]
async fn a_reader_delays_a_drop_and_nothing_else() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    retain(&rig).await;
    let part = part_in(&harness, 0).await;
    end_one(&rig).await;
    rig.advance(10 * HOUR).await;
    let mut reader = harness.client().await;
    let reading = reader.transaction().await.unwrap();
    let schema = harness.schema();
    reading.query(&format!("SELECT id FROM {schema}.{part}"), &[]).await.unwrap();
    assert_eq!(rig.store.retain(&KEPT).await.unwrap().moved, 0, "harmless");
    assert!(has(&harness, &part).await);
    end_one(&rig).await;
    assert_eq!(rig.store.retain(&KEPT).await.unwrap().moved, 0);
    reading.commit().await.unwrap();
    assert_eq!(retain(&rig).await, 1, "it happens later");
    assert!(!has(&harness, &part).await);
    assert_eq!(rig.all().await.len(), 1);
}
