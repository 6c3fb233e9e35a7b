//! Reading a store: one task, pages, filters, figures, ends.

use std::{sync::Arc, time::Duration};

use windlass_core::{NewTask, Outcome, Start, State, TaskId, store::Depth, store::Filter};

use crate::{
    cases::rig::{Rig, in_queue, keyed, list, name, task},
    harness::Harness,
};

pub async fn pages_bring_every_task_once_newest_first(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut ids = rig.add_many("a", 25).await;
    let mut worker = rig.worker().await;
    for claimed in worker.claim(9).await {
        worker.end(&claimed, Outcome::Done(None)).await;
    }
    ids.reverse();
    for limit in [1, 7, 25, 1_000_000] {
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let page = rig.store.tasks(&Filter::default(), after, limit).await.unwrap();
            assert!(page.tasks.len() <= limit as usize);
            seen.extend(page.tasks.iter().map(|task| task.id));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(seen, ids, "pages of {limit}");
    }
}

pub async fn pages_are_not_disturbed_by_tasks_added_meanwhile(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let ids = rig.add_many("a", 6).await;
    let page = rig.store.tasks(&Filter::default(), None, 3).await.unwrap();
    rig.add_many("a", 5).await;
    let rest = rig.store.tasks(&Filter::default(), page.next, 100).await.unwrap();
    let seen: Vec<_> = page.tasks.iter().chain(&rest.tasks).map(|task| task.id).collect();
    assert_eq!(seen, ids.into_iter().rev().collect::<Vec<_>>());
}

pub async fn filters_return_tasks_that_match_all_of_them(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let done = rig.add(NewTask { job: Some(name("j")), ..in_queue("a", "q") }).await;
    let mut worker = rig.worker().await;
    let claimed = worker.claim_one().await;
    worker.end(&claimed, Outcome::Done(None)).await;
    rig.advance(Duration::from_mins(1)).await;
    let since = harness.now().await;
    let ready = rig.add(in_queue("a", "q")).await;
    let other = rig.add(in_queue("b", "r")).await;
    let later = rig.add(NewTask { start: Start::In(Duration::from_secs(9)), ..in_queue("a", "r") }).await;
    let found = async |filter: Filter| {
        list(&*rig.store, &filter).await.iter().map(|task| task.id).collect::<Vec<_>>()
    };
    let all = Filter::default;
    assert_eq!(found(Filter { state: Some(State::Done), ..all() }).await, [done]);
    assert_eq!(found(Filter { state: Some(State::Ready), ..all() }).await, [other, ready]);
    assert_eq!(found(Filter { kind: Some(name("a")), ..all() }).await, [later, ready, done]);
    assert_eq!(found(Filter { queue: Some(name("q")), ..all() }).await, [ready, done]);
    assert_eq!(found(Filter { job: Some(name("j")), ..all() }).await, [done]);
    assert_eq!(found(Filter { since: Some(since), ..all() }).await, [later, other, ready]);
    let both = Filter { kind: Some(name("a")), queue: Some(name("r")), ..all() };
    assert_eq!(found(both).await, [later]);
    assert!(found(Filter { kind: Some(name("z")), ..all() }).await.is_empty());
}

pub async fn lane_figures_follow_every_change_of_state(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    rig.add_many("a", 6).await;
    rig.add(NewTask { start: Start::In(Duration::from_hours(1)), ..task("a") }).await;
    let depth = async || rig.store.lane_records().await.unwrap()[0].depth;
    assert_eq!(depth().await, Depth { ready: 6, scheduled: 1, ..Depth::default() });
    let mut worker = rig.worker().await;
    let tasks = worker.claim(4).await;
    assert_eq!(depth().await, Depth { ready: 2, running: 4, scheduled: 1, ..Depth::default() });
    worker.end(&tasks[0], Outcome::Done(None)).await;
    worker.end(&tasks[1], Outcome::dead("x")).await;
    worker.end(&tasks[2], Outcome::snooze(Duration::from_hours(1))).await;
    worker.end(&tasks[3], Outcome::cancel("x")).await;
    assert_eq!(depth().await, Depth { ready: 2, scheduled: 2, dead: 1, ..Depth::default() });
    rig.redrive(tasks[1].id).await.unwrap();
    worker.claim(1).await;
    assert_eq!(depth().await, Depth { ready: 1, running: 1, scheduled: 3, ..Depth::default() });
    rig.store.retire(worker.id).await.unwrap();
    rig.advance(Duration::from_hours(2)).await;
    rig.promote().await;
    assert_eq!(depth().await, Depth { ready: 5, ..Depth::default() });
}

