//! Filters of lists by cause, worker, key, time and id; lists without payloads.

use std::time::Duration;

use windlass_core::{
    Error, NewTask, Outcome, Payload, State, TaskId,
    store::{FILTER_IDS_MAX, Filter, cause_of},
};

use crate::{
    cases::rig::{Rig, in_queue, keyed, list, name, task},
    harness::Harness,
};

/// The ids that a filter finds, whole and as summaries, in pages of several sizes.
async fn found(rig: &Rig<'_>, filter: &Filter) -> Vec<TaskId> {
    let whole = list(&*rig.store, filter).await;
    for limit in [1, 3, 1_000] {
        let (mut summaries, mut after) = (Vec::new(), None);
        loop {
            let page = rig.store.summaries(filter, after, limit).await.unwrap();
            assert!(page.tasks.len() <= limit as usize, "a page of {limit} has {}", page.tasks.len());
            summaries.extend(page.tasks);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let expected: Vec<_> = whole.iter().cloned().map(Into::into).collect();
        assert_eq!(summaries, expected, "{filter:?} in pages of {limit}");
    }
    whole.iter().map(|task| task.id).collect()
}

pub async fn a_cause_finds_the_dead_tasks_that_have_it(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut ids = Vec::new();
    let mut worker = rig.worker().await;
    for error in
        ["order 17 is gone", "order 18 is late", "order 19 is gone", "http 503", "17 is odd", "18 is odd"]
    {
        ids.push(rig.add(task("a")).await);
        let claimed = worker.claim_one().await;
        worker.end(&claimed, Outcome::dead(error)).await;
    }
    let fails = rig.add(task("a")).await;
    let claimed = worker.claim_one().await;
    worker.end(&claimed, Outcome::retry("order 20 is gone")).await;
    let of = |cause: &str| Filter { cause: Some(cause.to_owned()), ..Filter::default() };
    assert_eq!(found(&rig, &of("order # is gone")).await, [ids[2], ids[0]]);
    assert_eq!(found(&rig, &of(&cause_of(Some("http 503")))).await, [ids[3]]);
    assert_eq!(found(&rig, &of("# is odd")).await, [ids[5], ids[4]]);
    assert_eq!(found(&rig, &of("order")).await, []);
    assert_eq!(found(&rig, &of("http 5__")).await, []);
    let not_dead = Filter { state: Some(State::Scheduled), ..of("order # is gone") };
    assert_eq!((rig.state(fails).await, found(&rig, &not_dead).await), (State::Scheduled, vec![]));
}

pub async fn a_worker_finds_the_tasks_that_it_runs_or_ran(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let ids = rig.add_many("a", 6).await;
    let (mut one, mut other) = (rig.worker().await, rig.worker().await);
    let (mine, theirs) = (one.claim(4).await, other.claim(1).await);
    one.end(&mine[0], Outcome::Done(None)).await;
    one.end(&mine[1], Outcome::dead("x")).await;
    let of = |worker, state| Filter { worker: Some(worker), state, ..Filter::default() };
    assert_eq!(found(&rig, &of(one.id, None)).await, [ids[3], ids[2], ids[1], ids[0]]);
    assert_eq!(found(&rig, &of(one.id, Some(State::Running))).await, [ids[3], ids[2]]);
    assert_eq!(found(&rig, &of(one.id, Some(State::Done))).await, [ids[0]]);
    assert_eq!(found(&rig, &of(other.id, Some(State::Running))).await, [theirs[0].id]);
    let of_lane = Filter { queue: Some(name("q")), ..of(one.id, Some(State::Running)) };
    assert_eq!(found(&rig, &of_lane).await, []);
}

pub async fn a_key_finds_its_tasks(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let first = rig.add(keyed("k")).await;
    let other_queue = rig.add(NewTask { queue: name("q"), ..keyed("k") }).await;
    rig.add(keyed("k%")).await;
    rig.add_many("a", 3).await;
    let of = |queue: Option<&str>| Filter {
        key: Some("k".to_owned()),
        queue: queue.map(name),
        ..Filter::default()
    };
    assert_eq!(found(&rig, &of(None)).await, [other_queue, first]);
    assert_eq!(found(&rig, &of(Some("default"))).await, [first]);
    assert_eq!(found(&rig, &of(Some("none"))).await, []);
    rig.cancel(first).await.unwrap();
    assert_eq!(found(&rig, &of(Some("default"))).await, [first]);
    let none = Filter { key: Some("nothing".to_owned()), ..Filter::default() };
    assert_eq!(found(&rig, &none).await, []);
}

pub async fn named_tasks_are_found_whether_they_have_ended_or_not(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let ids = rig.add_many("a", 5).await;
    rig.cancel(ids[1]).await.unwrap();
    let named = |ids: &[TaskId]| Filter { ids: Some(ids.to_vec()), ..Filter::default() };
    let wanted = [ids[1], ids[4], TaskId::from_raw(1), ids[2], ids[4]];
    assert_eq!(found(&rig, &named(&wanted)).await, [ids[4], ids[2], ids[1]]);
    let cancelled = Filter { state: Some(State::Cancelled), ..named(&wanted) };
    assert_eq!(found(&rig, &cancelled).await, [ids[1]]);
    assert_eq!(found(&rig, &named(&[])).await, []);
}

pub async fn a_filter_of_too_many_ids_is_refused(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let filter = Filter { ids: Some(vec![TaskId::from_raw(1); FILTER_IDS_MAX + 1]), ..Filter::default() };
    assert!(rig.store.tasks(&filter, None, 1).await.is_err());
    assert!(rig.store.summaries(&filter, None, 1).await.is_err());
}

pub async fn a_filter_with_a_nul_is_refused(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let text = || Some("a\0b".to_owned());
    let filters = [
        Filter { key: text(), ..Filter::default() },
        Filter { cause: text(), ..Filter::default() },
        Filter { cause: text(), ids: Some(vec![TaskId::from_raw(1)]), ..Filter::default() },
    ];
    for filter in filters {
        let refused = [
            rig.store.tasks(&filter, None, 1).await.err(),
            rig.store.summaries(&filter, None, 1).await.err(),
        ];
        assert!(refused.iter().all(|error| matches!(error, Some(Error::Invalid(_)))), "{refused:?}");
    }
}

pub async fn a_time_is_the_end_of_one_filter_and_the_start_of_another(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let before = rig.add(task("a")).await;
    rig.advance(Duration::from_mins(1)).await;
    let at = harness.now().await;
    rig.advance(Duration::from_mins(1)).await;
    let after = rig.add(task("a")).await;
    let until = Filter { until: Some(at), ..Filter::default() };
    let since = Filter { since: Some(at), ..Filter::default() };
    assert_eq!(found(&rig, &until).await, [before]);
    assert_eq!(found(&rig, &since).await, [after]);
    let exactly = Filter { until: Some(before.enqueued_at()), ..Filter::default() };
    assert_eq!(found(&rig, &exactly).await, []);
    let far = Filter { until: "9999-01-01T00:00:00Z".parse().ok(), ..Filter::default() };
    assert_eq!(found(&rig, &far).await, [after, before]);
}

pub async fn a_summary_is_the_task_without_what_it_carries(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let payload = Payload::json(&"x".repeat(10_000)).unwrap();
    let given = NewTask { payload, priority: 7, job: Some(name("j")), ..in_queue("a", "q") };
    rig.add(given.clone()).await;
    rig.add(given.clone()).await;
    rig.add(NewTask { queue: name("q"), ..keyed("k") }).await;
    let mut worker = rig.worker().await;
    let claimed = worker.claim(2).await;
    worker.end(&claimed[0], Outcome::Done(Some(Payload::json(&"out").unwrap()))).await;
    worker.end(&claimed[1], Outcome::dead("boom")).await;
    assert_eq!(found(&rig, &Filter::default()).await.len(), 3);
    let dead = Filter { state: Some(State::Dead), ..Filter::default() };
    let page = rig.store.summaries(&dead, None, 10).await.unwrap();
    assert_eq!(page.tasks.len(), 1, "{page:?}");
    let dead = &page.tasks[0];
    assert_eq!((dead.worker, dead.attempt, dead.priority), (Some(worker.id), 1, 7));
    assert_eq!((dead.error.as_deref(), dead.job.as_ref()), (Some("boom"), Some(&name("j"))));
    assert!(dead.started_at.is_some() && dead.ended_at.is_some(), "{dead:?}");
}
