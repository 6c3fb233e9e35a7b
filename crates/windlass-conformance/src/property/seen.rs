//! Makes the visible state of both sides comparable: ids become numbers, times become distances from the
//! start, and details that the contract leaves to the stores are left out.

use std::{fmt::Write as _, sync::Arc};

use windlass_core::{
    ClaimAnswer, Claimed, JobRecord, JobState, Lane, LeaseRef, Name, Result, State, Store, TaskRecord,
    Timestamp, WorkerRecord, WorkflowRecord,
    crash::is_suspect,
    source::{DutyReport, Rest},
    store::{Filter, LaneRecord},
    task::AttemptResult,
};

use super::{
    book::{Book, TEXTS},
    call::Answer,
    ops, reference,
};
use crate::model::{Model, Now};

/// Everything that a caller can read.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    tasks: Vec<TaskRecord>,
    lanes: Vec<LaneRecord>,
    paused: Vec<Name>,
    workers: Vec<WorkerRecord>,
    gates: Gates,
}

/// Jobs and workflows.
#[derive(Debug, Clone, PartialEq)]
struct Gates {
    jobs: Vec<JobRecord>,
    workflows: Vec<WorkflowRecord>,
}

impl Gates {
    fn seen(mut self, eye: Eye<'_>) -> Self {
        self.jobs.retain(|job| !reference::is_unused(job));
        self.jobs = self.jobs.into_iter().map(|job| eye.job(job)).collect();
        self.workflows = self.workflows.into_iter().map(|workflow| eye.workflow(workflow)).collect();
        self
    }
}

impl Snapshot {
    /// The visible state of a store.
    pub async fn of_store(store: &dyn Store, book: &Book, exact: bool) -> Result<Self> {
        let (mut tasks, mut after) = (Vec::new(), None);
        loop {
            let page = store.tasks(&Filter::default(), after, ops::MANY).await?;
            tasks.extend(page.tasks);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let (lanes, paused) = (store.lane_records().await?, store.paused_queues().await?);
        let gates = Gates {
            jobs: store.gates().jobs(None, ops::MANY).await?,
            workflows: store.gates().workflows(false, None, ops::MANY).await?,
        };
        Ok(Self::new(tasks, lanes, paused, store.workers().await?, gates, Eye { book, exact }))
    }

    /// The visible state of the model.
    pub fn of_model(model: &Model, now: Now, book: &Book, exact: bool) -> Self {
        let tasks = model.tasks(&Filter::default(), None, ops::MANY).tasks;
        let (lanes, paused) = (model.lane_records(), model.paused_queues());
        let gates =
            Gates { jobs: model.jobs(None, ops::MANY), workflows: model.workflows(false, None, ops::MANY) };
        Self::new(tasks, lanes, paused, model.workers(now), gates, Eye { book, exact })
    }

    fn new(
        tasks: Vec<TaskRecord>,
        mut lanes: Vec<LaneRecord>,
        mut paused: Vec<Name>,
        mut workers: Vec<WorkerRecord>,
        gates: Gates,
        eye: Eye<'_>,
    ) -> Self {
        // An empty lane may or may not be shown; so may a worker that is gone.
        lanes.retain(|lane| lane.depth != windlass_core::store::Depth::default());
        lanes.sort_by(|a, b| (&a.queue, &a.kind).cmp(&(&b.queue, &b.kind)));
        paused.sort();
        workers.retain(|worker| worker.live);
        for worker in &mut workers {
            worker.id = eye.book.worker_number(worker.id);
            worker.registered_at = eye.time(worker.registered_at);
            worker.renewed_at = eye.time(worker.renewed_at);
        }
        workers.sort_by_key(|worker| worker.id);
        let tasks = tasks.into_iter().map(|task| eye.task(task)).collect();
        Self { tasks, lanes, paused, workers, gates: gates.seen(eye) }
    }

    /// The difference, for people; `self` is the model.
    pub fn difference(&self, store: &Self) -> Option<String> {
        if self == store {
            return None;
        }
        let mut text = String::new();
        for model in &self.tasks {
            let other = store.tasks.iter().find(|task| task.id == model.id);
            if other != Some(model) {
                let _ = writeln!(text, "task in the store {other:?}\nthe model says {model:?}");
            }
        }
        for task in store.tasks.iter().filter(|task| self.tasks.iter().all(|model| model.id != task.id)) {
            let _ = writeln!(text, "task only in the store {task:?}");
        }
        let rest = (&self.lanes, &self.paused, &self.workers);
        if rest != (&store.lanes, &store.paused, &store.workers) {
            let _ = writeln!(
                text,
                "lanes, paused queues, live workers in the store {:?} {:?} {:?}\nthe model says {rest:?}",
                store.lanes, store.paused, store.workers
            );
        }
        if self.gates != store.gates {
            let _ = writeln!(text, "gates in the store {:?}\nthe model says {:?}", store.gates, self.gates);
        }
        if text.is_empty() {
            text.push_str("the order of the list\n");
        }
        Some(text)
    }
}

/// How to make one side comparable.
#[derive(Clone, Copy)]
struct Eye<'a> {
    book: &'a Book,
    exact: bool,
}

