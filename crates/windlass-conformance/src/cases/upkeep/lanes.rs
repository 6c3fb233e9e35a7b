//! Lanes are bounded: those that stand empty are retired, and come back with their next task.

use std::time::Duration;

use windlass_core::{
    Error, JobChange, NewTask, Outcome, Rules, ScheduleRow, Start, TaskId, Timestamp,
    lanes::LOOK_EVERY,
    schedule::Fire,
    store::{Filter, Retention},
};

use crate::{
    cases::rig::{Hand, Rig, in_queue, list, name, task},
    harness::Harness,
};

/// Half a lease: a worker that renews as often keeps it.
const STEP: Duration = Duration::from_secs(5);

async fn rig_of(harness: &dyn Harness, lanes_max: usize) -> Rig<'_> {
    Rig::with(harness, Rules { lanes_max, ..Rules::default() }).await
}

/// Lets the store look at its lanes.
async fn look(rig: &Rig<'_>) {
    rig.harness.settle_down(&*rig.store).await;
    while rig.store.retain(&Retention::default()).await.unwrap().more {}
}

/// Lets the time between two looks pass. The workers keep their leases.
async fn wait(rig: &Rig<'_>, workers: &[&Hand<'_>]) {
    let mut waited = Duration::ZERO;
    while waited < LOOK_EVERY {
        rig.advance(STEP).await;
        waited += STEP;
        for worker in workers {
            worker.renew().await.unwrap();
        }
    }
}

/// Retires what stands empty.
async fn look_twice(rig: &Rig<'_>, workers: &[&Hand<'_>]) {
    wait(rig, workers).await;
    look(rig).await;
    wait(rig, workers).await;
    look(rig).await;
}

/// One task in each of these queues.
fn tasks_in(queues: std::ops::RangeInclusive<u32>) -> Vec<NewTask> {
    queues.map(|number| in_queue("a", &format!("q{number}"))).collect()
}

/// Why a task for this queue is refused.
async fn refusal(rig: &Rig<'_>, queue: &str) -> String {
    let refused = rig.store.enqueue(vec![in_queue("a", queue)]).await.unwrap_err();
    assert!(matches!(refused, Error::Invalid(_)), "{refused:?}");
    refused.to_string()
}

async fn run_all(worker: &mut Hand<'_>) {
    for task in worker.claim(100).await {
        worker.finish(&task).await;
    }
}

async fn queues(rig: &Rig<'_>) -> Vec<String> {
    let mut queues: Vec<_> =
        rig.store.lane_records().await.unwrap().iter().map(|lane| lane.queue.to_string()).collect();
    queues.sort_unstable();
    queues
}

pub async fn new_lanes_over_the_bound_are_refused(harness: &dyn Harness) {
    let rig = rig_of(harness, 4).await;
    rig.add_all(tasks_in(1..=4)).await;
    let mut mixed = tasks_in(4..=5);
    mixed.push(task("a"));
    let refused = rig.store.enqueue(mixed).await;
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    assert_eq!(rig.all().await.len(), 4, "nothing of a refused batch stays");
    let text = refusal(&rig, "q5").await;
    assert!(text.contains("at most 4 pairs of queue and kind in use"), "{text}");
    rig.add_all(tasks_in(1..=4)).await;
    assert_eq!(rig.all().await.len(), 8, "lanes that are there go on");
}

pub async fn lanes_that_stand_empty_make_room_for_others(harness: &dyn Harness) {
    let rig = rig_of(harness, 4).await;
    rig.add_all(tasks_in(1..=4)).await;
    let mut worker = rig.worker().await;
    run_all(&mut worker).await;
    refusal(&rig, "q5").await;
    look(&rig).await;
    refusal(&rig, "q5").await;
    look(&rig).await;
    refusal(&rig, "q5").await;
    wait(&rig, &[&worker]).await;
    look(&rig).await;
    let ids = rig.add_all(tasks_in(5..=8)).await;
    assert_eq!(worker.claim_ids(10).await, ids);
    refusal(&rig, "q9").await;
    rig.assert_sound().await;
}

pub async fn a_lane_that_is_used_between_two_looks_is_not_retired(harness: &dyn Harness) {
    let rig = rig_of(harness, 4).await;
    rig.add_all(tasks_in(1..=2)).await;
    let mut worker = rig.worker().await;
    run_all(&mut worker).await;
    look(&rig).await;
    wait(&rig, &[&worker]).await;
    rig.add_all(tasks_in(1..=1)).await;
    run_all(&mut worker).await;
    look(&rig).await;
    assert_eq!(queues(&rig).await, ["q1"]);
    wait(&rig, &[&worker]).await;
    look(&rig).await;
    assert_eq!(queues(&rig).await, [""; 0], "it has been empty since");
}

