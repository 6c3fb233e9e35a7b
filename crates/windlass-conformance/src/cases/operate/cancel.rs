//! Cancel: at once for a task that does not run, by request for one that does.

use std::time::Duration;

use windlass_core::{NewTask, Outcome, Start, State, TaskId, task::AttemptResult};

use crate::{
    cases::rig::{MANY, Rig, SWEPT_AFTER, lease_of, task},
    harness::Harness,
};

pub async fn a_task_that_has_not_started_is_cancelled_at_once(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let ready = rig.add(task("a")).await;
    let scheduled = rig.add(NewTask { start: Start::In(Duration::from_secs(5)), ..task("a") }).await;
    for id in [ready, scheduled] {
        assert_eq!(rig.cancel(id).await, Ok(State::Cancelled));
        let seen = rig.task(id).await;
        assert_eq!((seen.state, seen.error.as_deref()), (State::Cancelled, Some("not wanted")));
        assert!(seen.ended_at.is_some() && seen.due_at.is_none());
        assert_eq!((seen.attempts, seen.attempt), (vec![], 0));
    }
    rig.advance(Duration::from_mins(1)).await;
    assert_eq!(rig.promote().await, 0);
    assert_eq!(rig.worker().await.claim_ids(MANY).await, []);
}

pub async fn a_running_task_is_asked_to_end(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let ids = rig.add_many("a", 2).await;
    let mut worker = rig.worker().await;
    let tasks = worker.claim(MANY).await;
    assert_eq!(worker.renew().await.unwrap().cancels, []);
    assert_eq!(rig.cancel(ids[1]).await, Ok(State::Running));
    let seen = rig.task(ids[1]).await;
    assert_eq!((seen.state, seen.cancel_requested.as_deref()), (State::Running, Some("not wanted")));
    assert_eq!(worker.renew().await.unwrap().cancels, [(lease_of(&tasks[1]), "not wanted".to_owned())]);
    assert_eq!(rig.worker().await.renew().await.unwrap().cancels, [], "only its own worker gets the request");
    worker.end(&tasks[1], Outcome::retry("stopped")).await;
    assert_eq!(worker.renew().await.unwrap().cancels, []);
}

pub async fn a_running_task_asked_to_end_is_cancelled_unless_done(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    for outcome in [
        Outcome::retry("x"),
        Outcome::snooze(Duration::from_secs(1)),
        Outcome::Release,
        Outcome::dead("x"),
        Outcome::cancel("x"),
        Outcome::Done(None),
    ] {
        let id = rig.add(task("a")).await;
        let claimed = worker.claim_one().await;
        rig.cancel(id).await.unwrap();
        let done = outcome == Outcome::Done(None);
        worker.end(&claimed, outcome).await;
        let seen = rig.task(id).await;
        assert_eq!(seen.state, if done { State::Done } else { State::Cancelled });
        assert!(seen.ended_at.is_some() && seen.due_at.is_none() && seen.cancel_requested.is_none());
        let last = seen.attempts.last().unwrap().result;
        assert_eq!(last, if done { AttemptResult::Done } else { AttemptResult::Cancelled });
    }
}

pub async fn a_request_to_end_outlives_the_worker(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    for way in 0..4 {
        let id = rig.add(task("a")).await;
        let mut worker = rig.worker().await;
        worker.claim_one().await;
        rig.cancel(id).await.unwrap();
        match way {
            0 => assert_eq!(rig.store.retire(worker.id).await.unwrap(), 1),
            1 => assert_eq!(rig.store.unclaim(worker.id, worker.claim_no).await.unwrap(), 1),
            2 => {
                assert_eq!(
                    rig.store.reconcile(worker.id, worker.claim_no, &[]).await.unwrap().handed_back,
                    1
                );
            }
            _ => {
                rig.advance(SWEPT_AFTER).await;
                assert_eq!(rig.sweep().await, 1);
            }
        }
        assert_eq!(rig.state(id).await, State::Cancelled, "way {way}");
        assert_eq!(rig.worker().await.claim_ids(MANY).await, []);
    }
}

pub async fn an_ended_task_cannot_be_cancelled(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    for outcome in [Outcome::Done(None), Outcome::dead("x"), Outcome::cancel("y")] {
        let id = rig.add(task("a")).await;
        let claimed = worker.claim_one().await;
        worker.end(&claimed, outcome).await;
        let before = rig.task(id).await;
        assert_eq!(rig.cancel(id).await.unwrap_err().code(), "conflict");
        assert_eq!(rig.task(id).await, before);
    }
}

pub async fn each_task_of_a_bulk_cancel_gets_its_answer(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let ids = rig.add_many("a", 3).await;
    let mut worker = rig.worker().await;
    worker.claim(1).await;
    rig.cancel(ids[1]).await.unwrap();
    let unknown = TaskId::from_raw(1);
    let asked = [ids[2], unknown, ids[0], ids[1]];
    let changed = rig.store.cancel(&asked, "all").await.unwrap();
    assert_eq!(changed.iter().map(|changed| changed.id).collect::<Vec<_>>(), asked);
    let answers: Vec<_> =
        changed.into_iter().map(|changed| changed.result.map_err(|error| error.code())).collect();
    assert_eq!(answers, [Ok(State::Cancelled), Err("not_found"), Ok(State::Running), Err("conflict")]);
}