impl Eye<'_> {
    /// Times of a clock that runs on its own cannot be compared: only whether there is a time counts.
    fn time(self, at: Timestamp) -> Timestamp {
        Timestamp::from_ms(if self.exact { at.as_ms() - self.book.epoch.as_ms() } else { 0 })
    }

    fn task(self, mut task: TaskRecord) -> TaskRecord {
        task.id = self.book.number(task.id);
        task.worker = task.worker.map(|worker| self.book.worker_number(worker));
        task.lane = self.lane(&task.lane);
        for at in [&mut task.due_at, &mut task.started_at, &mut task.ended_at] {
            *at = at.map(|at| self.time(at));
        }
        // Each store decides whether a hand-back leaves a record, unless the worker settled the task so.
        task.attempts.retain(|attempt| attempt.result != AttemptResult::Released);
        for attempt in &mut task.attempts {
            attempt.worker = attempt.worker.map(|worker| self.book.worker_number(worker));
            attempt.started_at = attempt.started_at.map(|at| self.time(at));
            attempt.ended_at = self.time(attempt.ended_at);
            match attempt.result {
                AttemptResult::Crashed => attempt.error = None,
                AttemptResult::Redriven => {
                    (attempt.attempt, attempt.worker, attempt.started_at) = (0, None, None);
                    attempt.error = None;
                }
                _ => {}
            }
        }
        // Each store has its own text for a death by crashes; all other texts came in with a call.
        task.error = task.error.map(|text| if TEXTS.contains(&text.as_str()) { text } else { String::new() });
        task
    }

    /// Each store decides when it makes a job. Whether the last start is recorded counts only while the job
    /// has a delay.
    fn job(self, mut job: JobRecord) -> JobRecord {
        job.created_at = Timestamp::from_ms(0);
        let counts = job.delay.is_some() && job.state == JobState::Active;
        job.last_start = job.last_start.filter(|_| counts).map(|at| self.time(at));
        job
    }

    /// In a blocked workflow no step has a turn.
    fn workflow(self, mut workflow: WorkflowRecord) -> WorkflowRecord {
        workflow.created_at = Timestamp::from_ms(0);
        workflow.blocked_by = workflow.blocked_by.map(|id| self.book.number(id));
        if workflow.blocked_by.is_some() {
            (workflow.head, workflow.head_state) = (None, None);
        }
        workflow.head = workflow.head.map(|id| self.book.number(id));
        workflow
    }

    fn claimed(self, mut task: Claimed) -> Claimed {
        task.id = self.book.number(task.id);
        task.worker = self.book.worker_number(task.worker);
        task.lane = self.lane(&task.lane);
        task.claimed_at = self.time(task.claimed_at);
        task
    }

    fn lane(self, lane: &Arc<Lane>) -> Arc<Lane> {
        Arc::new(Lane { id: self.book.lane_number(lane.id), ..(**lane).clone() })
    }
}

