//! Why a task waits at a gate: for its turn in a workflow, or for room in its job.

use super::{Surroundings, Why, human, is_not_served, suspect, word};
use crate::{
    crash::is_suspect,
    gate::{JobRecord, JobState, WINDOW_MIN},
    id::TaskId,
    state::State,
    task::TaskRecord,
};

/// How many tasks a sentence names.
const NAMED: usize = 3;

/// A step that is not the first unfinished one of its workflow, or comes after a step that failed.
pub(super) fn waiting(task: &TaskRecord, around: &Surroundings) -> Why {
    let Some(workflow) = &around.gates.workflow else {
        return Why::new("workflow", "waiting: behind an earlier task of its workflow");
    };
    let (name, typed) = (&workflow.name, word(&workflow.name));
    if let Some(culprit) = workflow.blocked_by {
        let end = around.culprit_state.unwrap_or(State::Dead);
        let why = Why::new(
            "workflow_blocked",
            format!("waiting: its workflow {name} is blocked by {culprit}, which is {end}"),
        );
        return match end {
            State::Dead => why.hint(format!(
                "windlass workflows retry {typed}, or go on without it: windlass workflows skip {typed}"
            )),
            _ => why.hint(format!(
                "go on without it: windlass workflows skip {typed}, or windlass workflows cancel {typed}"
            )),
        };
    }
    match (workflow.head, workflow.head_state) {
        (Some(head), Some(state)) if head != task.id => Why::new(
            "workflow",
            format!("waiting: behind task {head} of its workflow {name}, which is {state}"),
        )
        .hint(format!("windlass tasks why {head}")),
        _ => Why::new(
            "admission",
            format!("waiting: its turn in workflow {name} has come; it is about to go on"),
        ),
    }
}

/// A task that its job keeps back.
pub(super) fn held(task: &TaskRecord, around: &Surroundings) -> Why {
    let Some(job) = &around.gates.job else {
        return is_not_served(task, around, "held:")
            .unwrap_or_else(|| Why::new("admission", "held: its job is about to let it through"));
    };
    // A state that stops the whole job comes first: while it holds, no other change helps.
    by_state(job)
        .or_else(|| is_not_served(task, around, "held:"))
        .or_else(|| by_limit(job, &around.gates.occupants))
        .or_else(|| by_delay(job, around))
        .or_else(|| is_suspect(task.crashes).then(|| suspect(task, "held:")))
        .unwrap_or_else(|| {
            Why::new("admission", format!("held: job {} has room; it is about to let it through", job.name))
        })
}

fn by_state(job: &JobRecord) -> Option<Why> {
    let (name, typed) = (&job.name, word(&job.name));
    match job.state {
        JobState::Active => None,
        JobState::Paused => Some(
            Why::new("job_paused", format!("held: job {name} is paused"))
                .hint(format!("windlass jobs resume {typed}")),
        ),
        JobState::Cancelled => Some(
            Why::new("job_cancelled", format!("held: job {name} is cancelled, and so will this task be"))
                .hint(format!("windlass jobs resume {typed}")),
        ),
        JobState::Removing => Some(Why::new(
            "job_removing",
            format!(
                "held: job {name} is being removed; it starts anew when the last task that runs has ended"
            ),
        )),
    }
}

fn by_limit(job: &JobRecord, occupants: &[TaskId]) -> Option<Why> {
    let (name, typed) = (&job.name, word(&job.name));
    let taken = job.ready + job.running;
    match job.concurrency {
        Some(0) => Some(
            Why::new(
                "job_limit",
                format!("held: job {name} has a concurrency of 0, so nothing of it starts"),
            )
            .hint(format!("windlass jobs set {typed} --concurrency 1")),
        ),
        Some(limit) if taken >= u64::from(limit) => {
            // One more than the tasks that run now: a lowered limit may not have taken effect yet, so less
            // would not help.
            let enough = taken.saturating_add(1).min(u64::from(u32::MAX));
            let ends = match taken - u64::from(limit) {
                0 => format!("{} ends", one_of(occupants, taken)),
                over => format!("{} of its {taken} tasks have ended", over + 1),
            };
            let sentence = format!("held: job {name} is at {taken} of {limit}. Runs when {ends}");
            Some(
                Why::new("job_limit", sentence)
                    .hint(format!("windlass jobs set {typed} --concurrency {enough}")),
            )
        }
        None if taken >= u64::from(WINDOW_MIN) => Some(
            Why::new(
                "job_window",
                format!(
                    "held: job {name} has {taken} tasks in line already; it follows when {} ends",
                    one_of(occupants, taken)
                ),
            )
            .hint("raise --slots or start another worker"),
        ),
        _ => None,
    }
}

fn by_delay(job: &JobRecord, around: &Surroundings) -> Option<Why> {
    let delay = job.delay?;
    let (name, typed, every) = (&job.name, word(&job.name), human(delay));
    let next = job.last_start.map(|start| start.after(delay)).filter(|next| *next > around.now);
    let sentence = match (next, around.gates.occupants.first()) {
        (Some(next), _) => {
            let left = human(next.since(around.now));
            format!("held: job {name} starts one task every {every}; the next start is in {left}")
        }
        (None, Some(first)) if job.ready > 0 => {
            format!("held: job {name} starts one task every {every}; {first} is next")
        }
        _ => return None,
    };
    Some(Why::new("job_delay", sentence).hint(format!("windlass jobs set {typed} --delay none")))
}

/// "one of A, B or 5 others", "A", "one of its tasks".
fn one_of(occupants: &[TaskId], taken: u64) -> String {
    let named: Vec<String> = occupants.iter().take(NAMED).map(ToString::to_string).collect();
    let others = taken.saturating_sub(named.len() as u64);
    match (named.as_slice(), others) {
        ([], _) => "one of its tasks".to_owned(),
        ([only], 0) => only.clone(),
        (named, 0) => format!("one of {}", named.join(", ")),
        (named, others) => {
            format!("one of {} or {others} other{}", named.join(", "), if others == 1 { "" } else { "s" })
        }
    }
}

/// The effect of an ended task on its workflow, as the end of a sentence.
pub(super) fn blocking(task: &TaskRecord, around: &Surroundings) -> String {
    match &around.gates.workflow {
        Some(workflow) if workflow.blocked_by == Some(task.id) => {
            format!("; its workflow {} is blocked by that", workflow.name)
        }
        _ => String::new(),
    }
}
