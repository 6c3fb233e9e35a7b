//! What operators do with jobs: pause, resume, cancel, remove.

use std::time::Duration;

use windlass_core::{
    Error, JobChange, JobState, NewTask, OnFailure, Outcome, Rules, State, store::Redrive, task::Key,
};

use crate::{
    cases::rig::{MANY, Rig, lease_of, name, of_job, task},
    harness::Harness,
};

pub async fn a_paused_job_starts_nothing_and_goes_on_when_resumed(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    rig.limit("j", 2).await;
    let ids = rig.add_all(vec![of_job("j"); 4]).await;
    let running = worker.claim_one().await;
    let paused = rig.set_job_state("j", JobState::Paused).await;
    assert_eq!((paused.state, paused.ready, paused.running, paused.held), (JobState::Paused, 0, 1, 3));
    worker.finish(&running).await;
    let late = rig.add(of_job("j")).await;
    assert_eq!(worker.claim_ids(MANY).await, []);
    rig.assert_sound().await;
    let resumed = rig.set_job_state("j", JobState::Active).await;
    assert_eq!((resumed.state, resumed.ready, resumed.held), (JobState::Active, 2, 2));
    assert_eq!(worker.claim_ids(MANY).await, ids[1..3]);
    assert_eq!(rig.state(late).await, State::Held);
}

pub async fn a_job_can_be_paused_before_its_first_task(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    rig.set_job_state("j", JobState::Paused).await;
    rig.add(of_job("j")).await;
    assert_eq!(worker.claim_ids(MANY).await, []);
}

pub async fn a_cancelled_job_cancels_waiting_and_new_tasks(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    rig.limit("j", 2).await;
    let ids = rig.add_all(vec![of_job("j"); 4]).await;
    let running = worker.claim_one().await;
    let record = rig.set_job_state("j", JobState::Cancelled).await;
    assert_eq!((record.state, record.ready, record.running, record.held), (JobState::Cancelled, 0, 1, 0));
    assert_eq!(rig.states(&ids[1..]).await, [State::Cancelled; 3]);
    assert_eq!(rig.task(ids[3]).await.error.as_deref(), Some("job j is cancelled"));
    assert_eq!(worker.renew().await.unwrap().cancels, [], "the running task is not asked to end");
    let late = rig.add(of_job("j")).await;
    assert_eq!(rig.state(late).await, State::Cancelled);
    worker.finish(&running).await;
    assert_eq!(rig.state(ids[0]).await, State::Done);
    rig.assert_sound().await;
    rig.set_job_state("j", JobState::Active).await;
    let again = rig.add(of_job("j")).await;
    assert_eq!(worker.claim_ids(MANY).await, [again]);
}

pub async fn an_enqueue_to_a_cancelled_job_says_so(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let key = Key { text: "k".to_owned(), ignore_conflict: false };
    let keyed = NewTask { key: Some(key), ..of_job("j") };
    let step = NewTask { workflow: Some(name("w")), ..of_job("j") };
    let batch = vec![of_job("j"), keyed, of_job("other"), task("a"), step];
    let told = async |tasks: &[NewTask]| -> Vec<bool> {
        let answers = rig.store.enqueue(tasks.to_vec()).await.unwrap();
        answers.iter().map(|answer| answer.cancelled).collect()
    };
    rig.set_job_state("j", JobState::Paused).await;
    assert_eq!(told(&batch[..1]).await, [false], "a paused job keeps new tasks");
    rig.set_job_state("j", JobState::Cancelled).await;
    assert_eq!(told(&batch).await, [true, true, false, false, true]);
    assert_eq!(told(&batch[1..2]).await, [false], "nothing is added, so nothing is cancelled");
    rig.set_job_state("j", JobState::Active).await;
    assert_eq!(told(&batch[..1]).await, [false]);
}

pub async fn a_task_handed_back_to_a_cancelled_job_is_cancelled(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    let ids = rig.add_all(vec![of_job("j"); 3]).await;
    let running = worker.claim(3).await;
    rig.set_job_state("j", JobState::Cancelled).await;
    worker.end(&running[0], Outcome::retry("x")).await;
    worker.end(&running[1], Outcome::Release).await;
    worker.end(&running[2], Outcome::dead("x")).await;
    assert_eq!(rig.states(&ids).await, [State::Cancelled, State::Cancelled, State::Dead]);
    rig.redrive(ids[2]).await.unwrap();
    assert_eq!(rig.state(ids[2]).await, State::Cancelled);
    rig.assert_sound().await;
}

