//! Jobs: as many tasks at once as the limit says, no more, no fewer, and every job in its turn.

use std::{collections::BTreeMap, time::Duration};

use windlass_core::{JobChange, JobState, NewTask, Outcome, Rules, Start, State, TaskId};

use crate::{
    cases::rig::{MANY, Rig, keyed, name, of_job, task},
    harness::Harness,
};

pub async fn a_limit_is_never_exceeded(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    rig.limit("j", 3).await;
    rig.add_all(vec![of_job("j"); 10]).await;
    assert_eq!(rig.figures("j").await, (3, 0, 7));
    let mut done = 0;
    while done < 10 {
        let running = worker.claim(MANY).await;
        assert!((1..=3).contains(&running.len()), "{} run", running.len());
        assert_eq!(worker.claim_ids(MANY).await, [], "nothing above the limit");
        for claimed in &running {
            worker.finish(claimed).await;
            let (ready, running, _) = rig.figures("j").await;
            assert!(ready + running <= 3);
            done += 1;
        }
    }
    assert_eq!(rig.figures("j").await, (0, 0, 0));
    rig.assert_sound().await;
}

pub async fn several_workers_keep_the_limit_together(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    rig.limit("j", 2).await;
    let mut workers = [rig.worker().await, rig.worker().await, rig.worker().await];
    rig.add_all(vec![of_job("j"); 9]).await;
    let mut done = 0;
    while done < 9 {
        let mut running = Vec::new();
        for (n, worker) in workers.iter_mut().enumerate() {
            running.extend(worker.claim(MANY).await.into_iter().map(|task| (n, task)));
        }
        assert!((1..=2).contains(&running.len()), "{} run", running.len());
        for (n, claimed) in running {
            workers[n].finish(&claimed).await;
            done += 1;
        }
    }
    rig.assert_sound().await;
}

pub async fn jobs_released_together_keep_their_own_order(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let jobs = ["j1", "j2", "j3"];
    for job in jobs {
        rig.limit(job, 2).await;
    }
    let of = |job: &&str, n: usize| NewTask { kind: name(["a", "b"][n % 2]), ..of_job(job) };
    let batch = (0..4).flat_map(|n| jobs.iter().rev().map(move |job| of(job, n))).collect();
    let ids = rig.add_all(batch).await;
    let of_place = |place: usize| ids.iter().skip(place).step_by(3).copied().collect::<Vec<_>>();
    // The worker that registers releases two tasks of each job.
    let mut worker = rig.worker().await;
    let last = rig.add(task("a")).await;
    let first = worker.claim(4).await;
    let rest = worker.claim(MANY).await;
    let taken: Vec<_> = first.iter().chain(&rest).map(|task| task.id).collect();
    assert_eq!((taken.len(), taken.last()), (7, Some(&last)), "what came later stands behind");
    for place in 0..3 {
        let mine: Vec<_> = taken.iter().filter(|id| of_place(place).contains(id)).copied().collect();
        assert_eq!(mine, of_place(place)[..2], "each job's oldest tasks, in their order");
    }
    // Each end is a release of its own.
    let by_end: Vec<_> = first.iter().map(|task| ids.iter().position(|id| *id == task.id).unwrap()).collect();
    let mut next = [2, 2, 2];
    let mut expected = Vec::new();
    for (task, place) in first.iter().zip(by_end) {
        worker.finish(task).await;
        rig.harness.settle_down(&*rig.store).await;
        expected.push(of_place(place % 3)[next[place % 3]]);
        next[place % 3] += 1;
    }
    assert_eq!(worker.claim_ids(MANY).await, expected);
    rig.assert_sound().await;
}

pub async fn every_end_of_an_attempt_gives_its_room_back_once(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    rig.limit("j", 2).await;
    rig.add_all(vec![of_job("j"); 20]).await;
    for outcome in [
        Outcome::Done(None),
        Outcome::retry("x"),
        Outcome::snooze(Duration::from_hours(1)),
        Outcome::Release,
        Outcome::Release,
        Outcome::dead("x"),
        Outcome::cancel("x"),
    ] {
        let claimed = worker.claim_one().await;
        assert_eq!((rig.job("j").await.ready, rig.job("j").await.running), (1, 1));
        worker.end(&claimed, outcome.clone()).await;
        assert_eq!((rig.job("j").await.ready, rig.job("j").await.running), (2, 0), "after {outcome:?}");
    }
    rig.assert_sound().await;
}

