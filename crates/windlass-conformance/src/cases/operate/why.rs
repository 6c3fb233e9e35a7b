//! "Why is this task not running?": every reason that a store can show.

use std::time::Duration;

use windlass_core::{
    JobChange, JobState, NewTask, Outcome, Start, TaskId, WorkerReport,
    why::{Surroundings, Why, why},
};

use crate::{
    cases::rig::{Hand, MANY, Rig, in_queue, name, of_job, step_of, task},
    harness::Harness,
};

const HOUR: Duration = Duration::from_hours(1);

async fn ask(rig: &Rig<'_>, id: TaskId) -> Why {
    let (task, now) = (rig.task(id).await, rig.harness.now().await);
    why(&task, &Surroundings::of(&task, &*rig.store, now).await.unwrap())
}

async fn code(rig: &Rig<'_>, id: TaskId) -> String {
    ask(rig, id).await.code
}

/// Reports how many slots are free.
async fn free(worker: &Hand<'_>, available: u32) {
    let report = WorkerReport { available, ..WorkerReport::default() };
    worker.store.renew(worker.id, report).await.unwrap();
}

pub async fn a_plain_task_says_why_it_does_not_run(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let id = rig.add(task("a")).await;
    assert_eq!(code(&rig, id).await, "no_worker");
    let mut worker = rig.worker().await;
    free(&worker, 0).await;
    assert_eq!(code(&rig, id).await, "no_free_slot");
    free(&worker, 5).await;
    assert_eq!(code(&rig, id).await, "about_to_start");
    rig.store.set_queue_paused(&name("default"), true).await.unwrap();
    let paused = ask(&rig, id).await;
    assert_eq!(
        (paused.code.as_str(), paused.hint.unwrap().as_str()),
        ("queue_paused", "windlass queues resume default")
    );
    rig.store.set_queue_paused(&name("default"), false).await.unwrap();

    let claimed = worker.claim_one().await;
    assert_eq!(code(&rig, id).await, "running");
    worker.end(&claimed, Outcome::retry("it rained")).await;
    let again = ask(&rig, id).await;
    assert_eq!(again.code, "retry_wait");
    assert!(again.sentence.contains("it rained"), "{again:?}");
    let later = rig.add(NewTask { start: Start::In(HOUR), ..task("a") }).await;
    assert_eq!(code(&rig, later).await, "not_due");
    rig.cancel(later).await.unwrap();
    let cancelled = ask(&rig, later).await;
    assert_eq!(
        (cancelled.code.as_str(), cancelled.sentence.as_str()),
        ("cancelled", "cancelled: not wanted")
    );

    let [done, dead, asked] = [rig.add(task("b")).await, rig.add(task("b")).await, rig.add(task("b")).await];
    let claimed = worker.claim(3).await;
    worker.finish(&claimed[0]).await;
    worker.end(&claimed[1], Outcome::dead("no such house")).await;
    rig.cancel(asked).await.unwrap();
    assert_eq!(code(&rig, done).await, "done");
    let end = ask(&rig, dead).await;
    assert_eq!(
        (end.sentence, end.hint),
        ("dead: no such house".into(), Some(format!("windlass tasks retry {dead}")))
    );
    assert_eq!(code(&rig, asked).await, "cancelling");

    let suspect = rig.add(task("c")).await;
    worker.claim_one().await;
    rig.let_die(worker).await;
    let mut worker = rig.worker().await;
    free(&worker, 5).await;
    assert_eq!(code(&rig, suspect).await, "about_to_start", "one crash does not make a suspect");
    worker.claim_one().await;
    rig.let_die(worker).await;
    let worker = rig.worker().await;
    free(&worker, 5).await;
    assert_eq!(code(&rig, suspect).await, "suspect");
}

pub async fn a_task_of_a_job_says_why_it_is_held(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    rig.limit("j", 2).await;
    let ids = rig.add_all(vec![of_job("j"); 3]).await;
    assert_eq!(code(&rig, ids[2]).await, "no_worker", "no worker serves it");
    let mut worker = rig.worker_of(&["a"], &[], 10).await;
    worker.claim_one().await;
    let full = ask(&rig, ids[2]).await;
    assert_eq!(
        (full.code.as_str(), full.hint.unwrap().as_str()),
        ("job_limit", "windlass jobs set j --concurrency 3")
    );
    assert!(full.sentence.starts_with("held: job j is at 2 of 2. Runs when one of "), "{}", full.sentence);
    assert!(ids[..2].iter().all(|id| full.sentence.contains(&id.to_string())), "{}", full.sentence);

    let other = rig.add(NewTask { job: Some(name("j")), ..in_queue("a", "slow") }).await;
    rig.store.set_queue_paused(&name("slow"), true).await.unwrap();
    assert_eq!(code(&rig, other).await, "queue_paused");
    rig.set_job_state("j", JobState::Paused).await;
    assert_eq!(code(&rig, ids[2]).await, "job_paused");
    rig.set_job_state("j", JobState::Cancelled).await;
    let ended = ask(&rig, ids[2]).await;
    assert_eq!(ended.sentence, "cancelled: job j is cancelled");
    rig.store.gates().remove_job(&name("j"), false).await.unwrap();
    let newcomer = rig.add(of_job("j")).await;
    assert_eq!(code(&rig, newcomer).await, "job_removing");

    rig.set_job("d", JobChange { delay: Some(Some(HOUR)), ..JobChange::default() }).await;
    let delayed = rig.add_all(vec![of_job("d"); 3]).await;
    let next = ask(&rig, delayed[2]).await;
    assert_eq!(next.code, "job_delay");
    assert!(next.sentence.ends_with(&format!("{} is next", delayed[0])), "{}", next.sentence);
    assert_eq!(worker.claim_ids(MANY).await, [delayed[0]]);
    let next = ask(&rig, delayed[2]).await;
    assert!(next.sentence.contains("the next start is in "), "{next:?}");

    let many = rig.add_all(vec![of_job("wide"); 101]).await;
    assert_eq!(code(&rig, many[100]).await, "job_window");
}

pub async fn a_step_says_what_it_waits_for(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    let ids = rig.add_all(vec![step_of("w"); 3]).await;
    let behind = ask(&rig, ids[1]).await;
    let sentence = format!("waiting: behind task {} of its workflow w, which is ready", ids[0]);
    assert_eq!((behind.code.as_str(), behind.sentence.as_str()), ("workflow", sentence.as_str()));
    let claimed = worker.claim_one().await;
    worker.end(&claimed, Outcome::dead("x")).await;
    let blocked = ask(&rig, ids[2]).await;
    let sentence = format!("waiting: its workflow w is blocked by {}, which is dead", ids[0]);
    assert_eq!((blocked.code.as_str(), blocked.sentence.as_str()), ("workflow_blocked", sentence.as_str()));
    assert!(blocked.hint.unwrap().starts_with("windlass workflows retry w"));
    assert!(ask(&rig, ids[0]).await.sentence.ends_with("its workflow w is blocked by that"));

    let ids = rig.add_all(vec![step_of("v"); 2]).await;
    rig.cancel(ids[0]).await.unwrap();
    let blocked = ask(&rig, ids[1]).await;
    assert_eq!(blocked.code, "workflow_blocked");
    assert!(blocked.hint.unwrap().contains("windlass workflows skip v"), "it cannot be retried");
}