pub async fn a_job_cancelled_now_asks_running_tasks_to_end(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    let ids = rig.add_all(vec![of_job("j"); 2]).await;
    let running = worker.claim(2).await;
    let change = JobChange { state: Some(JobState::Cancelled), now: true, ..JobChange::default() };
    rig.set_job("j", change).await;
    let mut cancels = worker.renew().await.unwrap().cancels;
    cancels.sort();
    let reason = "job j is cancelled".to_owned();
    assert_eq!(cancels, [(lease_of(&running[0]), reason.clone()), (lease_of(&running[1]), reason)]);
    worker.end(&running[0], Outcome::retry("x")).await;
    worker.finish(&running[1]).await;
    assert_eq!(rig.states(&ids).await, [State::Cancelled, State::Done], "a success counts");
}

pub async fn a_removed_job_is_forgotten_and_its_name_is_a_new_job(harness: &dyn Harness) {
    let rig = Rig::with(harness, Rules { job_default_concurrency: Some(7), ..Rules::default() }).await;
    let mut worker = rig.worker().await;
    rig.limit("j", 1).await;
    let ids = rig.add_all(vec![of_job("j"); 3]).await;
    assert_eq!(rig.store.gates().remove_job(&name("j"), false).await, Ok(3));
    assert_eq!(rig.states(&ids).await, [State::Cancelled; 3]);
    assert_eq!(rig.task(ids[0]).await.error.as_deref(), Some("job j was removed"));
    assert_eq!(rig.store.gates().job(&name("j")).await, Ok(None));
    let again = rig.store.gates().remove_job(&name("j"), false).await;
    assert!(matches!(again, Err(Error::NotFound(_))), "{again:?}");
    let late = rig.add(of_job("j")).await;
    let job = rig.job("j").await;
    assert_eq!((job.state, job.concurrency), (JobState::Active, Some(7)));
    assert_eq!(worker.claim_ids(MANY).await, [late]);
    rig.assert_sound().await;
}

pub async fn a_job_is_removed_when_the_last_task_that_runs_has_ended(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    rig.limit("j", 2).await;
    let ids = rig.add_all(vec![of_job("j"); 3]).await;
    let running = worker.claim(2).await;
    assert_eq!(rig.store.gates().remove_job(&name("j"), false).await, Ok(1));
    assert_eq!(rig.job("j").await.state, JobState::Removing);
    let active = JobChange { state: Some(JobState::Active), ..JobChange::default() };
    let refused = rig.store.gates().set_job(&name("j"), &active).await;
    assert!(matches!(refused, Err(Error::Conflict(_))), "{refused:?}");
    let late = rig.add(of_job("j")).await;
    assert_eq!(rig.state(late).await, State::Held, "a task added during the removal waits for the new job");
    worker.end(&running[0], Outcome::retry("x")).await;
    assert_eq!(rig.states(&ids).await, [State::Cancelled, State::Running, State::Cancelled]);
    assert_eq!(rig.state(late).await, State::Held);
    worker.finish(&running[1]).await;
    let job = rig.job("j").await;
    assert_eq!((job.state, job.concurrency), (JobState::Active, None), "a new job with the defaults");
    assert_eq!(worker.claim_ids(MANY).await, [late]);
    rig.assert_sound().await;
}

pub async fn a_job_removed_now_asks_running_tasks_to_end(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    let ids = rig.add_all(vec![of_job("j"); 1]).await;
    let running = worker.claim_one().await;
    assert_eq!(rig.store.gates().remove_job(&name("j"), true).await, Ok(0));
    let asked = worker.renew().await.unwrap().cancels;
    assert_eq!(asked, [(lease_of(&running), "job j was removed".to_owned())]);
    worker.end(&running, Outcome::Release).await;
    assert_eq!(rig.state(ids[0]).await, State::Cancelled);
    assert_eq!(rig.store.gates().job(&name("j")).await, Ok(None));
}

