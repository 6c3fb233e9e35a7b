//! Claim: which tasks a worker may take, how many, and what the answer says about the rest.

pub mod order;
pub mod suspects;

use std::{collections::BTreeMap, time::Duration};

use windlass_core::{
    Demand, Error, NewTask, Outcome, Start, State, WorkerId, affinity::Prefers, source::Rest,
};

use super::rig::{MANY, Rig, in_queue, name, step_of, task};
use crate::harness::Harness;

/// Workers that claim the same tasks at the same time.
const WORKERS: usize = 8;

pub async fn each_claim_raises_the_lease_by_one(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let id = rig.add(task("a")).await;
    for lease in 1..=5 {
        let mut worker = rig.worker().await;
        let claimed = worker.claim_one().await;
        assert_eq!((claimed.id, claimed.lease), (id, lease));
        assert_eq!(rig.task(id).await.lease, lease);
        match lease {
            1 => worker.end(&claimed, Outcome::Release).await,
            2 => assert_eq!(rig.let_die(worker).await, 1),
            3 => assert_eq!(worker.store.unclaim(worker.id, worker.claim_no).await.unwrap(), 1),
            _ => assert_eq!(worker.store.retire(worker.id).await.unwrap(), 1),
        }
        assert_eq!(rig.task(id).await.lease, lease, "never lowered, and raised by claims only");
    }
}

pub async fn a_claimed_task_is_not_claimed_again(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let id = rig.add(task("a")).await;
    let (mut first, mut second) = (rig.worker().await, rig.worker().await);
    let claimed = first.claim_one().await;
    assert_eq!((claimed.worker, rig.state(id).await), (first.id, State::Running));
    assert_eq!(rig.task(id).await.worker, Some(first.id));
    assert_eq!(second.claim_ids(MANY).await, []);
    assert_eq!(first.claim_ids(MANY).await, []);
}

pub async fn workers_that_race_take_every_task_once(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let ids = rig.add_many("a", 400).await;
    let mut racers = Vec::new();
    for n in 0..WORKERS {
        let worker = rig.worker().await;
        let (store, id) = (worker.store.clone(), worker.id);
        racers.push(tokio::spawn(race(store, id, 1 + n as u32 % 5)));
    }
    let mut taken = BTreeMap::new();
    for racer in racers {
        for (id, lease) in racer.await.unwrap() {
            assert_eq!((taken.insert(id, lease), lease), (None, 1), "{id} was taken once");
        }
    }
    assert_eq!(taken.into_keys().collect::<Vec<_>>(), ids);
    rig.assert_sound().await;
}

async fn race(
    store: std::sync::Arc<dyn windlass_core::Store>,
    worker: WorkerId,
    n: u32,
) -> Vec<(windlass_core::TaskId, u32)> {
    let lanes = store.lanes(&[name("a")], &[]).await.unwrap().iter().map(|lane| lane.id).collect();
    let mut demand = Demand::new(worker, 0, lanes, n);
    let mut taken = Vec::new();
    loop {
        demand.claim_no += 1;
        let answer = store.claim(std::slice::from_ref(&demand)).await.unwrap();
        taken.extend(answer.tasks.iter().map(|task| (task.id, task.lease)));
        if answer.tasks.is_empty() && answer.rest == Rest::Nothing {
            return taken;
        }
    }
}

pub async fn a_claim_brings_at_most_as_many_tasks_as_asked_for(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    rig.add_many("a", 10).await;
    let mut worker = rig.worker().await;
    assert_eq!(worker.claim(3).await.len(), 3);
    assert_eq!(worker.claim(1).await.len(), 1);
    assert_eq!(worker.claim(MANY).await.len(), 6);
}

pub async fn a_claim_says_why_it_brought_no_more(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    rig.add_many("a", 3).await;
    assert_eq!(worker.try_claim(2).await.unwrap().rest, Rest::More);
    assert_eq!(worker.try_claim(2).await.unwrap().rest, Rest::Nothing);
    rig.add(in_queue("a", "still")).await;
    rig.store.set_queue_paused(&name("still"), true).await.unwrap();
    let answer = worker.try_claim(2).await.unwrap();
    assert_eq!((answer.tasks.len(), answer.rest), (0, Rest::Blocked));
}