pub async fn a_lane_with_any_task_is_not_retired(harness: &dyn Harness) {
    let rig = rig_of(harness, 7).await;
    let mut worker = rig.worker().await;
    rig.limit("full", 0).await;
    rig.add_all(vec![in_queue("a", "running"), in_queue("a", "dead"), in_queue("a", "paused")]).await;
    for task in worker.claim(3).await {
        match task.lane.queue.as_str() {
            "running" => {}
            "dead" => worker.end(&task, Outcome::dead("x")).await,
            _ => worker.finish(&task).await,
        }
    }
    rig.store.set_queue_paused(&name("paused"), true).await.unwrap();
    let step = |queue| NewTask { workflow: Some(name("w")), ..in_queue("a", queue) };
    rig.add_all(vec![
        NewTask { start: Start::In(Duration::from_hours(1)), ..in_queue("a", "scheduled") },
        NewTask { job: Some(name("full")), ..in_queue("a", "held") },
        step("ready"),
        step("waiting"),
    ])
    .await;
    for _ in 0..3 {
        look_twice(&rig, &[&worker]).await;
    }
    let all = ["dead", "held", "paused", "ready", "running", "scheduled", "waiting"];
    assert_eq!(queues(&rig).await, all);
    refusal(&rig, "one_more").await;
    rig.store.set_queue_paused(&name("paused"), false).await.unwrap();
    look_twice(&rig, &[&worker]).await;
    rig.add_all(vec![in_queue("a", "one_more")]).await;
    rig.assert_sound().await;
}

pub async fn a_task_brings_its_retired_lane_back(harness: &dyn Harness) {
    let rig = rig_of(harness, 2).await;
    let first = rig.add_all(tasks_in(1..=2)).await;
    let mut worker = rig.worker().await;
    run_all(&mut worker).await;
    let known = worker.demand(10).await;
    look_twice(&rig, &[&worker]).await;
    assert_eq!(queues(&rig).await, [""; 0]);
    let again = rig.add_all(tasks_in(1..=2)).await;
    for (before, after) in first.into_iter().zip(&again) {
        assert_eq!(rig.task(before).await.lane, rig.task(*after).await.lane, "the same number");
    }
    // With the lanes that the worker knew before.
    let claimed = worker.store.claim(&[known]).await.unwrap().tasks;
    assert_eq!(claimed.iter().map(|task| task.id).collect::<Vec<_>>(), again);
    assert_eq!(queues(&rig).await, ["q1", "q2"]);
    // A worker that comes later finds the lane as well.
    let later = rig.add_all(tasks_in(2..=2)).await;
    let mut worker = rig.worker().await;
    assert_eq!(worker.claim_ids(10).await, later);
    rig.assert_sound().await;
}

/// A task that enters in another way than by a plain enqueue.
async fn every_way(rig: &Rig<'_>, round: u32) -> Vec<TaskId> {
    let key = windlass_core::task::Key { text: format!("k{round}"), ignore_conflict: false };
    let mut ids = vec![
        rig.add(in_queue("a", "one")).await,
        rig.add(NewTask { key: Some(key), ..in_queue("a", "keyed") }).await,
        rig.add(NewTask { job: Some(name("j")), ..in_queue("a", "job") }).await,
        rig.add(NewTask { workflow: Some(name("w")), ..in_queue("a", "step") }).await,
        rig.add(NewTask { start: Start::In(Duration::from_millis(1)), ..in_queue("a", "later") }).await,
    ];
    ids.extend(rig.add_all(vec![in_queue("a", "many"), in_queue("b", "many")]).await);
    if !rig.harness.fires_as_told() {
        return ids;
    }
    let tick = Timestamp::from_ms(i64::from(round));
    let row = ScheduleRow {
        name: name("tick"),
        spec: "{}".to_owned(),
        paused: false,
        next_at: Some(tick),
        last_at: None,
        last_task: None,
    };
    rig.store.schedules().put(&row).await.unwrap();
    let (spec, task) = ("{}".to_owned(), Some(in_queue("a", "tick")));
    let fire = Fire { name: name("tick"), tick, spec, task, next_at: None };
    ids.push(rig.store.schedules().fire(fire).await.unwrap().unwrap().id);
    ids
}