pub async fn a_hand_back_gives_the_room_back(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let _other = rig.worker().await;
    rig.limit("j", 1).await;
    let ids = rig.add_all(vec![of_job("j"); 2]).await;
    for way in 0..3 {
        let mut worker = rig.worker().await;
        assert_eq!(worker.claim_ids(MANY).await, [ids[0]]);
        let store = &rig.store;
        let given_back = match way {
            0 => store.unclaim(worker.id, worker.claim_no).await.unwrap(),
            1 => store.reconcile(worker.id, worker.claim_no, &[]).await.unwrap().handed_back,
            _ => store.retire(worker.id).await.unwrap(),
        };
        assert_eq!(given_back, 1);
        assert_eq!(rig.figures("j").await, (1, 0, 1), "way {way}");
        assert_eq!(rig.states(&ids).await, [State::Ready, State::Held], "the older one is next again");
    }
    rig.assert_sound().await;
}

pub async fn a_crash_gives_the_room_back(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    rig.limit("j", 2).await;
    let mut dead = rig.worker().await;
    let ids = rig.add_all(vec![of_job("j"); 4]).await;
    assert_eq!(dead.claim_ids(MANY).await, ids[..2]);
    assert_eq!(rig.let_die(dead).await, 2);
    assert_eq!(rig.figures("j").await, (0, 0, 4), "no worker is there to take them");
    let mut heir = rig.worker().await;
    assert_eq!(rig.figures("j").await, (2, 0, 2));
    let claimed = heir.claim(MANY).await;
    assert!(claimed.iter().all(|task| ids[..2].contains(&task.id)) && !claimed.is_empty());
    rig.assert_sound().await;
}

pub async fn a_limit_that_rises_lets_more_through_at_once(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    rig.limit("j", 1).await;
    rig.add_all(vec![of_job("j"); 6]).await;
    worker.claim_one().await;
    let record = rig.limit("j", 4).await;
    assert_eq!((record.concurrency, record.ready, record.running, record.held), (Some(4), 3, 1, 2));
    assert_eq!(worker.claim(MANY).await.len(), 3);
    let all = JobChange { concurrency: Some(None), ..JobChange::default() };
    assert_eq!(rig.set_job("j", all).await.concurrency, None);
    assert_eq!(worker.claim(MANY).await.len(), 2);
    rig.assert_sound().await;
}

pub async fn a_lower_limit_takes_back_ready_tasks_but_no_running_ones(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    rig.limit("j", 5).await;
    let ids = rig.add_all(vec![of_job("j"); 6]).await;
    let running = worker.claim(3).await;
    assert_eq!(rig.figures("j").await, (2, 3, 1));
    let record = rig.limit("j", 2).await;
    assert_eq!((record.ready, record.running, record.held), (0, 3, 3));
    assert_eq!(rig.states(&ids[3..]).await, [State::Held; 3]);
    rig.assert_sound().await;
    worker.finish(&running[0]).await;
    assert_eq!(rig.figures("j").await, (0, 2, 3), "two still run");
    worker.finish(&running[1]).await;
    assert_eq!(rig.figures("j").await, (1, 1, 2));
    assert_eq!(worker.claim_ids(MANY).await, [ids[3]]);
    rig.assert_sound().await;
}

pub async fn with_a_limit_of_zero_nothing_starts(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    rig.limit("j", 0).await;
    rig.add_all(vec![of_job("j"); 2]).await;
    assert_eq!(rig.figures("j").await, (0, 0, 2));
    assert_eq!(worker.claim_ids(MANY).await, []);
    rig.assert_sound().await;
    rig.limit("j", 1).await;
    assert_eq!(worker.claim(MANY).await.len(), 1);
}

pub async fn a_job_that_is_first_used_has_the_default_limit(harness: &dyn Harness) {
    let rig = Rig::with(harness, Rules { job_default_concurrency: Some(2), ..Rules::default() }).await;
    let _worker = rig.worker().await;
    rig.add_all(vec![of_job("used"); 3]).await;
    let used = rig.job("used").await;
    assert_eq!((used.state, used.concurrency, used.delay), (JobState::Active, Some(2), None));
    assert_eq!((used.ready, used.held), (2, 1));
    let made = rig.set_job("made", JobChange::default()).await;
    assert_eq!((made.state, made.concurrency, made.ready), (JobState::Active, Some(2), 0));
    assert_eq!(rig.store.gates().job(&name("never")).await, Ok(None));
}

fn of_new_job(job: &str, limit: u32) -> NewTask {
    NewTask { job_concurrency: Some(limit), ..of_job(job) }
}

