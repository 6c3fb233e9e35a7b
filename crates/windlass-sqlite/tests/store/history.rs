use std::{sync::Arc, time::Duration};

use windlass_core::{Payload, Settlement, State, Store, store::Retention};
use windlass_sqlite::History;

use crate::rig::{Rig, task};

#[tokio::test]
async fn without_history_only_tasks_with_an_output_are_kept() {
    let rig = Rig::with(|options| options.history(History::Off)).await;
    let ids = rig.add(20).await;
    let worker = rig.worker().await;
    let claimed = rig.claim(worker, 20).await.tasks;
    let output = Settlement::Done { output: Some(Payload::json(&"x").unwrap()), note: None };
    rig.settle(worker, &claimed[..1], &output).await;
    rig.settle(worker, &claimed[1..], &crate::rig::DONE).await;
    assert_eq!(rig.state(ids[0]).await, State::Done);
    for id in &ids[1..] {
        assert!(rig.store.task(*id).await.unwrap().is_none());
    }
    let retention = Retention { history_age: Duration::ZERO, ..Retention::default() };
    rig.clock.advance(Duration::from_mins(9));
    rig.store.retain(&retention).await.unwrap();
    assert_eq!(rig.state(ids[0]).await, State::Done, "kept for ten minutes");
    rig.clock.advance(Duration::from_mins(1));
    rig.store.retain(&retention).await.unwrap();
    assert!(rig.store.task(ids[0]).await.unwrap().is_none());
}

#[tokio::test]
async fn without_history_an_awaited_task_is_still_answered() {
    let rig = Arc::new(Rig::with(|options| options.history(History::Off)).await);
    let ids = rig.add(2).await;
    let waiter = tokio::spawn({
        let (rig, wanted) = (Arc::clone(&rig), vec![ids[0]]);
        async move { rig.store.ended(&wanted, Duration::from_hours(1)).await }
    });
    // The waiter has asked once it has been polled; the current-thread runtime runs it at the first await.
    let worker = rig.worker().await;
    let claimed = rig.claim(worker, 2).await.tasks;
    rig.settle(worker, &claimed, &crate::rig::DONE).await;
    let ended = waiter.await.unwrap().unwrap();
    assert_eq!(ended[0].1.as_ref().map(|task| task.state), Some(State::Done));
    assert!(rig.store.task(ids[1]).await.unwrap().is_none());
}

#[tokio::test]
async fn the_last_attempt_of_a_kept_task_is_in_its_record() {
    let rig = Rig::new().await;
    let id = rig.add_tasks(vec![task("a")]).await[0];
    let worker = rig.worker().await;
    let claimed = rig.claim(worker, 1).await.tasks;
    let retry = Settlement::Retry { due_at: crate::rig::START, error: "first".into() };
    rig.settle(worker, &claimed, &retry).await;
    windlass_core::Source::promote_due(&*rig.store, 10).await.unwrap();
    rig.clock.advance(Duration::from_secs(1));
    let claimed = rig.claim(worker, 1).await.tasks;
    rig.clock.advance(Duration::from_secs(1));
    rig.settle(worker, &claimed, &crate::rig::DONE).await;
    let record = rig.store.task(id).await.unwrap().unwrap();
    let ends: Vec<_> =
        record.attempts.iter().map(|one| (one.attempt, one.lease, one.error.as_deref())).collect();
    assert_eq!(ends, [(1, 1, Some("first")), (2, 2, None)]);
    assert_eq!(record.attempts[1].started_at, Some(crate::rig::START.after(Duration::from_secs(1))));
    assert_eq!(record.attempts[1].ended_at, crate::rig::START.after(Duration::from_secs(2)));
}