pub async fn a_job_is_not_removed_by_a_change_of_state(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let change = JobChange { state: Some(JobState::Removing), ..JobChange::default() };
    let refused = rig.store.gates().set_job(&name("j"), &change).await;
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    assert_eq!(rig.store.gates().job(&name("j")).await, Ok(None));
}

pub async fn a_redriven_task_asks_its_job(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    rig.limit("j", 1).await;
    let ids = rig.add_all(vec![of_job("j"); 2]).await;
    let claimed = worker.claim_one().await;
    worker.end(&claimed, Outcome::dead("x")).await;
    let redrive = Redrive { id: ids[0], delay: std::time::Duration::ZERO };
    rig.store.redrive(&[redrive]).await.unwrap();
    rig.promote().await;
    assert_eq!(rig.states(&ids).await, [State::Held, State::Ready], "the other task uses the room");
    let claimed = worker.claim_one().await;
    worker.finish(&claimed).await;
    assert_eq!(worker.claim_ids(MANY).await, [ids[0]]);
    rig.assert_sound().await;
}

pub async fn jobs_are_listed_by_name_in_pages(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let batch: Vec<NewTask> = (0..7).rev().map(|n| of_job(&format!("job-{n}"))).collect();
    rig.add_all(batch).await;
    rig.limit("job-3", 4).await;
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = rig.store.gates().jobs(after.as_ref(), 3).await.unwrap();
        assert!(page.len() <= 3);
        let Some(last) = page.last() else { break };
        after = Some(last.name.clone());
        seen.extend(page);
    }
    let names: Vec<_> = seen.iter().map(|job| job.name.to_string()).collect();
    assert_eq!(names, (0..7).map(|n| format!("job-{n}")).collect::<Vec<_>>());
    assert!(seen.iter().all(|job| job.held == 1 && job.ready == 0), "no worker serves them");
    assert_eq!(seen[3].concurrency, Some(4));
    assert_eq!(rig.job("job-5").await, seen[5]);
}

pub async fn a_task_shows_its_job_and_the_tasks_that_use_its_room(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    rig.limit("j", 2).await;
    let step = NewTask { workflow: Some(name("w")), ..of_job("j") };
    let ids = rig.add_all(vec![of_job("j"), of_job("j"), of_job("j"), step]).await;
    worker.claim_one().await;
    let view = rig.store.gates().view(&rig.task(ids[2]).await).await.unwrap();
    assert_eq!(view.job, Some(rig.job("j").await));
    let mut occupants = view.occupants;
    occupants.sort_unstable();
    assert_eq!((occupants, view.workflow), (ids[..2].to_vec(), None));
    let view = rig.store.gates().view(&rig.task(ids[3]).await).await.unwrap();
    assert_eq!(view.workflow, rig.workflow("w").await);
    assert_eq!(view.workflow.unwrap().head, Some(ids[3]));
}

/// The step that follows is ready in the same sweep, and its lane is in the answer.
pub async fn a_removed_job_passes_the_turn_of_a_crashed_step_on(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    let first = NewTask { workflow: Some(name("w")), on_failure: Some(OnFailure::Skip), ..of_job("j") };
    let ids = rig.add_all(vec![first, NewTask { workflow: Some(name("w")), ..task("b") }]).await;
    assert_eq!(worker.claim_ids(MANY).await, ids[..1]);
    rig.store.gates().remove_job(&name("j"), false).await.unwrap();
    rig.advance(Duration::from_mins(1)).await;
    let swept = rig.store.expire_workers(MANY).await.unwrap();
    assert_eq!(rig.state(ids[0]).await, State::Cancelled);
    let next = rig.task(ids[1]).await;
    assert_eq!((next.state, swept.lanes_ready), (State::Ready, vec![next.lane.id]));
}

/// A job that had nothing to decide is made by the first task that it decides about.
pub async fn a_step_cancelled_before_its_turn_makes_no_job(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let step = NewTask { workflow: Some(name("w")), ..of_job("j") };
    let ids = rig.add_all(vec![NewTask { workflow: Some(name("w")), ..task("a") }, step]).await;
    assert_eq!(rig.cancel(ids[1]).await, Ok(State::Cancelled));
    rig.store.admit(MANY).await.unwrap();
    rig.add(NewTask { job_concurrency: Some(1), ..of_job("j") }).await;
    assert_eq!(rig.job("j").await.concurrency, Some(1));
}
