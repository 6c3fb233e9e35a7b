//! Turns a step into a call: a book knows the ids that one side gave to the numbers in the steps.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use windlass_core::{
    Demand, Gate, JobChange, JobState, Lane, LaneId, LeaseRef, NewTask, NewWorker, Payload, SettleBatch,
    SettleItem, Settlement, Start, TaskId, Timestamp, WorkerCounts, WorkerId, WorkerReport,
    store::{Redrive, Retention},
    task::Key,
};

use super::{
    call::{Answer, Call},
    ops::{self, Change, Draft, End, How, Op, Want},
};

/// Lease time of every worker. Not a whole number of seconds, as every step of the clock is, so that no step
/// ends exactly at a deadline.
const LEASE_TTL: Duration = Duration::from_millis(10_500);

/// Every error and reason that a run sends.
pub const TEXTS: [&str; 4] = [CANCELLED, FAILED, HOPELESS, OBSOLETE];
/// The reason of every cancel.
pub const CANCELLED: &str = "cancelled by test";
const FAILED: &str = "failed";
const HOPELESS: &str = "hopeless";
const OBSOLETE: &str = "obsolete";

/// The ids that one side gave to the numbered tasks, workers and lanes, and the claim and batch numbers of
/// its workers.
#[derive(Debug, Clone)]
pub struct Book {
    /// When the run started by this side's clock.
    pub epoch: Timestamp,
    ids: Vec<TaskId>,
    gates: Vec<Gate>,
    numbers: BTreeMap<TaskId, usize>,
    workers: Vec<Member>,
    lanes: Vec<Arc<Lane>>,
}

#[derive(Debug, Clone)]
struct Member {
    id: WorkerId,
    claim_no: u64,
    unclaimed: u64,
    last_batch: Option<Arc<SettleBatch>>,
}

impl Book {
    /// An empty book.
    pub fn new(epoch: Timestamp) -> Self {
        Self {
            epoch,
            ids: Vec::new(),
            gates: Vec::new(),
            numbers: BTreeMap::new(),
            workers: Vec::new(),
            lanes: Vec::new(),
        }
    }

    /// How many tasks there have been.
    pub fn tasks(&self) -> usize {
        self.ids.len()
    }

    /// How many workers there have been.
    pub fn workers(&self) -> usize {
        self.workers.len()
    }

    /// The number of a task. A task that is not in the book keeps its id.
    pub fn number(&self, id: TaskId) -> TaskId {
        self.numbers.get(&id).map_or(id, |number| TaskId::from_raw(*number as i64))
    }

    /// The number of a worker.
    pub fn worker_number(&self, id: WorkerId) -> WorkerId {
        self.workers.iter().position(|member| member.id == id).map_or(id, |number| WorkerId(number as i64))
    }

    /// The number of a lane.
    pub fn lane_number(&self, id: LaneId) -> LaneId {
        let lane = self.lanes.iter().find(|lane| lane.id == id);
        let number =
            |lane: &Arc<Lane>| (0..4).find(|n| ops::lane(*n) == (lane.queue.clone(), lane.kind.clone()));
        lane.and_then(number).map_or(id, |number| LaneId(i64::from(number)))
    }

    /// The id of a task.
    pub fn task_id(&self, task: usize) -> Option<TaskId> {
        self.ids.get(task).copied()
    }

    /// The id of a worker.
    pub fn worker_id(&self, worker: usize) -> Option<WorkerId> {
        self.workers.get(worker).map(|member| member.id)
    }

    /// Adds the ids of an answer.
    pub fn learn(&mut self, op: &Op, answer: &Answer, lanes: Vec<Arc<Lane>>) {
        self.lanes = lanes;
        match (answer, op) {
            (Answer::Registered(id), _) => {
                self.workers.push(Member { id: *id, claim_no: 0, unclaimed: 0, last_batch: None });
            }
            (Answer::Enqueued(answers), Op::Enqueue { drafts }) => {
                for (answer, draft) in answers.iter().zip(drafts).filter(|(answer, _)| !answer.existing) {
                    self.numbers.insert(answer.id, self.ids.len());
                    self.ids.push(answer.id);
                    self.gates.push(gate(draft));
                }
            }
            _ => {}
        }
        if let Op::Unclaim { worker, back } = op
            && let Some(member) = self.workers.get_mut(*worker)
        {
            member.unclaimed = member.unclaimed.max(member.claim_no.saturating_sub(*back));
        }
    }

