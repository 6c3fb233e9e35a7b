use windlass_core::{NewTask, State, Store, TaskId, WorkerId, store::Filter, task::Key};

use crate::rig::{Rig, task};

async fn all(rig: &Rig, filter: &Filter, limit: u32) -> (Vec<TaskId>, usize) {
    let (mut ids, mut after, mut pages) = (Vec::new(), None, 0);
    loop {
        let page = rig.store.tasks(filter, after, limit).await.unwrap();
        ids.extend(page.tasks.iter().map(|task| task.id));
        pages += 1;
        after = page.next;
        if after.is_none() {
            return (ids, pages);
        }
    }
}

#[tokio::test]
async fn pages_of_both_tables_are_newest_first_without_gaps() {
    let rig = Rig::new().await;
    let mut ids = rig.add(100).await;
    rig.finish(30).await;
    rig.store.cancel(&[ids[50], ids[70]], "x").await.unwrap();
    ids.reverse();
    for limit in [1, 7, 100, 1000] {
        assert_eq!(all(&rig, &Filter::default(), limit).await.0, ids);
    }
    let done = Filter { state: Some(State::Done), ..Filter::default() };
    assert_eq!(all(&rig, &done, 7).await.0, ids[70..]);
    let ready = Filter { state: Some(State::Ready), ..Filter::default() };
    assert_eq!(all(&rig, &ready, 7).await.0.len(), 68);
}

#[tokio::test]
async fn a_filter_that_matches_little_is_answered_in_bounded_steps() {
    let rig = Rig::new().await;
    let needle = rig.add_tasks(vec![task("needle")]).await;
    for _ in 0..5 {
        rig.add_tasks(vec![task("hay"); 9_000]).await;
    }
    let filter = Filter { kind: Some(crate::rig::name("needle")), ..Filter::default() };
    let first = rig.store.tasks(&filter, None, 10).await.unwrap();
    assert!(first.tasks.is_empty() && first.next.is_some(), "an empty page with a next");
    let (found, pages) = all(&rig, &filter, 10).await;
    assert_eq!((found, pages), (needle, 3));
}

#[tokio::test]
async fn new_filters_without_a_match_are_answered_in_bounded_steps() {
    let rig = Rig::new().await;
    for _ in 0..3 {
        rig.add(9_000).await;
    }
    let all = Filter::default;
    for filter in [
        Filter { worker: Some(WorkerId(7)), ..all() },
        Filter { key: Some("none".to_owned()), ..all() },
        Filter { key: Some("none".to_owned()), queue: Some(crate::rig::name("default")), ..all() },
        Filter { until: Some(crate::rig::START), worker: Some(WorkerId(7)), ..all() },
    ] {
        let pages = if filter.until.is_some() { 1 } else { 2 };
        for limit in [1, 1_000] {
            assert_eq!(all_of(&rig, &filter, limit).await, pages, "{filter:?}");
        }
    }
}

/// How many pages of summaries a filter without a match has.
async fn all_of(rig: &Rig, filter: &Filter, limit: u32) -> usize {
    let (mut after, mut pages) = (None, 0);
    loop {
        let page = rig.store.summaries(filter, after, limit).await.unwrap();
        assert_eq!(page.tasks, []);
        (after, pages) = (page.next, pages + 1);
        if after.is_none() {
            return pages;
        }
    }
}

#[tokio::test]
async fn a_worker_and_a_key_are_found_behind_any_number_of_others() {
    let rig = Rig::new().await;
    let key = Some(Key { text: "k".to_owned(), ignore_conflict: false });
    let old = rig.add_tasks(vec![NewTask { priority: 9, ..task("a") }, NewTask { key, ..task("a") }]).await;
    let worker = rig.worker().await;
    assert_eq!(rig.claim(worker, 1).await.tasks[0].id, old[0]);
    for _ in 0..3 {
        rig.add(9_000).await;
    }
    let running = Filter { state: Some(State::Running), worker: Some(worker), ..Filter::default() };
    assert_eq!(all(&rig, &running, 10).await, (vec![old[0]], 1));
    let keyed =
        Filter { key: Some("k".to_owned()), queue: Some(crate::rig::name("default")), ..Filter::default() };
    assert_eq!(all(&rig, &keyed, 10).await, (vec![old[1]], 1));
}

#[tokio::test]
async fn dead_tasks_are_found_behind_any_number_of_others() {
    let rig = Rig::new().await;
    let dead = rig.add_tasks(vec![NewTask { priority: 9, ..task("a") }; 3]).await;
    let worker = rig.worker().await;
    let claimed = rig.claim(worker, 3).await.tasks;
    rig.settle(worker, &claimed, &windlass_core::Settlement::Dead { error: "x".into() }).await;
    for _ in 0..3 {
        rig.add(9_000).await;
    }
    let filter = Filter { state: Some(State::Dead), ..Filter::default() };
    let page = rig.store.tasks(&filter, None, 2).await.unwrap();
    assert_eq!(page.tasks.iter().map(|task| task.id).collect::<Vec<_>>(), [dead[2], dead[1]]);
    let page = rig.store.tasks(&filter, page.next, 2).await.unwrap();
    assert_eq!((page.tasks.len(), page.next), (1, None));
}
