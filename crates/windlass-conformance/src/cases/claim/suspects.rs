//! Suspects: tasks that a worker held at two crashes. Their groups are halved until the task that kills is
//! alone.

use std::time::Duration;

use windlass_core::{Claimed, Demand, NewTask, Outcome, Rules, State, source::Rest, task::AttemptResult};

use crate::{
    cases::rig::{MANY, Rig, name, task},
    harness::Harness,
};

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

/// One crash says little: after it all tasks run again at once.
pub async fn after_one_crash_all_run_again_at_once(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let ids = rig.add_many("a", 20).await;
    let mut worker = rig.worker().await;
    worker.claim(MANY).await;
    rig.let_die(worker).await;
    let plain = rig.add(task("a")).await;
    let mut heir = rig.worker().await;
    let answer = heir.try_claim(MANY).await.unwrap();
    let taken: Vec<_> = answer.tasks.iter().map(|task| task.id).collect();
    assert_eq!((taken, answer.rest), (ids.iter().copied().chain([plain]).collect(), Rest::Nothing));
    assert!(answer.tasks.iter().all(|task| task.crashes == u32::from(task.id != plain)));
}

/// Lets two processes die one after the other, each with these tasks.
async fn crash_twice(rig: &Rig<'_>, tasks: usize) {
    for _ in 0..2 {
        let mut worker = rig.worker().await;
        assert_eq!(worker.claim(MANY).await.len(), tasks);
        rig.let_die(worker).await;
    }
}

pub async fn a_worker_runs_one_group_of_suspects_at_a_time(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let ids = rig.add_many("a", 8).await;
    crash_twice(&rig, 8).await;
    let mut first = rig.worker().await;
    assert_eq!(first.claim_ids(3).await, ids[..3]);
    let answer = first.try_claim(MANY).await.unwrap();
    let rest: Vec<_> = answer.tasks.iter().map(|task| (task.id, task.crashes)).collect();
    assert_eq!((rest, answer.rest), (vec![(ids[3], 2)], Rest::Blocked), "more of its group, and no others");
    let plain = rig.add(task("a")).await;
    assert_eq!(first.claim_ids(MANY).await, [plain], "others run beside it");
    let mut second = rig.worker().await;
    let others = second.claim(MANY).await;
    assert_eq!(
        others.iter().map(|task| task.id).collect::<Vec<_>>(),
        ids[4..],
        "another worker, another group"
    );
    for suspect in &others {
        second.end(suspect, Outcome::Release).await;
    }
    assert_eq!(rig.store.unclaim(first.id, 1).await.unwrap(), 3);
    first.end(&answer.tasks[0], Outcome::Done(None)).await;
    let mut both = [rig.worker().await, rig.worker().await];
    let demands = [both[0].demand(50).await, both[1].demand(50).await];
    let tasks = rig.store.claim(&demands).await.unwrap().tasks;
    let of =
        |worker| tasks.iter().filter(|task| task.worker == worker).map(|task| task.id).collect::<Vec<_>>();
    assert_eq!(
        (of(both[0].id), of(both[1].id)),
        (ids[..3].to_vec(), ids[4..].to_vec()),
        "also in one claim for many"
    );
}

pub async fn the_next_group_follows_when_one_has_ended_or_run_long(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let ids = rig.add_many("a", 8).await;
    crash_twice(&rig, 8).await;
    let mut worker = rig.worker().await;
    for suspect in worker.claim(2).await {
        worker.end(&suspect, Outcome::Done(None)).await;
    }
    assert_eq!(worker.claim_ids(MANY).await, ids[2..4], "the rest of the group");
    for _ in 0..4 {
        rig.advance(Duration::from_secs(4)).await;
        worker.renew().await.unwrap();
        assert_eq!(worker.claim_ids(MANY).await, [], "the group keeps others out for ten seconds per crash");
    }
    rig.advance(Duration::from_secs(5)).await;
    assert_eq!(worker.claim_ids(MANY).await, ids[4..], "a long task does not hold up the other groups");
}

pub async fn a_crash_splits_the_group_that_ran(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let ids = rig.add_many("a", 8).await;
    crash_twice(&rig, 8).await;
    let mut worker = rig.worker().await;
    assert_eq!(worker.claim_ids(MANY).await, ids[..4]);
    rig.let_die(worker).await;
    let mut heir = rig.worker().await;
    let mut groups = Vec::new();
    loop {
        let tasks = heir.claim(MANY).await;
        if tasks.is_empty() {
            break;
        }
        groups.push(tasks.iter().map(|task| (task.id, task.crashes)).collect::<Vec<_>>());
        for task in &tasks {
            heir.end(task, Outcome::Done(None)).await;
        }
    }
    let group = |range: std::ops::Range<usize>, crashes| {
        ids[range].iter().map(|id| (*id, crashes)).collect::<Vec<_>>()
    };
    assert_eq!(groups, [group(4..8, 2), group(0..2, 3), group(2..4, 3)], "the older group is first");
}