pub async fn the_answer_names_the_next_due_time(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    assert_eq!(worker.try_claim(1).await.unwrap().next_due, None);
    for minutes in [7, 3, 5] {
        rig.add(NewTask { start: Start::In(Duration::from_mins(minutes)), ..task("c") }).await;
    }
    let due = rig.all().await.iter().filter_map(|task| task.due_at).min();
    let answer = worker.try_claim(1).await.unwrap();
    assert_eq!((answer.tasks.len(), answer.next_due), (0, due));
    assert!(due.is_some_and(|due| due > answer.now));
}

pub async fn a_demand_over_many_workers_is_served_for_each(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    rig.add_many("a", 9).await;
    let (mut first, mut second) = (rig.worker().await, rig.worker().await);
    let demands = [first.demand(3).await, second.demand(4).await];
    let answer = rig.store.claim(&demands).await.unwrap();
    let of = |worker| answer.tasks.iter().filter(|task| task.worker == worker).count();
    assert_eq!((of(first.id), of(second.id), answer.tasks.len()), (3, 4, 7));
    for task in &answer.tasks {
        assert_eq!(rig.task(task.id).await.worker, Some(task.worker));
    }
}

fn preferring(demand: Demand, workflows: &[&str]) -> Demand {
    let prefers = Prefers::Workflows(workflows.iter().map(|workflow| name(workflow)).collect());
    Demand { prefers, ..demand }
}

pub async fn a_step_goes_to_the_worker_that_prefers_its_workflow(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    rig.add_all(["a", "b", "c", "d", "e"].map(step_of).to_vec()).await;
    let (mut first, mut second) = (rig.worker().await, rig.worker().await);
    let (of_first, of_second) = (first.demand(3).await, second.demand(3).await);
    let demands = [preferring(of_first, &["b", "d", "x"]), preferring(of_second.clone(), &["a", "c", "b"])];
    let mut claimed = rig.store.claim(&demands).await.unwrap().tasks;
    claimed.sort_by_key(|task| task.workflow.clone());
    let workers: Vec<_> = claimed.iter().map(|task| task.worker).collect();
    let (one, two) = (first.id, second.id);
    assert_eq!(workers[..4], [two, one, two, one], "each has the steps that it asked for");
    for task in &claimed {
        let stored = rig.task(task.id).await;
        assert_eq!((stored.worker, stored.lease), (Some(task.worker), task.lease));
        let demand = demands.iter().find(|demand| demand.worker == task.worker).unwrap();
        assert_eq!(task.claim_no, demand.claim_no, "under the number of its own claim");
    }
    let own: Vec<_> = claimed.iter().filter(|task| task.worker == one).cloned().collect();
    let settled = first.settle(own.into_iter().map(|task| (task, Outcome::Done(None))).collect()).await;
    assert_eq!(settled.fenced, [], "the leases are theirs");
    let left = claimed.iter().filter(|task| task.worker == two).count() as u64;
    assert_eq!(rig.store.unclaim(two, of_second.claim_no).await, Ok(left));
    rig.assert_sound().await;
}

pub async fn a_preference_does_not_change_which_tasks_are_claimed(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut ids = rig.add_many("a", 2).await;
    ids.push(rig.add(step_of("w")).await);
    let (mut first, mut second) = (rig.worker().await, rig.worker().await);
    let demands = [first.demand(1).await, second.demand(1).await].map(|demand| preferring(demand, &["w"]));
    let mut taken: Vec<_> =
        rig.store.claim(&demands).await.unwrap().tasks.iter().map(|task| task.id).collect();
    taken.sort_unstable();
    assert_eq!(taken, ids[..2], "a step does not overtake");
    let alone = preferring(first.demand(MANY).await, &["x"]);
    assert_eq!(rig.store.claim(&[alone]).await.unwrap().tasks[0].id, ids[2], "nor does it wait");
}

pub async fn one_expired_worker_refuses_the_whole_claim(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    rig.add_many("a", 4).await;
    let (mut live, mut gone) = (rig.worker().await, rig.worker().await);
    rig.store.retire(gone.id).await.unwrap();
    let demands = [live.demand(2).await, gone.demand(2).await];
    assert_eq!(rig.store.claim(&demands).await, Err(Error::WorkerExpired));
    assert_eq!(live.claim(MANY).await.len(), 4, "nothing was taken");
}

pub async fn a_worker_that_never_registered_cannot_claim(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    rig.add(task("a")).await;
    let mut worker = rig.worker().await;
    worker.id = WorkerId(987_654_321);
    assert_eq!(worker.try_claim(1).await, Err(Error::WorkerExpired));
}
