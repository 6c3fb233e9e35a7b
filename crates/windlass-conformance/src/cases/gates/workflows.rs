//! Workflows: one step at a time, in the order of append.

use std::{collections::BTreeMap, time::Duration};

use windlass_core::{NewTask, Outcome, Start, State, source::Rest, task::Key};

use crate::{
    cases::rig::{MANY, Rig, keyed, name, of_job, step_of},
    harness::Harness,
};

pub async fn steps_run_one_at_a_time_in_the_order_of_append(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    let mut ids = rig.add_all(vec![step_of("w"); 4]).await;
    for _ in 0..6 {
        ids.push(rig.add(step_of("w")).await);
    }
    let mut order = Vec::new();
    for left in (1..=10).rev() {
        assert_eq!(rig.workflow("w").await.unwrap().steps, left);
        let answer = worker.try_claim(MANY).await.unwrap();
        assert_eq!((answer.tasks.len(), answer.rest), (1, Rest::Nothing));
        let settled = worker.settle(vec![(answer.tasks[0].clone(), Outcome::Done(None))]).await;
        assert_eq!(
            settled.lanes_ready.len(),
            usize::from(left > 1),
            "the answer names the lane of the next step"
        );
        order.push(answer.tasks[0].id);
    }
    assert_eq!(order, ids);
    assert_eq!(rig.workflow("w").await, None, "the workflow is gone");
    rig.assert_sound().await;
}

pub async fn many_workflows_run_side_by_side(harness: &dyn Harness) {
    const WORKFLOWS: usize = 100;
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    let steps = (0..3 * WORKFLOWS).map(|n| step_of(&format!("w-{:02}", n % WORKFLOWS))).collect();
    let ids = rig.add_all(steps).await;
    let mut order = BTreeMap::<String, Vec<_>>::new();
    for _ in 0..3 {
        let claimed = worker.claim(MANY).await;
        assert_eq!(claimed.len(), WORKFLOWS, "one step of each");
        for task in &claimed {
            order.entry(task.workflow.as_ref().unwrap().to_string()).or_default().push(task.id);
        }
        worker.settle(claimed.into_iter().map(|task| (task, Outcome::Done(None))).collect()).await;
    }
    for (n, steps) in order.into_values().enumerate() {
        assert_eq!(steps, [ids[n], ids[n + WORKFLOWS], ids[n + 2 * WORKFLOWS]]);
    }
    assert_eq!(rig.store.gates().workflows(false, None, MANY).await, Ok(vec![]));
}

pub async fn a_retrying_head_keeps_its_turn(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    let ids = rig.add_all(vec![step_of("w"); 2]).await;
    for outcome in [Outcome::retry("x"), Outcome::snooze(Duration::from_secs(1)), Outcome::Release] {
        let claimed = worker.claim_one().await;
        assert_eq!(claimed.id, ids[0]);
        worker.end(&claimed, outcome).await;
        assert_eq!(rig.state(ids[1]).await, State::Waiting);
        rig.advance(Duration::from_secs(5)).await;
        worker.renew().await.unwrap();
        rig.promote().await;
    }
    let claimed = worker.claim_one().await;
    worker.finish(&claimed).await;
    assert_eq!(worker.claim_ids(MANY).await, [ids[1]]);
    rig.assert_sound().await;
}

pub async fn a_head_whose_worker_dies_keeps_its_turn(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    let ids = rig.add_all(vec![step_of("w"); 2]).await;
    worker.claim_one().await;
    rig.let_die(worker).await;
    assert_eq!(rig.states(&ids).await, [State::Ready, State::Waiting]);
    let mut heir = rig.worker().await;
    let claimed = heir.claim_one().await;
    assert_eq!(claimed.id, ids[0]);
    heir.finish(&claimed).await;
    assert_eq!(heir.claim_ids(MANY).await, [ids[1]]);
    rig.assert_sound().await;
}

pub async fn a_step_that_is_due_later_holds_up_the_rest(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    let later = |seconds| NewTask { start: Start::In(Duration::from_secs(seconds)), ..step_of("w") };
    let ids = rig.add_all(vec![step_of("w"), later(6), later(2)]).await;
    let due_at = rig.task(ids[1]).await.due_at;
    assert!(due_at.is_some(), "kept while it waits");
    assert_eq!(worker.try_claim(0).await.unwrap().next_due, None, "a waiting step is not due");
    let claimed = worker.claim_one().await;
    worker.finish(&claimed).await;
    assert_eq!(rig.states(&ids[1..]).await, [State::Scheduled, State::Waiting]);
    assert_eq!(rig.task(ids[1]).await.due_at, due_at);
    assert_eq!(worker.try_claim(MANY).await.unwrap().next_due, due_at);
    rig.advance(Duration::from_secs(7)).await;
    rig.promote().await;
    let claimed = worker.claim_one().await;
    assert_eq!(claimed.id, ids[1]);
    worker.finish(&claimed).await;
    assert_eq!(worker.claim_ids(MANY).await, [ids[2]], "its time has passed while it waited");
}

