//! All states and ends of tasks, one after the other: run for each way in which a store can be reached.

use std::time::Duration;

use windlass_conformance::cases::rig::{Rig, keyed, task};
use windlass_core::{
    Error, NewTask, Outcome, Payload, Start, State,
    store::{Filter, Retention},
};

use crate::support::PostgresHarness;

/// Runs tasks through all their states and ends.
pub async fn whole_life(harness: &PostgresHarness) {
    let rig = Rig::open(harness).await;
    attempts(&rig).await;
    operators(&rig).await;
    deaths(&rig).await;
    let retention = Retention { history_age: Duration::from_hours(1), ..Retention::default() };
    rig.advance(Duration::from_hours(3)).await;
    let mut moved = 0;
    loop {
        let report = rig.store.retain(&retention).await.unwrap();
        moved += report.moved;
        if !report.more {
            break;
        }
    }
    assert_eq!(moved, 6, "all but the dead task are removed");
    assert_eq!(rig.all().await.len(), 1, "a dead task is kept longer");
    let info = rig.store.info().await.unwrap();
    assert_eq!((info.backend.as_str(), info.history_rows), ("postgresql", 0));
    rig.assert_sound().await;
    rig.store.close().await.unwrap();
}

/// Enqueue, keys, claim, settle, retry, schedule, progress. Leaves three done tasks.
async fn attempts(rig: &Rig<'_>) {
    let plain = rig.add(task("a")).await;
    let key = rig.add(keyed("k")).await;
    let again = rig.store.enqueue(vec![keyed("k"), task("a")]).await.unwrap();
    assert_eq!((again[0].id, again[0].existing), (key, true));
    let other = NewTask { payload: Payload::json(&2).unwrap(), ..keyed("k") };
    let conflict = rig.store.enqueue(vec![other]).await.unwrap_err();
    assert!(matches!(conflict, Error::KeyConflict { existing, .. } if existing == key), "{conflict}");
    let mut worker = rig.worker().await;
    let claimed = worker.claim(10).await;
    assert_eq!(claimed.iter().map(|task| task.id).collect::<Vec<_>>(), [plain, key, again[1].id]);
    let lease = windlass_conformance::cases::rig::lease_of(&claimed[0]);
    worker.store.progress(worker.id, lease, "half".to_owned()).await.unwrap();
    worker.end(&claimed[0], Outcome::Done(None)).await;
    worker.end(&claimed[1], Outcome::Done(Some(Payload::json(&"out").unwrap()))).await;
    worker.end(&claimed[2], Outcome::retry_after(Duration::from_secs(5), "not yet")).await;
    assert_eq!(rig.task(plain).await.progress.as_deref(), Some("half"));
    assert_eq!(rig.state(again[1].id).await, State::Scheduled);
    rig.advance(Duration::from_secs(6)).await;
    worker.renew().await.unwrap();
    assert_eq!(rig.promote().await, 1);
    let retried = worker.claim_one().await;
    assert_eq!((retried.id, retried.attempt), (again[1].id, 2));
    worker.end(&retried, Outcome::Done(None)).await;
    worker.store.retire(worker.id).await.unwrap();
    let ended = rig.store.ended(&[plain, key], Duration::ZERO).await.unwrap();
    assert!(ended.iter().all(|(_, task)| task.as_ref().is_some_and(|task| task.state == State::Done)));
}

/// Cancel, pause, redrive, list. Leaves two cancelled tasks and a dead one.
async fn operators(rig: &Rig<'_>) {
    let waiting = rig.add(NewTask { start: Start::In(Duration::from_mins(5)), ..task("a") }).await;
    assert_eq!(rig.cancel(waiting).await, Ok(State::Cancelled));
    let mut worker = rig.worker().await;
    let queue = windlass_conformance::cases::rig::name("default");
    rig.store.set_queue_paused(&queue, true).await.unwrap();
    let (asked, dies) = (rig.add(task("a")).await, rig.add(task("b")).await);
    assert_eq!(worker.claim(10).await, []);
    assert_eq!(rig.store.paused_queues().await.unwrap(), std::slice::from_ref(&queue));
    rig.store.set_queue_paused(&queue, false).await.unwrap();
    let claimed = worker.claim(10).await;
    assert_eq!(rig.cancel(asked).await, Ok(State::Running));
    assert_eq!(worker.renew().await.unwrap().cancels.len(), 1);
    worker
        .settle(vec![(claimed[0].clone(), Outcome::Release), (claimed[1].clone(), Outcome::dead("x"))])
        .await;
    assert_eq!((rig.state(asked).await, rig.state(dies).await), (State::Cancelled, State::Dead));
    assert_eq!(rig.redrive(dies).await, Ok(State::Scheduled));
    assert_eq!(rig.promote().await, 1);
    let claimed = worker.claim_one().await;
    worker.end(&claimed, Outcome::dead("again")).await;
    let dead = Filter { state: Some(State::Dead), ..Filter::default() };
    assert_eq!(rig.store.tasks(&dead, None, 10).await.unwrap().tasks.len(), 1);
    assert_eq!(rig.store.lane_records().await.unwrap()[1].depth.dead, 1);
    worker.store.retire(worker.id).await.unwrap();
}

/// Unclaim, reconcile, a worker that dies. Leaves only a cancelled task that had not started.
async fn deaths(rig: &Rig<'_>) {
    let id = rig.add(task("c")).await;
    let mut worker = rig.worker().await;
    worker.claim_one().await;
    assert_eq!(worker.store.unclaim(worker.id, worker.claim_no).await, Ok(1));
    worker.claim_one().await;
    assert_eq!(worker.store.reconcile(worker.id, worker.claim_no, &[]).await.unwrap().handed_back, 1);
    worker.claim_one().await;
    assert_eq!(rig.let_die(worker).await, 1);
    let mut worker = rig.worker().await;
    let suspect = worker.claim_one().await;
    assert_eq!((suspect.id, suspect.crashes), (id, 1));
    worker.end(&suspect, Outcome::Release).await;
    assert_eq!(rig.store.workers().await.unwrap().len(), 4);
    // Only the task that ended without a worker is left to count.
    rig.cancel(id).await.unwrap();
    worker.store.retire(worker.id).await.unwrap();
}
