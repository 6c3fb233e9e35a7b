//! All operations mixed: the audit finds nothing at any moment, nor at the end.

use std::time::Duration;

use windlass_core::{
    JobChange, JobState, NewTask, OnFailure, Outcome, Rules, State, WorkflowAction, store::Filter,
};

use crate::{
    cases::rig::{Hand, MANY, Rig, list, name, of_job, step_of, task},
    harness::Harness,
};

const ROUNDS: u64 = 60;

/// Pseudo-random numbers, the same at every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn task(&mut self) -> NewTask {
        let kind = ["a", "b"][self.roll(2) as usize];
        let queue = ["q", "r"][self.roll(2) as usize];
        let mut new = NewTask { queue: name(queue), priority: self.roll(3) as i32, ..task(kind) };
        if self.roll(3) > 0 {
            new.job = Some(name(&format!("job-{}", self.roll(3))));
        }
        if self.roll(3) > 0 {
            new.workflow = Some(name(&format!("flow-{}", self.roll(3))));
            new.on_failure = OnFailure::ALL.get(self.roll(4) as usize).copied();
        }
        new
    }

    fn outcome(&mut self) -> Outcome {
        match self.roll(8) {
            0 => Outcome::retry("x"),
            1 => Outcome::snooze(Duration::from_secs(1)),
            2 => Outcome::Release,
            3 => Outcome::dead("x"),
            4 => Outcome::cancel("x"),
            _ => Outcome::Done(None),
        }
    }
}

async fn operate(rig: &Rig<'_>, dice: &mut Dice) {
    let gates = rig.store.gates();
    let job = name(&format!("job-{}", dice.roll(3)));
    let change = match dice.roll(4) {
        0 => JobChange { concurrency: Some(Some(dice.roll(4) as u32)), ..JobChange::default() },
        1 => JobChange { state: Some(JobState::Paused), ..JobChange::default() },
        2 => JobChange { delay: Some(Some(Duration::from_secs(2))), ..JobChange::default() },
        _ => JobChange { state: Some(JobState::Active), delay: Some(None), ..JobChange::default() },
    };
    // A refusal is fine: not every change is allowed at every moment.
    let _ = gates.set_job(&job, &change).await;
    let workflow = name(&format!("flow-{}", dice.roll(3)));
    let action = [WorkflowAction::Retry, WorkflowAction::Skip, WorkflowAction::Cancel][dice.roll(3) as usize];
    let _ = gates.change_workflow(&workflow, action).await;
    if dice.roll(6) == 0 {
        let _ = gates.remove_job(&job, dice.roll(2) == 0).await;
    }
    rig.store.set_queue_paused(&name("r"), dice.roll(4) == 0).await.unwrap();
}

async fn work(worker: &mut Hand<'_>, dice: &mut Dice) {
    let claimed = worker.claim(1 + dice.roll(4) as u32).await;
    let ends = claimed.into_iter().map(|task| (task, dice.outcome())).collect();
    worker.settle(ends).await;
}

/// When a process ends, its workers end too. Settings of operators and past steps stay.
pub async fn gates_stand_as_they_were_after_a_restart(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    rig.limit("j", 2).await;
    rig.set_job_state("still", JobState::Paused).await;
    let steps = rig.add_all(vec![step_of("w"), step_of("w"), step_of("x"), step_of("x")]).await;
    rig.add_all(vec![of_job("j"), of_job("j"), of_job("j"), of_job("still")]).await;
    rig.cancel(steps[0]).await.unwrap();
    let claimed = worker.claim_one().await;
    assert_eq!(claimed.id, steps[2]);
    worker.finish(&claimed).await;
    let blocked = rig.workflow("w").await;
    let Some(rig) = rig.reopen().await else { return };
    let mut heir = rig.worker().await;
    assert_eq!(rig.job("still").await.state, JobState::Paused);
    assert_eq!(rig.job("j").await.concurrency, Some(2));
    assert_eq!((rig.workflow("w").await, rig.figures("j").await), (blocked, (2, 0, 1)));
    let claimed = heir.claim(MANY).await;
    assert_eq!(claimed.len(), 3, "two of the job and the next step");
    assert!(claimed.iter().any(|task| task.id == steps[3]));
    rig.assert_sound().await;
}

pub async fn a_store_with_gates_in_use_has_no_finding(harness: &dyn Harness) {
    let rules = Rules { job_default_concurrency: Some(2), ..Rules::default() };
    let rig = Rig::with(harness, rules).await;
    let mut dice = Dice(20_261_116);
    let mut worker = rig.worker().await;
    for round in 0..ROUNDS {
        rig.add_all((0..3).map(|_| dice.task()).collect()).await;
        operate(&rig, &mut dice).await;
        work(&mut worker, &mut dice).await;
        if round % 10 == 9 {
            worker.claim(2).await;
            rig.let_die(worker).await;
            worker = rig.worker().await;
        }
        rig.advance(Duration::from_secs(1)).await;
        worker.renew().await.unwrap();
        rig.promote().await;
        rig.assert_sound().await;
    }
    drain(&rig, worker).await;
}

/// With every gate open, every unfinished task ends.
async fn drain(rig: &Rig<'_>, mut worker: Hand<'_>) {
    rig.store.set_queue_paused(&name("r"), false).await.unwrap();
    let gates = rig.store.gates();
    for job in gates.jobs(None, MANY).await.unwrap() {
        let open = JobChange {
            state: Some(JobState::Active),
            concurrency: Some(Some(3)),
            delay: Some(None),
            now: false,
        };
        let _ = gates.set_job(&job.name, &open).await;
    }
    for _ in 0..500 {
        for workflow in gates.workflows(true, None, MANY).await.unwrap() {
            gates.change_workflow(&workflow.name, WorkflowAction::Skip).await.unwrap();
        }
        rig.advance(Duration::from_secs(5)).await;
        worker.renew().await.unwrap();
        rig.promote().await;
        let claimed = worker.claim(50).await;
        worker.settle(claimed.into_iter().map(|task| (task, Outcome::Done(None))).collect()).await;
    }
    for state in [State::Scheduled, State::Waiting, State::Held, State::Ready, State::Running] {
        let left = list(&*rig.store, &Filter { state: Some(state), ..Filter::default() }).await;
        assert!(left.is_empty(), "{} are {state}: {left:?}", left.len());
    }
    assert_eq!(gates.workflows(false, None, MANY).await, Ok(vec![]));
    rig.assert_sound().await;
}