pub async fn the_enqueue_that_makes_a_job_may_give_its_limit(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    rig.add_all(vec![of_new_job("j", 2); 5]).await;
    assert_eq!(rig.job("j").await.concurrency, Some(2));
    assert_eq!(rig.figures("j").await, (2, 0, 3));
    assert_eq!(worker.claim(MANY).await.len(), 2);
    // In one call the first limit counts, also after a task that brings none.
    rig.add_all(vec![of_job("k"), of_new_job("k", 3), of_new_job("k", 1)]).await;
    assert_eq!(rig.job("k").await.concurrency, Some(3));
    rig.assert_sound().await;
}

pub async fn a_job_that_is_there_keeps_its_limit_at_an_enqueue(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    rig.limit("set", 4).await;
    rig.add(of_job("used")).await;
    for job in ["set", "used"] {
        let before = rig.job(job).await.concurrency;
        rig.add(of_new_job(job, 1)).await;
        assert_eq!(rig.job(job).await.concurrency, before, "{job}");
    }
    rig.assert_sound().await;
}

pub async fn a_step_gives_its_job_a_limit_before_its_turn(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    let step = NewTask { workflow: Some(name("w")), ..task("a") };
    let limited = NewTask { workflow: Some(name("w")), ..of_new_job("j", 1) };
    let ids = rig.add_all(vec![step, limited]).await;
    assert_eq!(rig.job("j").await.concurrency, Some(1));
    let other = rig.add(of_job("j")).await;
    let first = worker.claim(MANY).await;
    assert_eq!(first.iter().map(|task| task.id).collect::<Vec<_>>(), [ids[0], other]);
    worker.finish(&first[0]).await;
    assert_eq!(rig.state(ids[1]).await, State::Held, "the job is at the limit that the step gave");
    rig.assert_sound().await;
}

pub async fn a_key_that_is_known_gives_no_job_a_limit(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    rig.add(keyed("k")).await;
    let again = NewTask { job: Some(name("j")), job_concurrency: Some(1), ..keyed("k") };
    assert!(rig.store.enqueue(vec![again]).await.unwrap()[0].existing);
    assert_eq!(rig.store.gates().job(&name("j")).await.unwrap(), None);
}

pub async fn a_limit_without_a_job_and_one_of_zero_are_refused(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let no_job = NewTask { job_concurrency: Some(1), ..task("a") };
    for bad in [no_job, of_new_job("j", 0)] {
        let error = rig.store.enqueue(vec![of_job("j"), bad]).await.unwrap_err();
        assert!(error.to_string().contains("job_concurrency"), "{error}");
    }
    assert_eq!(rig.store.gates().job(&name("j")).await.unwrap(), None);
}

pub async fn a_job_without_a_limit_has_a_window_in_the_line(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker_of(&["a"], &[], 10).await;
    rig.add_all(vec![of_job("j"); 150]).await;
    assert_eq!(rig.figures("j").await, (100, 0, 50));
    let claimed = worker.claim(10).await;
    for task in &claimed[..4] {
        worker.finish(task).await;
    }
    assert_eq!(rig.figures("j").await, (94, 6, 46), "held tasks replace the ended ones");
    let _more = rig.worker_of(&["a"], &[], 60).await;
    assert_eq!(rig.figures("j").await, (134, 6, 6), "a larger fleet has a larger window");
    rig.assert_sound().await;
}

/// Ready tasks in the order of enqueue would serve the first jobs again and again.
pub async fn jobs_take_turns(harness: &dyn Harness) {
    const JOBS: usize = 62;
    let rules = Rules { job_default_concurrency: Some(3), ..Rules::default() };
    let rig = Rig::with(harness, rules).await;
    let mut worker = rig.worker_of(&["a"], &[], 50).await;
    for job in 0..JOBS {
        rig.add_all(vec![of_job(&format!("job-{job:02}")); 40]).await;
    }
    let (mut ran, mut running) = (BTreeMap::<String, usize>::new(), std::collections::VecDeque::new());
    while ran.values().sum::<usize>() < 30 * JOBS {
        running.extend(worker.claim(50 - running.len() as u32).await);
        let ended: Vec<_> = running.drain(..running.len().min(25)).collect();
        for task in &ended {
            *ran.entry(task.job.as_ref().unwrap().to_string()).or_default() += 1;
        }
        worker.settle(ended.into_iter().map(|task| (task, Outcome::Done(None))).collect()).await;
    }
    assert_eq!(ran.len(), JOBS, "every job has run");
    assert!(ran.values().all(|n| (27..=33).contains(n)), "each within a tenth of the mean: {ran:?}");
}

