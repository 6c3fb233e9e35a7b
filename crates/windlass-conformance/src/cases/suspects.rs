//! Suspects: a task that was there when its process died runs alone among suspects until it is cleared.

use std::time::Duration;

use windlass_core::{NewTask, Outcome, Rules, State, source::Rest, task::AttemptResult};

use super::rig::{MANY, Rig, task};
use crate::harness::Harness;

pub async fn a_crash_gives_the_attempt_back_and_is_counted(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let ids = rig.add_many("a", 3).await;
    let mut worker = rig.worker().await;
    worker.claim(MANY).await;
    let id = worker.id;
    assert_eq!(rig.let_die(worker).await, 3);
    for task in ids {
        let seen = rig.task(task).await;
        assert_eq!((seen.state, seen.attempt, seen.crashes, seen.lease), (State::Ready, 0, 1, 1));
        let attempt = seen.attempts.last().unwrap();
        assert_eq!((attempt.result, attempt.worker), (AttemptResult::Crashed, Some(id)));
        assert_eq!(attempt.attempt, 1);
    }
}

pub async fn a_worker_runs_one_suspect_at_a_time(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let ids = rig.add_many("a", 4).await;
    let mut worker = rig.worker().await;
    worker.claim(MANY).await;
    rig.let_die(worker).await;
    let (mut first, mut second) = (rig.worker().await, rig.worker().await);
    let answer = first.try_claim(MANY).await.unwrap();
    assert_eq!((answer.tasks.len(), answer.rest), (1, Rest::Blocked));
    assert_eq!(first.try_claim(MANY).await.unwrap().tasks, [], "it has one already");
    assert_eq!(second.claim(MANY).await.len(), 1, "another worker may run another");
    let suspect = &answer.tasks[0];
    assert_eq!((suspect.id, suspect.crashes), (ids[0], 1));
    first.end(suspect, Outcome::retry_after(Duration::from_hours(1), "x")).await;
    assert_eq!(first.claim_ids(MANY).await, [ids[2]], "one has ended, so the next may start");
    let mut both = [rig.worker().await, rig.worker().await];
    let demands = [both[0].demand(5).await, both[1].demand(5).await];
    assert_eq!(rig.store.claim(&demands).await.unwrap().tasks.len(), 1, "also in one claim for many");
}

pub async fn a_suspect_is_taken_first_and_others_run_beside_it(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let suspects = rig.add_many("a", 2).await;
    let mut worker = rig.worker().await;
    worker.claim(MANY).await;
    rig.let_die(worker).await;
    let urgent = rig.add(NewTask { priority: 9, ..task("b") }).await;
    let plain = rig.add(task("a")).await;
    let mut heir = rig.worker().await;
    assert_eq!(heir.claim_ids(1).await, [suspects[0]]);
    let answer = heir.try_claim(MANY).await.unwrap();
    let ids: Vec<_> = answer.tasks.iter().map(|task| task.id).collect();
    assert_eq!((ids, answer.rest), (vec![urgent, plain], Rest::Blocked));
}

pub async fn any_outcome_of_its_own_clears_a_suspect(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    for outcome in [
        Outcome::Done(None),
        Outcome::retry("x"),
        Outcome::snooze(Duration::from_secs(1)),
        Outcome::dead("x"),
    ] {
        let id = rig.add(task("a")).await;
        let mut worker = rig.worker().await;
        worker.claim_one().await;
        rig.let_die(worker).await;
        assert_eq!(rig.task(id).await.crashes, 1);
        let mut heir = rig.worker().await;
        let claimed = heir.claim_one().await;
        heir.end(&claimed, outcome).await;
        assert_eq!(rig.task(id).await.crashes, 0);
    }
}

pub async fn a_hand_back_does_not_clear_a_suspect(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let ids = rig.add_many("a", 2).await;
    let mut worker = rig.worker().await;
    worker.claim(MANY).await;
    rig.let_die(worker).await;
    for way in 0..4 {
        let mut worker = rig.worker().await;
        let suspect = worker.claim_one().await;
        match way {
            0 => worker.end(&suspect, Outcome::Release).await,
            1 => assert_eq!(rig.store.unclaim(worker.id, worker.claim_no).await.unwrap(), 1),
            2 => {
                assert_eq!(
                    rig.store.reconcile(worker.id, worker.claim_no, &[]).await.unwrap().handed_back,
                    1
                );
            }
            _ => assert_eq!(rig.store.retire(worker.id).await.unwrap(), 1),
        }
        assert_eq!(rig.task(suspect.id).await.crashes, 1, "it has neither finished nor crashed: way {way}");
    }
    let answer = rig.worker().await.try_claim(MANY).await.unwrap();
    assert_eq!((answer.tasks.len(), answer.rest), (1, Rest::Blocked));
    assert!(ids.contains(&answer.tasks[0].id));
}