pub async fn every_way_to_enqueue_brings_a_lane_back(harness: &dyn Harness) {
    let rig = rig_of(harness, 9).await;
    // A caller of its own, which does not look at the lanes.
    let caller = Rig { harness, store: harness.connect(&rig.store).await };
    rig.set_job("j", JobChange::default()).await;
    let mut worker = rig.worker().await;
    for round in 1..=3 {
        let mut ids = every_way(&caller, round).await;
        assert_eq!(queues(&rig).await.len(), ids.len(), "round {round}");
        rig.advance(Duration::from_millis(2)).await;
        rig.promote().await;
        let mut ran = Vec::new();
        for task in worker.claim(100).await {
            ran.push(task.id);
            worker.finish(&task).await;
        }
        ran.sort_unstable();
        ids.sort_unstable();
        assert_eq!(ran, ids, "round {round}");
        look_twice(&rig, &[&worker]).await;
        assert_eq!(queues(&rig).await, [""; 0], "round {round}");
    }
    rig.assert_sound().await;
}

pub async fn a_task_for_a_waiting_worker_brings_its_lane_back(harness: &dyn Harness) {
    let rig = rig_of(harness, 2).await;
    rig.add_all(tasks_in(1..=1)).await;
    let mut worker = rig.worker().await;
    run_all(&mut worker).await;
    let known = worker.demand(1).await;
    look_twice(&rig, &[&worker]).await;
    let (enqueued, claimed, safe) = rig.store.enqueue_for(in_queue("a", "q1"), &known).await.unwrap();
    safe.wait().await.unwrap();
    assert_eq!(queues(&rig).await, ["q1"]);
    match claimed {
        Some(claimed) => assert_eq!(claimed.id, enqueued.id),
        None => assert_eq!(rig.worker().await.claim_ids(2).await, [enqueued.id]),
    }
}

pub async fn a_retired_lane_is_still_named_by_its_history(harness: &dyn Harness) {
    let rig = rig_of(harness, 2).await;
    let ids = rig.add_all(tasks_in(1..=2)).await;
    let mut worker = rig.worker().await;
    run_all(&mut worker).await;
    look_twice(&rig, &[&worker]).await;
    assert_eq!(queues(&rig).await, [""; 0], "an operator sees no queue that stands empty");
    assert_eq!(rig.task(ids[1]).await.lane.queue, name("q2"));
    let of_queue = Filter { queue: Some(name("q1")), ..Filter::default() };
    assert_eq!(list(&*rig.store, &of_queue).await.len(), 1);
}

pub async fn a_store_with_few_lanes_retires_none(harness: &dyn Harness) {
    let rig = rig_of(harness, 30).await;
    rig.add_all(tasks_in(1..=4)).await;
    let mut worker = rig.worker().await;
    run_all(&mut worker).await;
    look_twice(&rig, &[&worker]).await;
    assert_eq!(queues(&rig).await.len(), 3, "a tenth of the bound is kept");
    look_twice(&rig, &[&worker]).await;
    assert_eq!(queues(&rig).await.len(), 3);
}

pub async fn names_that_were_used_before_are_never_refused(harness: &dyn Harness) {
    let rig = rig_of(harness, 2).await;
    rig.add_all(tasks_in(1..=2)).await;
    let mut worker = rig.worker().await;
    run_all(&mut worker).await;
    look_twice(&rig, &[&worker]).await;
    rig.add_all(tasks_in(3..=4)).await;
    let ids = rig.add_all(tasks_in(1..=1)).await;
    assert_eq!(queues(&rig).await, ["q1", "q3", "q4"]);
    refusal(&rig, "q5").await;
    assert!(worker.claim_ids(10).await.contains(&ids[0]));
}

pub async fn all_lanes_that_were_ever_made_are_bounded(harness: &dyn Harness) {
    let rig = rig_of(harness, 2).await;
    let mut worker = rig.worker().await;
    for round in 0..10 {
        rig.add_all(tasks_in(2 * round + 1..=2 * round + 2)).await;
        run_all(&mut worker).await;
        look_twice(&rig, &[&worker]).await;
    }
    let text = refusal(&rig, "q21").await;
    assert!(text.contains("at most 20 pairs of queue and kind;"), "{text}");
    rig.add_all(tasks_in(1..=1)).await;
}

pub async fn a_retired_lane_stays_retired_after_a_restart(harness: &dyn Harness) {
    let rig = rig_of(harness, 2).await;
    rig.add_all(tasks_in(1..=2)).await;
    let mut worker = rig.worker().await;
    run_all(&mut worker).await;
    look_twice(&rig, &[&worker]).await;
    let Some(rig) = rig.reopen().await else { return };
    assert_eq!(queues(&rig).await, [""; 0]);
    rig.add_all(tasks_in(2..=3)).await;
    assert_eq!(queues(&rig).await, ["q2", "q3"]);
    refusal(&rig, "q4").await;
}