pub async fn a_large_job_delays_a_new_one_by_no_more_than_its_window(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    // Twice the slots of the fleet; the window of a smaller one is 100.
    let mut worker = rig.worker_of(&["a"], &[], 60).await;
    rig.add_all(vec![of_job("large"); 3_000]).await;
    let first = rig.add(of_job("small")).await;
    let mut before = 0;
    loop {
        let claimed = worker.claim(10).await;
        if claimed.iter().any(|task| task.id == first) {
            break;
        }
        before += claimed.len();
        assert!(before <= 120, "no more than twice the slots start before it");
        worker.settle(claimed.into_iter().map(|task| (task, Outcome::Done(None))).collect()).await;
    }
}

fn urgent(job: &str, priority: i32) -> NewTask {
    NewTask { priority, ..of_job(job) }
}

pub async fn a_jobs_next_task_has_the_highest_priority_then_age(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    rig.limit("j", 1).await;
    let first = rig.add(urgent("j", 9)).await;
    let ids = rig.add_all([0, 5, -2, 5, 0].map(|priority| urgent("j", priority)).to_vec()).await;
    let mut order = Vec::new();
    for _ in 0..6 {
        let claimed = worker.claim_one().await;
        worker.finish(&claimed).await;
        order.push(claimed.id);
    }
    assert_eq!(order, [first, ids[1], ids[3], ids[0], ids[4], ids[2]]);
}

pub async fn a_task_that_outranks_a_ready_one_takes_its_place(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    rig.limit("j", 2).await;
    let low = rig.add_all(vec![urgent("j", 0), urgent("j", 1)]).await;
    let high = rig.add(urgent("j", 7)).await;
    assert_eq!(rig.states(&low).await, [State::Held, State::Ready], "the task of lowest priority makes room");
    assert_eq!(rig.state(high).await, State::Ready);
    let equal = rig.add(urgent("j", 1)).await;
    assert_eq!(rig.state(equal).await, State::Held, "a task of equal priority waits");
    assert_eq!(worker.claim_ids(MANY).await, [high, low[1]]);
    rig.add(urgent("j", 9)).await;
    assert_eq!(rig.figures("j").await, (0, 2, 3), "running tasks stay");
    rig.assert_sound().await;
}

/// One of them takes the last place, and the other still finds a worse task before it.
pub async fn tasks_that_fill_a_job_outrank_a_ready_one(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    rig.limit("j", 2).await;
    let low = rig.add(urgent("j", -1)).await;
    let high = rig.add_all(vec![urgent("j", 0); 2]).await;
    assert_eq!(rig.states(&high).await, [State::Ready; 2]);
    assert_eq!(rig.state(low).await, State::Held);
    assert_eq!(worker.claim_ids(MANY).await, high);
}

pub async fn a_task_that_becomes_due_asks_its_job(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    rig.limit("j", 1).await;
    let later = NewTask { start: Start::In(Duration::from_secs(5)), ..of_job("j") };
    let ids = rig.add_all(vec![later; 2]).await;
    assert_eq!(rig.states(&ids).await, [State::Scheduled; 2]);
    rig.advance(Duration::from_secs(6)).await;
    let mut worker = rig.worker().await;
    let report = rig.store.promote_due(MANY).await.unwrap();
    assert_eq!((report.moved, report.lanes_ready.len()), (2, 1));
    assert_eq!(rig.states(&ids).await, [State::Ready, State::Held]);
    assert_eq!(rig.task(ids[1]).await.due_at, None);
    let claimed = worker.claim_one().await;
    worker.finish(&claimed).await;
    assert_eq!(worker.claim_ids(MANY).await, [ids[1]]);
}

pub async fn a_batch_may_mix_plain_tasks_with_those_of_jobs_and_workflows(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    rig.limit("j", 1).await;
    let step = NewTask { workflow: Some(name("w")), ..task("a") };
    let batch = vec![of_job("j"), step.clone(), task("a"), of_job("j"), step, of_job("k"), task("a")];
    let ids = rig.add_all(batch).await;
    let mut of_each = [State::Ready; 7];
    (of_each[3], of_each[4]) = (State::Held, State::Waiting);
    assert_eq!(rig.states(&ids).await, of_each);
    let order: Vec<TaskId> = worker.claim_ids(MANY).await;
    assert_eq!(order, [ids[2], ids[6], ids[1], ids[0], ids[5]], "plain, then workflows, then jobs by name");
    rig.assert_sound().await;
}

pub async fn a_cancelled_task_gives_its_room_to_the_next(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    rig.limit("j", 1).await;
    let ids = rig.add_all(vec![of_job("j"); 3]).await;
    assert_eq!(rig.cancel(ids[1]).await, Ok(State::Cancelled));
    assert_eq!(rig.cancel(ids[0]).await, Ok(State::Cancelled));
    assert_eq!(worker.claim_ids(MANY).await, [ids[2]]);
    rig.assert_sound().await;
}
