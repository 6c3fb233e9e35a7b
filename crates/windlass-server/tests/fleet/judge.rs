//! The promises that must hold under every fault, seen from the handlers, which are what a user has, and from
//! the store.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use windlass_core::{Claimed, TaskId, TaskRecord, WorkerId};

use crate::clock::SimulatedClock;

/// The limit of every job.
pub const JOB_LIMIT: usize = 2;

/// A running attempt.
#[derive(Debug, Clone)]
struct Attempt {
    lease: u32,
    worker: WorkerId,
    job: Option<String>,
    workflow: Option<String>,
}

#[derive(Default)]
struct Seen {
    running: BTreeMap<TaskId, Vec<Attempt>>,
    /// The highest lease that was started, for each task.
    leases: BTreeMap<TaskId, u32>,
    /// Steps that their handler reported as done.
    done: BTreeSet<TaskId>,
    /// The steps of each workflow in the order in which they were appended.
    steps: BTreeMap<String, Vec<TaskId>>,
    violations: Vec<String>,
    story: Vec<String>,
}

/// Observes every attempt.
pub struct Judge {
    clock: Arc<SimulatedClock>,
    seen: Mutex<Seen>,
}

impl Judge {
    /// A judge that has seen nothing.
    #[must_use]
    pub fn new(clock: Arc<SimulatedClock>) -> Arc<Self> {
        Arc::new(Self { clock, seen: Mutex::default() })
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a line to the story.
    pub fn tell(&self, line: &str) {
        let at = self.clock.elapsed_ms();
        self.seen().story.push(format!("{at:>6} {line}"));
    }

    /// Records the order of a workflow.
    pub fn appended(&self, workflow: &str, task: TaskId) {
        let mut seen = self.seen();
        let steps = seen.steps.entry(workflow.to_owned()).or_default();
        if !steps.contains(&task) {
            steps.push(task);
        }
    }

    /// An attempt starts. `record` is the task's row in the store at this moment.
    pub fn started(self: &Arc<Self>, claimed: &Claimed, record: Option<&TaskRecord>) -> Running {
        let (task, lease, worker) = (claimed.id, claimed.lease, claimed.worker);
        self.tell(&format!("start {task} lease {lease} on {worker}"));
        let attempt = Attempt {
            lease,
            worker,
            job: claimed.job.as_ref().map(ToString::to_string),
            workflow: claimed.workflow.as_ref().map(ToString::to_string),
        };
        let mut found = Vec::new();
        let mut seen = self.seen();
        if let Some(others) = seen.running.get(&task).filter(|others| !others.is_empty()) {
            found.push(format!(
                "ONE-LEASE, SELF-FENCE: {task} lease {lease} starts while it runs as {others:?}"
            ));
        }
        if seen.leases.get(&task).is_some_and(|known| *known >= lease) {
            found.push(format!("ONE-LEASE: {task} was started under lease {lease} or a later one before"));
        }
        if record.is_some_and(|record| record.state.is_ended()) {
            found.push(format!("FENCED: {task} lease {lease} starts after it has ended"));
        }
        let others = |is_same: &dyn Fn(&Attempt) -> bool| {
            seen.running.values().flatten().filter(|other| is_same(other)).count()
        };
        if attempt.job.is_some() && others(&|other| other.job == attempt.job) >= JOB_LIMIT {
            found.push(format!("LIMIT: {task} is one too many of its job"));
        }
        if let Some(workflow) = &attempt.workflow {
            if others(&|other| other.workflow == attempt.workflow) > 0 {
                found.push(format!("WF-ORDER: {task} starts while another step of {workflow} runs"));
            }
            let steps = seen.steps.get(workflow).map(Vec::as_slice).unwrap_or_default();
            let before = steps.iter().take_while(|step| **step != task);
            if let Some(missing) = before.into_iter().find(|step| !seen.done.contains(step)) {
                found.push(format!("WF-ORDER: {task} starts before {missing} of {workflow} was done"));
            }
        }
        seen.leases.insert(task, lease);
        seen.running.entry(task).or_default().push(attempt);
        seen.violations.extend(found);
        drop(seen);
        Running { judge: Arc::clone(self), task, lease, is_done: false }
    }

    /// Compares each running attempt with its row in the store: only the attempt itself may end it.
    pub fn compare(&self, record: impl Fn(TaskId) -> Option<TaskRecord>) {
        let mut seen = self.seen();
        let mut found = Vec::new();
        for (task, attempts) in &seen.running {
            for attempt in attempts {
                let ended =
                    record(*task).filter(|record| record.lease == attempt.lease && record.state.is_ended());
                if ended.is_some() {
                    let (lease, worker) = (attempt.lease, attempt.worker);
                    found.push(format!("FENCED: {task} was ended by another than lease {lease} on {worker}"));
                }
            }
        }
        seen.violations.extend(found);
    }

    /// Records a violation that the caller has found.
    pub fn violated(&self, what: String) {
        self.seen().violations.push(what);
    }

    /// The violations, and all events.
    pub fn verdict(&self) -> (Vec<String>, Vec<String>) {
        let seen = self.seen();
        (seen.violations.clone(), seen.story.clone())
    }

    /// Whether a promise was broken.
    pub fn is_violated(&self) -> bool {
        !self.seen().violations.is_empty()
    }
}

/// A running attempt; dropping this ends it, for every reason.
pub struct Running {
    judge: Arc<Judge>,
    task: TaskId,
    lease: u32,
    is_done: bool,
}

impl Running {
    /// The handler is about to report that it is done.
    pub fn done(mut self) {
        self.is_done = true;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let how = if self.is_done { "done" } else { "ended" };
        self.judge.tell(&format!("{how} {} lease {}", self.task, self.lease));
        let mut seen = self.judge.seen();
        if let Some(attempts) = seen.running.get_mut(&self.task) {
            attempts.retain(|attempt| attempt.lease != self.lease);
        }
        if self.is_done {
            seen.done.insert(self.task);
        }
    }
}