    /// The call of a step. A step of a shrunk run may name something that does not exist: then it makes no
    /// call.
    pub fn call(&mut self, op: &Op, now: Timestamp) -> Call {
        self.try_call(op, now).unwrap_or(Call::Nothing)
    }

    fn try_call(&mut self, op: &Op, now: Timestamp) -> Option<Call> {
        Some(match op {
            Op::Register { narrow } => Call::Register(new_worker(*narrow)),
            Op::Enqueue { drafts } => Call::Enqueue(drafts.iter().filter_map(new_task).collect()),
            Op::Claim { demands } => {
                let demands: Option<Vec<_>> = demands.iter().map(|want| self.demand(want, false)).collect();
                Call::Claim(demands?)
            }
            Op::LateClaim { want } => Call::Claim(vec![self.demand(want, true)?]),
            Op::Settle { worker, ends } => self.settle(*worker, ends, now)?,
            Op::Replay { worker } => Call::Settle(self.workers.get(*worker)?.last_batch.clone()?),
            Op::Unclaim { worker, back } => {
                let member = self.workers.get(*worker)?;
                Call::Unclaim(member.id, member.claim_no.saturating_sub(*back))
            }
            Op::Reconcile { worker, kept, back } => {
                let kept = kept.iter().filter_map(|(task, lease)| self.lease(*task, *lease)).collect();
                let member = self.workers.get(*worker)?;
                // Over gRPC zero means every claim, and the first claim of a worker has number one.
                Call::Reconcile(member.id, member.claim_no.saturating_sub(*back).max(1), kept)
            }
            Op::Progress { worker, task, lease, text } => {
                Call::Progress(self.worker_id(*worker)?, self.lease(*task, *lease)?, format!("step {text}"))
            }
            Op::Cancel { tasks } => Call::Cancel(self.ids_of(tasks)),
            Op::Remove { tasks } => Call::Remove(self.ids_of(tasks)),
            Op::Redrive { tasks, seconds } => {
                let delay = Duration::from_secs(*seconds);
                let redrives = self.ids_of(tasks).into_iter().map(|id| Redrive { id, delay });
                Call::Redrive(redrives.collect())
            }
            Op::Renew { worker, available } => {
                let report = WorkerReport {
                    available: *available,
                    in_flight: 1,
                    draining: *available == 0,
                    memory_usage: f64::from(*available) / 128.0,
                    factor: 0.5,
                    reason: if *available == 0 { "memory".to_owned() } else { String::new() },
                    counts: WorkerCounts::default(),
                };
                Call::Renew(self.worker_id(*worker)?, report)
            }
            Op::Retire { worker } => Call::Retire(self.worker_id(*worker)?),
            // When time has passed, a worker runs the admit duty.
            Op::Advance { .. } | Op::Admit => Call::Admit,
            Op::Promote => Call::Promote,
            Op::Expire => Call::Expire,
            Op::Pause { queue, paused } => Call::Pause(ops::queue_name(*queue), *paused),
            Op::Retain => Call::Retain(Retention {
                history_age: Duration::from_mins(30),
                dead_age: Duration::from_hours(2),
                ..Retention::default()
            }),
            Op::SetJob { job, change } => Call::SetJob(ops::job_name(*job), job_change(*change)),
            Op::RemoveJob { job, now } => Call::RemoveJob(ops::job_name(*job), *now),
            Op::ChangeWorkflow { workflow, action } => {
                Call::ChangeWorkflow(ops::workflow_name(*workflow), *action)
            }
        })
    }

    fn ids_of(&self, tasks: &[usize]) -> Vec<TaskId> {
        tasks.iter().filter_map(|task| self.ids.get(*task).copied()).collect()
    }

    fn lease(&self, task: usize, lease: u32) -> Option<LeaseRef> {
        self.ids.get(task).map(|id| LeaseRef { id: *id, lease })
    }