/// An answer of one side in the numbers of the run.
pub fn answer(answer: Answer, book: &Book, exact: bool) -> Answer {
    let eye = Eye { book, exact };
    match answer {
        Answer::Registered(id) => Answer::Registered(book.worker_number(id)),
        Answer::Enqueued(mut answers) => {
            for answer in &mut answers {
                answer.id = book.number(answer.id);
            }
            Answer::Enqueued(answers)
        }
        Answer::Claimed(mut claim) => {
            claim.tasks = claim.tasks.into_iter().map(|task| eye.claimed(task)).collect();
            // Each store decides the position of suspects among the tasks of their worker.
            claim.tasks.sort_by_key(|task| (task.worker, !is_suspect(task.crashes)));
            // A claim that gives tasks may leave the look for the next due time to a later claim.
            claim.next_due = claim.next_due.filter(|_| claim.tasks.is_empty()).map(|at| eye.time(at));
            claim.now = eye.time(claim.now);
            // A claim that brought something may not have looked for what it was kept from.
            if !claim.tasks.is_empty() && claim.rest == Rest::Blocked {
                claim.rest = Rest::Nothing;
            }
            Answer::Claimed(claim)
        }
        Answer::Settled(mut settled) => {
            for id in &mut settled.fenced {
                *id = book.number(*id);
            }
            settled.fenced.sort_unstable();
            // A store tells of these with its answer, or by a hint a moment later.
            settled.lanes_ready = Vec::new();
            // Only set if something was scheduled; the next claim has it in any case.
            settled.next_due = None;
            Answer::Settled(settled)
        }
        Answer::Changed(changed) => {
            // The position of a redriven step depends on when the store looks.
            let redriven = |state| match state {
                State::Waiting | State::Held | State::Ready => State::Scheduled,
                state => state,
            };
            let seen = |(id, result): (_, std::result::Result<_, _>)| (book.number(id), result.map(redriven));
            Answer::Changed(changed.into_iter().map(seen).collect())
        }
        Answer::Renewed(mut renewed) => {
            for (lease, _) in &mut renewed.cancels {
                *lease = LeaseRef { id: book.number(lease.id), ..*lease };
            }
            renewed.cancels.sort();
            Answer::Renewed(renewed)
        }
        Answer::Reconciled(mut reconciled) => {
            for lease in &mut reconciled.lost {
                *lease = LeaseRef { id: book.number(lease.id), ..*lease };
            }
            reconciled.lost.sort_unstable();
            Answer::Reconciled(reconciled)
        }
        Answer::Duty(mut report) => {
            for worker in &mut report.workers {
                *worker = book.worker_number(*worker);
            }
            report.workers.sort_unstable();
            report.lanes_ready = lanes(report.lanes_ready, book);
            report.next_due = report.next_due.filter(|_| report.moved > 0).map(|at| eye.time(at));
            Answer::Duty(report)
        }
        Answer::Job(job) => Answer::Job(eye.job(job)),
        other => other,
    }
}

/// The answer without the time of the next look.
pub fn without_next_due(answer: Answer) -> Answer {
    match answer {
        Answer::Claimed(claim) => Answer::Claimed(ClaimAnswer { next_due: None, ..claim }),
        Answer::Duty(report) => Answer::Duty(DutyReport { next_due: None, ..report }),
        other => other,
    }
}

fn lanes(lanes: Vec<windlass_core::LaneId>, book: &Book) -> Vec<windlass_core::LaneId> {
    let mut lanes: Vec<_> = lanes.into_iter().map(|lane| book.lane_number(lane)).collect();
    lanes.sort_unstable();
    lanes.dedup();
    lanes
}