pub async fn the_first_ready_task_of_a_lane_has_a_place_rising_with_time(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let heads = async || {
        let ready = rig.store.ready_lines().await.unwrap();
        assert!(ready.heads.iter().all(|(_, _, place)| *place <= ready.last), "{ready:?}");
        let mut heads: Vec<_> =
            ready.heads.iter().map(|(_, queue, place)| (queue.to_string(), *place)).collect();
        heads.sort();
        (ready.last, heads)
    };
    assert_eq!(heads().await.1, []);
    rig.add(in_queue("a", "q")).await;
    rig.add(NewTask { start: Start::In(Duration::from_secs(9)), ..in_queue("a", "later") }).await;
    let (first_last, first) = heads().await;
    assert_eq!(first.iter().map(|(queue, _)| queue.as_str()).collect::<Vec<_>>(), ["q"]);
    let (second, urgent) = (in_queue("a", "q"), NewTask { priority: 5, ..in_queue("a", "q") });
    rig.add(second).await;
    rig.add(in_queue("a", "r")).await;
    let (second_last, both) = heads().await;
    assert!(second_last > first_last, "{second_last} after {first_last}");
    assert_eq!(both[0], first[0], "a later task does not change which one is next");
    assert!(both[1].1 > both[0].1, "{both:?}");
    rig.add(urgent).await;
    assert!(heads().await.1[0].1 > both[1].1, "a task of higher priority is next, even if it is younger");
    let mut worker = rig.worker_of(&["a"], &["q"], 100).await;
    assert_eq!(worker.claim(9).await.len(), 3);
    assert_eq!(heads().await.1, [both[1].clone()], "an empty line has no next");
}

pub async fn enqueues_with_a_known_key_are_counted_apart(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    rig.add_many("a", 7).await;
    for _ in 0..3 {
        rig.add(keyed("k")).await;
    }
    let usage = rig.store.usage();
    assert_eq!((usage.enqueued, usage.existing), (8, 2));
    assert!(usage.pools.iter().all(|pool| pool.busy <= pool.size), "{usage:?}");
}

pub async fn an_unknown_task_is_not_there(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    assert_eq!(rig.store.task(TaskId::from_raw(1)).await, Ok(None));
}

pub async fn ended_answers_for_ended_and_unknown_tasks(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let ids = rig.add_many("a", 3).await;
    let mut worker = rig.worker().await;
    let claimed = worker.claim_one().await;
    assert_eq!(rig.store.ended(&ids, Duration::ZERO).await.unwrap(), []);
    worker.end(&claimed, Outcome::Done(None)).await;
    rig.cancel(ids[1]).await.unwrap();
    let asked = [ids[0], ids[1], ids[2], TaskId::from_raw(1)];
    let mut ended = rig.store.ended(&asked, Duration::ZERO).await.unwrap();
    ended.sort_by_key(|(id, _)| *id);
    let states: Vec<_> = ended.iter().map(|(id, task)| (*id, task.as_ref().map(|task| task.state))).collect();
    assert_eq!(
        states,
        [(TaskId::from_raw(1), None), (ids[0], Some(State::Done)), (ids[1], Some(State::Cancelled))]
    );
}

pub async fn ended_waits_for_the_first_end(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let ids = rig.add_many("a", 2).await;
    let mut worker = rig.worker().await;
    let tasks = worker.claim(2).await;
    let store = Arc::clone(&rig.store);
    let asked = ids.clone();
    let waiter = tokio::spawn(async move { store.ended(&asked, Duration::from_mins(5)).await.unwrap() });
    tokio::task::yield_now().await;
    worker.end(&tasks[1], Outcome::Done(None)).await;
    let ended = waiter.await.unwrap();
    assert_eq!(ended.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [ids[1]]);
}

pub async fn the_store_describes_itself(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let info = rig.store.info().await.unwrap();
    assert!(!info.backend.is_empty() && !info.engine_version.is_empty() && info.created);
    rig.add(task("a")).await;
    let mut worker = rig.worker().await;
    let claimed = worker.claim_one().await;
    worker.end(&claimed, Outcome::Done(None)).await;
    assert_eq!(rig.store.info().await.unwrap().history_rows, 1);
}

pub async fn a_closed_store_refuses_every_call(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let id = rig.add(task("a")).await;
    let mut worker = rig.worker().await;
    let demand = worker.demand(1).await;
    rig.store.close().await.unwrap();
    assert!(rig.store.enqueue(vec![task("a")]).await.is_err());
    assert!(rig.store.claim(&[demand]).await.is_err());
    assert!(rig.store.cancel(&[id], "x").await.is_err());
}
