//! What must hold in the model after every step, read through its public calls: LIMIT, WF-ORDER, NO-STRANDED,
//! SLOT-BALANCED.

use std::collections::BTreeMap;

use windlass_core::{JobRecord, JobState, Name, State, TaskId, TaskRecord, gate::WINDOW_MIN, store::Filter};

use super::ops;
use crate::model::Model;

/// The first promise that the model breaks, in words.
pub fn broken(model: &Model) -> Option<String> {
    let tasks = model.tasks(&Filter::default(), None, ops::MANY).tasks;
    let jobs = model.jobs(None, ops::MANY);
    jobs.iter()
        .find_map(over_limit)
        .or_else(|| tasks.iter().find_map(|task| stranded(model, task)))
        .or_else(|| out_of_order(model, &tasks))
}

/// When a limit has fallen, running tasks may exceed it, and then none may be ready.
fn over_limit(job: &JobRecord) -> Option<String> {
    let limit = u64::from(job.concurrency.unwrap_or(WINDOW_MIN));
    let broken = job.ready + job.running > limit && job.ready > 0;
    broken.then(|| format!("LIMIT: {job:?}"))
}

fn stranded(model: &Model, task: &TaskRecord) -> Option<String> {
    let job = task.job.as_ref().and_then(|job| model.job(job));
    let has_room = |job: &JobRecord| {
        job.state == JobState::Active
            && job.delay.is_none()
            && job.ready + job.running < u64::from(job.concurrency.unwrap_or(WINDOW_MIN))
    };
    match task.state {
        State::Held if job.is_none() => Some(format!("NO-STRANDED: held by no job: {task:?}")),
        State::Held if job.as_ref().is_some_and(has_room) && model.is_live(&task.lane) => {
            Some(format!("NO-STRANDED: held though there is room: {task:?}"))
        }
        State::Ready if task.job.is_some() && !model.is_live(&task.lane) => {
            Some(format!("NO-STRANDED: room for a task that no worker can take: {task:?}"))
        }
        State::Scheduled if task.due_at.is_none() => Some(format!("NO-STRANDED: due at no time: {task:?}")),
        State::Running if !task.worker.is_some_and(|worker| model.is_registered(worker)) => {
            Some(format!("SLOT-BALANCED: its worker is gone: {task:?}"))
        }
        _ => None,
    }
}

/// At most one step has its turn. If none has, something blocks the rest.
fn out_of_order(model: &Model, tasks: &[TaskRecord]) -> Option<String> {
    let mut steps: BTreeMap<&Name, (Vec<TaskId>, usize)> = BTreeMap::new();
    for task in tasks.iter().filter(|task| !task.state.is_ended()) {
        let Some(workflow) = &task.workflow else { continue };
        let (passed, waiting) = steps.entry(workflow).or_default();
        if task.state == State::Waiting {
            *waiting += 1;
        } else {
            passed.push(task.id);
        }
    }
    steps.into_iter().find_map(|(name, (passed, waiting))| {
        let blocked = model.workflow(name).and_then(|workflow| workflow.blocked_by);
        match (passed.len(), blocked) {
            (0, Some(_)) | (1, None) => None,
            (0, None) => Some(format!("NO-STRANDED: {waiting} steps of {name} wait for nothing")),
            _ => Some(format!("WF-ORDER: {passed:?} of {name} have passed, blocked by {blocked:?}")),
        }
    })
}