    fn demand(&mut self, want: &Want, late: bool) -> Option<Demand> {
        let chosen = |lane: &&Arc<Lane>| {
            (0..4).any(|n| {
                want.lanes & (1 << n) != 0 && ops::lane(n) == (lane.queue.clone(), lane.kind.clone())
            })
        };
        let lanes = self.lanes.iter().filter(chosen).map(|lane| lane.id).collect();
        let member = self.workers.get_mut(want.worker)?;
        let claim_no = if late { member.unclaimed } else { member.claim_no + 1 };
        if claim_no == 0 {
            return None;
        }
        member.claim_no = member.claim_no.max(claim_no);
        Some(Demand::new(member.id, claim_no, lanes, want.n))
    }

    fn settle(&mut self, worker: usize, ends: &[End], now: Timestamp) -> Option<Call> {
        let item = |end: &End| {
            Some(SettleItem {
                lease: self.lease(end.task, end.lease)?,
                settlement: settlement(end.how, now),
                gate: self.gates.get(end.task)?.clone(),
            })
        };
        let items = ends.iter().filter_map(item).collect();
        let member = self.workers.get_mut(worker)?;
        let batch_no = member.last_batch.as_ref().map_or(1, |batch| batch.batch_no + 1);
        let batch = Arc::new(SettleBatch { worker: member.id, settler_no: 0, batch_no, items });
        member.last_batch = Some(Arc::clone(&batch));
        Some(Call::Settle(batch))
    }
}

fn gate(draft: &Draft) -> Gate {
    Gate { job: draft.job.map(ops::job_name), workflow: draft.workflow.map(ops::workflow_name) }
}

fn job_change(change: Change) -> JobChange {
    let state = |state| JobChange { state: Some(state), ..JobChange::default() };
    match change {
        Change::Limit(limit) => JobChange { concurrency: Some(limit), ..JobChange::default() },
        Change::DelaySeconds(delay) => {
            JobChange { delay: Some(delay.map(Duration::from_secs)), ..JobChange::default() }
        }
        Change::Pause => state(JobState::Paused),
        Change::Resume => state(JobState::Active),
        Change::Cancel { now } => JobChange { now, ..state(JobState::Cancelled) },
    }
}

fn new_worker(narrow: bool) -> NewWorker {
    NewWorker {
        host: "host".to_owned(),
        pid: 7,
        version: "0".to_owned(),
        kinds: ops::kinds().into_iter().take(if narrow { 1 } else { usize::MAX }).collect(),
        queues: Vec::new(),
        slots: 8,
        lease_ttl: LEASE_TTL,
    }
}

fn new_task(draft: &Draft) -> Option<NewTask> {
    let (queue, kind) = ops::lane(draft.lane);
    Some(NewTask {
        kind,
        queue,
        payload: Payload::json(&draft.payload).ok()?,
        priority: draft.priority,
        start: draft.start_in_s.map_or(Start::Now, |seconds| Start::In(Duration::from_secs(seconds))),
        key: draft.key.map(|(key, ignore_conflict)| Key { text: format!("key {key}"), ignore_conflict }),
        max_attempts: Some(draft.max_attempts),
        retry: None,
        timeout: None,
        job: gate(draft).job,
        job_concurrency: draft.gives_limit.then_some(ops::GIVEN_LIMIT),
        workflow: gate(draft).workflow,
        on_failure: draft.on_failure,
        trace: None,
    })
}

fn settlement(how: How, now: Timestamp) -> Settlement {
    let after = |seconds| now.after(Duration::from_secs(seconds));
    match how {
        How::Done { output } => {
            let output = output.then(|| Payload::bytes(b"result".to_vec()));
            Settlement::Done { output, note: None }
        }
        How::Retry { seconds } => Settlement::Retry { due_at: after(seconds), error: FAILED.to_owned() },
        How::Snooze { seconds } => Settlement::Snooze { due_at: after(seconds) },
        How::Release => Settlement::Release,
        How::Dead => Settlement::Dead { error: HOPELESS.to_owned() },
        How::Cancelled => Settlement::Cancelled { reason: OBSOLETE.to_owned() },
    }
}
