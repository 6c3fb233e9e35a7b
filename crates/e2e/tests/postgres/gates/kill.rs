//! `kill -9` of a worker that runs a step of a workflow and tasks of a job.

use e2e::postgres::{Place, attempts, check_workflow, most_running, until};

use super::{assert_at_rest, enqueue, fleet, judge_gated, limit, of_job, step};
use crate::{arrivals, target, until_open};

const LIMIT: usize = 3;
const STEPS: usize = 5;

#[tokio::test(flavor = "multi_thread")]
async fn order_and_limit_hold_when_the_only_worker_is_killed() {
    let place = Place::shared().unwrap();
    let target = target().await;
    target.hold();
    let mut victim = place.worker(LIMIT as u32 + 1).await.unwrap();
    limit(&place, "j", LIMIT);
    let steps = enqueue(&place, (0..STEPS).map(|_| step(&target, "w")).collect()).await;
    let of_it = enqueue(&place, (0..10).map(|_| of_job(&target, "j")).collect()).await;
    until_open(&target, LIMIT as u32 + 1).await;
    let lost = place.held_by(victim.pid()).unwrap();
    assert_eq!(lost.len(), LIMIT + 1);
    assert!(lost.contains(&steps[0]), "one of them is the head");

    let why = place.say(["tasks", "why", of_it.last().unwrap()]).unwrap();
    assert!(why.stdout.starts_with("held: job j is at 3 of 3. Runs when one of "), "{why:?}");

    let _heirs = fleet(&place, 2, 4).await;
    victim.kill().unwrap();
    // The requests of the killed worker end before another worker may take its tasks.
    until("its connections are gone", || Ok(target.book().open == 0)).await.unwrap();
    target.release();

    let ids = [steps.clone(), of_it].concat();
    let judged = judge_gated(&place, &ids, &target).await;
    assert_eq!((judged.crashes, judged.claimed_again()), (lost.len() as u64, lost.len()));
    assert!(arrivals(&target, &lost).iter().all(|times| *times == 2), "once more, not more often");
    {
        let book = target.book();
        book.visits.check_workflow("w", &steps).unwrap();
        assert_eq!(book.visits.most_open_of_job("j"), LIMIT, "at most, and all of it was used");
    }
    let attempts = attempts(&place).unwrap();
    check_workflow(&attempts, "w", &steps).unwrap();
    assert_eq!(most_running(&attempts, "j"), LIMIT);
    assert_at_rest(&place, "j");
}

#[tokio::test(flavor = "multi_thread")]
async fn order_and_limit_hold_when_one_of_several_workers_is_killed() {
    const WORKFLOWS: usize = 6;
    let place = Place::shared().unwrap();
    let target = target().await;
    limit(&place, "j", LIMIT);
    // Steps of these workflows share the job with tasks that are no steps.
    let mut workflows = Vec::new();
    let mut ids = Vec::new();
    for number in 0..WORKFLOWS {
        let name = format!("w{number}");
        let mut steps: Vec<_> = (0..STEPS).map(|_| step(&target, &name)).collect();
        if number % 2 == 0 {
            for step in &mut steps {
                step.job = of_job(&target, "j").job;
            }
        }
        let steps = enqueue(&place, steps).await;
        ids.extend(steps.clone());
        workflows.push((name, steps));
    }
    ids.extend(enqueue(&place, (0..20).map(|_| of_job(&target, "j")).collect()).await);

    target.hold();
    let mut workers = fleet(&place, 3, 3).await;
    // Three workflows without the job, and the full job: each of these needs a slot, and no worker has all of
    // them.
    until_open(&target, (WORKFLOWS / 2 + LIMIT) as u32).await;
    let busiest = (0..workers.len()).max_by_key(|n| place.held_by(workers[*n].pid()).unwrap().len()).unwrap();
    let mut victim = workers.remove(busiest);
    let lost = place.held_by(victim.pid()).unwrap();
    let open = target.book().open;
    victim.kill().unwrap();
    until("its connections are gone", || Ok(target.book().open == open - lost.len() as u32)).await.unwrap();
    target.release();

    let judged = judge_gated(&place, &ids, &target).await;
    assert_eq!((judged.crashes, judged.claimed_again()), (lost.len() as u64, lost.len()));
    let attempts = attempts(&place).unwrap();
    for (name, steps) in &workflows {
        target.book().visits.check_workflow(name, steps).unwrap();
        check_workflow(&attempts, name, steps).unwrap();
    }
    assert_eq!(target.book().visits.most_open_of_job("j"), LIMIT);
    assert_eq!(most_running(&attempts, "j"), LIMIT);
    assert_at_rest(&place, "j");
}