pub async fn a_task_that_crashes_too_often_is_dead_with_a_reason(harness: &dyn Harness) {
    let rig = Rig::with(harness, Rules { max_crashes: 2, ..Rules::default() }).await;
    let id = rig.add(NewTask { max_attempts: Some(1), ..task("a") }).await;
    for crashes in 1..=2 {
        let mut worker = rig.worker().await;
        assert_eq!(worker.claim_one().await.attempt, 1, "crashes spend no attempts");
        rig.let_die(worker).await;
        assert_eq!(rig.task(id).await.crashes, crashes);
    }
    let seen = rig.task(id).await;
    assert_eq!((seen.state, seen.attempt), (State::Dead, 0));
    assert!(seen.error.as_ref().is_some_and(|error| !error.is_empty()), "{:?}", seen.error);
    assert!(seen.ended_at.is_some());
    let results: Vec<_> = seen.attempts.iter().map(|attempt| attempt.result).collect();
    assert_eq!(results, [AttemptResult::Crashed; 2]);
    assert_eq!(rig.worker().await.claim_ids(MANY).await, []);
}

/// One task aborts the process each time it runs; its neighbours only ever run to their end.
pub async fn one_poisonous_task_costs_its_neighbours_nothing(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut ids = rig.add_many("a", 20).await;
    let poison = ids.remove(7);
    let mut deaths = 0;
    'worker: loop {
        let mut worker = rig.worker().await;
        loop {
            let tasks = worker.claim(50).await;
            if tasks.is_empty() {
                break 'worker;
            }
            if tasks.iter().any(|task| task.id == poison) {
                deaths += 1;
                rig.let_die(worker).await;
                continue 'worker;
            }
            for task in tasks {
                worker.end(&task, Outcome::Done(None)).await;
            }
        }
    }
    assert_eq!((deaths, rig.state(poison).await), (3, State::Dead));
    for id in ids {
        let seen = rig.task(id).await;
        assert_eq!((seen.state, seen.attempt), (State::Done, 1));
    }
}

/// Being there when a process dies proves little; being there alone proves much.
pub async fn only_a_crash_alone_ends_a_task(harness: &dyn Harness) {
    let rig = Rig::with(harness, Rules { max_crashes: 1, ..Rules::default() }).await;
    let together = rig.add_many("a", 2).await;
    let mut worker = rig.worker().await;
    assert_eq!(worker.claim(MANY).await.len(), 2);
    rig.let_die(worker).await;
    for id in &together {
        let seen = rig.task(*id).await;
        assert_eq!((seen.state, seen.crashes), (State::Ready, 1), "two died together: neither is blamed");
    }
    let mut heir = rig.worker().await;
    let alone = heir.claim_one().await;
    rig.let_die(heir).await;
    assert_eq!(rig.state(alone.id).await, State::Dead, "it died alone");
}

pub async fn a_suspect_on_its_last_chance_has_an_empty_worker_to_itself(harness: &dyn Harness) {
    let rig = Rig::with(harness, Rules { max_crashes: 2, ..Rules::default() }).await;
    let suspects = rig.add_many("a", 2).await;
    let mut worker = rig.worker().await;
    worker.claim(MANY).await;
    rig.let_die(worker).await;
    let plain = rig.add(NewTask { priority: 9, ..task("b") }).await;
    let mut heir = rig.worker().await;
    let answer = heir.try_claim(MANY).await.unwrap();
    assert_eq!((answer.tasks.len(), answer.tasks[0].id, answer.rest), (1, suspects[0], Rest::Blocked));
    assert_eq!(heir.claim_ids(MANY).await, [], "nothing beside it");
    let mut busy = rig.worker().await;
    assert_eq!(busy.claim_ids(1).await, [suspects[1]], "another empty worker may take the other");
    heir.end(&answer.tasks[0], Outcome::Done(None)).await;
    assert_eq!(heir.claim_ids(MANY).await, [plain], "it has ended: work goes on");
    rig.advance(Duration::from_secs(5)).await;
    busy.renew().await.unwrap();
    rig.advance(Duration::from_secs(6)).await;
    let late = rig.add(task("b")).await;
    assert_eq!(busy.claim_ids(MANY).await, [late], "one that has lasted does not idle its worker");
}