/// A suspect that waits for its group is held by its job again, and another task uses its place.
pub async fn a_suspect_that_waits_gives_its_room_to_others(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    rig.limit("j", 4).await;
    let mut ids = Vec::new();
    for _ in 0..8 {
        ids.push(rig.add(NewTask { job: Some(name("j")), ..task("a") }).await);
    }
    crash_twice(&rig, 4).await;
    let mut worker = rig.worker().await;
    let mut taken = worker.claim(MANY).await;
    taken.sort_by_key(|task| task.id);
    let of = |tasks: &[Claimed]| tasks.iter().map(|task| task.id).collect::<Vec<_>>();
    assert_eq!(
        of(&taken),
        [ids[0], ids[1], ids[4], ids[5]],
        "one group, and other tasks use the room of the other group"
    );
    assert_eq!((rig.state(ids[2]).await, rig.state(ids[3]).await), (State::Held, State::Held));
    assert_eq!(worker.try_claim(MANY).await.unwrap().rest, Rest::Blocked);
    rig.assert_sound().await;
    for task in taken.drain(..2) {
        worker.end(&task, Outcome::Done(None)).await;
    }
    let next = worker.claim(MANY).await;
    assert_eq!(of(&next), ids[6..], "the job is at its limit throughout");
    for task in next.iter().chain(&taken) {
        worker.end(task, Outcome::Done(None)).await;
    }
    assert_eq!(worker.claim_ids(MANY).await, ids[2..4], "the next group is ready again");
}

pub async fn suspects_are_taken_first_and_others_run_beside_them(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let suspects = rig.add_many("a", 4).await;
    crash_twice(&rig, 4).await;
    let urgent = rig.add(NewTask { priority: 9, ..task("b") }).await;
    let plain = rig.add(task("a")).await;
    let mut heir = rig.worker().await;
    assert_eq!(heir.claim_ids(2).await, suspects[..2]);
    let answer = heir.try_claim(MANY).await.unwrap();
    let ids: Vec<_> = answer.tasks.iter().map(|task| task.id).collect();
    assert_eq!((ids, answer.rest), (vec![urgent, plain], Rest::Blocked));
}

pub async fn any_outcome_of_its_handler_clears_a_suspect(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    for outcome in [
        Outcome::Done(None),
        Outcome::retry("x"),
        Outcome::snooze(Duration::from_secs(1)),
        Outcome::dead("x"),
    ] {
        let id = rig.add(task("a")).await;
        crash_twice(&rig, 1).await;
        assert_eq!(rig.task(id).await.crashes, 2);
        let mut heir = rig.worker().await;
        let claimed = heir.claim_one().await;
        heir.end(&claimed, outcome).await;
        assert_eq!(rig.task(id).await.crashes, 0);
        rig.cancel(id).await.ok();
    }
}

pub async fn a_hand_back_does_not_clear_a_suspect(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let ids = rig.add_many("a", 4).await;
    crash_twice(&rig, 4).await;
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
        assert_eq!(
            rig.task(suspect.id).await.crashes,
            2,
            "a hand-back is neither an end nor a crash: way {way}"
        );
    }
    let answer = rig.worker().await.try_claim(MANY).await.unwrap();
    assert_eq!((answer.tasks.len(), answer.rest), (2, Rest::Blocked));
    assert!(answer.tasks.iter().all(|task| ids[..2].contains(&task.id)), "it is still in its group");
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

/// One task kills the process each time it runs; the other tasks only ever end normally.
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
    assert_eq!((deaths, rig.state(poison).await), (6, State::Dead), "of 20: 10, 5, 3, 1, and alone");
    for id in ids {
        let seen = rig.task(id).await;
        assert_eq!((seen.state, seen.attempt), (State::Done, 1));
    }
}

/// Running when a process dies proves little; running alone proves much.
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

pub async fn a_last_chance_has_an_empty_worker_to_itself(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let suspects = rig.add_many("a", 2).await;
    crash_twice(&rig, 2).await;
    let plain = rig.add(NewTask { priority: 9, ..task("b") }).await;
    let mut heir = rig.worker().await;
    let answer = heir.try_claim(MANY).await.unwrap();
    assert_eq!((answer.tasks.len(), answer.tasks[0].id, answer.rest), (1, suspects[0], Rest::Blocked));
    assert_eq!(heir.claim_ids(MANY).await, [], "nothing beside it");
    heir.end(&answer.tasks[0], Outcome::Release).await;
    let mut busy = rig.worker().await;
    assert_eq!(busy.claim_ids(1).await, [suspects[0]], "it is first");
    assert_eq!(heir.claim_ids(1).await, [suspects[1]], "another empty worker may take the other");
    rig.store.unclaim(heir.id, heir.claim_no).await.unwrap();
    rig.store.retire(busy.id).await.unwrap();
    let second = rig.add(NewTask { priority: 9, ..task("b") }).await;
    let lane = rig.task(plain).await.lane.id;
    let demand = Demand { lanes: [lane].into(), ..heir.demand(1).await };
    assert_eq!(rig.store.claim(&[demand]).await.unwrap().tasks[0].id, plain);
    let answer = heir.try_claim(MANY).await.unwrap();
    let ids: Vec<_> = answer.tasks.iter().map(|task| task.id).collect();
    assert_eq!((ids, answer.rest), (vec![second], Rest::Blocked), "a worker that holds a task leaves it");
    let mut last = rig.worker().await;
    assert_eq!(last.claim_ids(MANY).await, [suspects[0]]);
    for _ in 0..5 {
        rig.advance(Duration::from_secs(4)).await;
        last.renew().await.unwrap();
    }
    rig.advance(Duration::from_secs(1)).await;
    let after_all = rig.add(task("b")).await;
    assert_eq!(last.claim_ids(MANY).await, [after_all], "a suspect that runs for long lets other tasks in");
}
