use std::collections::HashSet;

use windlass_core::{NewTask, State, Store, TaskId, source::Rest};

use crate::rig::{DONE, Rig, name, task};

#[tokio::test]
async fn a_claim_over_many_lanes_goes_by_priority_then_entry() {
    let rig = Rig::new().await;
    let mut tasks = Vec::new();
    for n in 0..200 {
        tasks.push(NewTask { priority: n % 5, ..task(["a", "b", "c", "d"][n as usize * 7 % 4]) });
    }
    // One lane far longer than its share, so that its head is read more than once.
    tasks.extend(vec![NewTask { priority: 9, ..task("a") }; 150]);
    let ids = rig.add_tasks(tasks.clone()).await;
    let mut expected: Vec<(i32, TaskId)> = tasks.iter().map(|task| -task.priority).zip(ids).collect();
    expected.sort_unstable();
    let worker = rig.worker().await;
    let mut taken = Vec::new();
    for n in [7, 120, 1, 60] {
        let answer = rig.claim(worker, n).await;
        assert_eq!((answer.tasks.len(), answer.rest), (n as usize, Rest::More));
        taken.extend(answer.tasks);
    }
    let expected: Vec<TaskId> = expected.into_iter().map(|(_, id)| id).take(taken.len()).collect();
    assert_eq!(taken.iter().map(|task| task.id).collect::<Vec<_>>(), expected);
    rig.settle(worker, &taken, &DONE).await;
    assert_eq!((rig.depth().await.ready, rig.depth().await.running), (350 - 188, 0));
}

#[tokio::test]
async fn with_more_lanes_than_one_round_compares_every_lane_is_served() {
    let rig = Rig::new().await;
    let tasks = (0..150).map(|n| NewTask { queue: name(&format!("q{n}")), ..task("a") });
    let ids: HashSet<TaskId> = rig.add_tasks(tasks.collect()).await.into_iter().collect();
    let worker = rig.worker().await;
    let mut seen = HashSet::new();
    for _ in 0..14 {
        let answer = rig.claim(worker, 10).await;
        assert_eq!((answer.tasks.len(), answer.rest), (10, Rest::More));
        seen.extend(answer.tasks.iter().map(|task| task.id));
    }
    let last = rig.claim(worker, 100).await;
    assert_eq!((last.tasks.len(), last.rest), (10, Rest::Nothing));
    seen.extend(last.tasks.iter().map(|task| task.id));
    assert_eq!(seen, ids);
}

#[tokio::test]
async fn figures_are_exact_after_a_large_batch_of_all_ends() {
    let rig = Rig::new().await;
    let keyed = |n: usize| windlass_core::task::Key { text: format!("k{n}"), ignore_conflict: false };
    let tasks = (0..300).map(|n| NewTask { key: (n % 3 == 0).then(|| keyed(n)), ..task(["a", "b"][n % 2]) });
    let ids = rig.add_tasks(tasks.collect()).await;
    let worker = rig.worker().await;
    let claimed = rig.claim(worker, 300).await.tasks;
    rig.settle(worker, &claimed[..197], &DONE).await;
    let retry = windlass_core::Settlement::Retry { due_at: crate::rig::START, error: "x".into() };
    rig.settle(worker, &claimed[197..230], &retry).await;
    rig.settle(worker, &claimed[230..260], &windlass_core::Settlement::Release).await;
    rig.settle(worker, &claimed[260..], &windlass_core::Settlement::Dead { error: "x".into() }).await;
    let depth = rig.depth().await;
    assert_eq!((depth.ready, depth.running, depth.scheduled, depth.dead), (30, 0, 33, 40));
    assert_eq!(rig.store.info().await.unwrap().history_rows, 197);
    assert_eq!(rig.state(ids[0]).await, State::Done);
    assert_eq!(rig.store.audit().await.unwrap(), []);
}