pub async fn priority_does_not_reorder_steps(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    let steps = [0, 5, 9].map(|priority| NewTask { priority, ..step_of("w") });
    let ids = rig.add_all(steps.to_vec()).await;
    for id in ids {
        let claimed = worker.claim_one().await;
        assert_eq!(claimed.id, id);
        worker.finish(&claimed).await;
    }
}

pub async fn priority_orders_the_heads_of_workflows(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    let low = rig.add(step_of("a")).await;
    let high = rig.add(NewTask { priority: 5, ..step_of("b") }).await;
    assert_eq!(worker.claim_ids(MANY).await, [high, low]);
}

fn step_with_job(workflow: &str, job: &str) -> NewTask {
    NewTask { workflow: Some(name(workflow)), ..of_job(job) }
}

pub async fn a_step_with_a_job_needs_its_turn_and_room(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    rig.limit("j", 1).await;
    let steps = vec![step_with_job("w", "j"), step_with_job("w", "j"), step_with_job("x", "j")];
    let ids = rig.add_all(steps).await;
    assert_eq!(rig.states(&ids).await, [State::Ready, State::Waiting, State::Held]);
    assert_eq!(rig.figures("j").await, (1, 0, 1), "a waiting step takes no room and is not held");
    let claimed = worker.claim_one().await;
    worker.finish(&claimed).await;
    assert_eq!(
        rig.states(&ids[1..]).await,
        [State::Ready, State::Held],
        "of tasks with equal priority the older"
    );
    let claimed = worker.claim_one().await;
    worker.end(&claimed, Outcome::retry("x")).await;
    assert_eq!(worker.claim_ids(MANY).await, [ids[2]], "a retrying head has given its room back");
    assert_eq!(rig.state(ids[1]).await, State::Scheduled);
    rig.assert_sound().await;
}

pub async fn a_key_gives_one_step_of_a_job_and_a_workflow(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    let step = NewTask { key: keyed("k").key, ..step_with_job("w", "j") };
    let first = rig.store.enqueue(vec![step.clone(), step.clone()]).await.unwrap();
    assert_eq!((first[0].existing, first[1].existing, first[1].id), (false, true, first[0].id));
    let again = rig.store.enqueue(vec![step]).await.unwrap()[0];
    assert_eq!((again.existing, again.id), (true, first[0].id));
    assert_eq!(rig.workflow("w").await.unwrap().steps, 1);
    let other_key = Key { text: "l".to_owned(), ignore_conflict: false };
    let next = rig.add(NewTask { key: Some(other_key), ..step_with_job("w", "j") }).await;
    let claimed = worker.claim_one().await;
    worker.finish(&claimed).await;
    assert_eq!(worker.claim_ids(MANY).await, [next]);
    rig.assert_sound().await;
}

pub async fn a_workflow_is_listed_while_it_has_unfinished_steps(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    let ids = rig.add_all((0..5).rev().map(|n| step_of(&format!("w-{n}"))).collect()).await;
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = rig.store.gates().workflows(false, after.as_ref(), 2).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.name.clone());
        seen.extend(page);
    }
    let names: Vec<_> = seen.iter().map(|workflow| workflow.name.to_string()).collect();
    assert_eq!(names, (0..5).map(|n| format!("w-{n}")).collect::<Vec<_>>());
    for (workflow, id) in seen.iter().zip(ids.iter().rev()) {
        assert_eq!((workflow.head, workflow.head_state), (Some(*id), Some(State::Ready)));
        assert_eq!((workflow.steps, workflow.blocked_by), (1, None));
    }
    let claimed = worker.claim(2).await;
    worker.settle(claimed.into_iter().map(|task| (task, Outcome::Done(None))).collect()).await;
    assert_eq!(rig.store.gates().workflows(false, None, MANY).await.unwrap().len(), 3);
    assert_eq!(rig.store.gates().workflows(true, None, MANY).await, Ok(vec![]), "none is blocked");
}

pub async fn concurrent_appends_have_one_order(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    let mut callers = Vec::new();
    for _ in 0..8 {
        let store = harness.connect(&rig.store).await;
        callers.push(tokio::spawn(async move {
            let mut ids = Vec::new();
            for _ in 0..4 {
                ids.push(store.enqueue(vec![step_of("w")]).await.unwrap()[0].id);
            }
            ids
        }));
    }
    let mut appended = Vec::new();
    for caller in callers {
        appended.push(caller.await.unwrap());
    }
    let mut order = Vec::new();
    for _ in 0..32 {
        let claimed = worker.claim_one().await;
        worker.finish(&claimed).await;
        order.push(claimed.id);
    }
    for ids in appended {
        let places: Vec<_> =
            ids.iter().map(|id| order.iter().position(|other| other == id).unwrap()).collect();
        assert!(places.is_sorted(), "one caller's appends keep their order: {places:?}");
    }
    rig.assert_sound().await;
}
