//! Enqueue: all or nothing, one task per key.

use std::collections::BTreeMap;

use windlass_core::{
    Claimed, Demand, Enqueued, Error, JobState, Name, NewTask, Payload, Result, Start, State, TaskId,
    TaskRecord, crash::Group, store::only, task::batch,
};

use super::{KeyRow, Model, Now, Task};
use crate::fault::Fault;

/// What to do with one task of a batch.
enum Decision {
    Add,
    Existing(TaskId),
    /// An earlier task of this batch has the same key.
    SameAs(usize),
}

impl Model {
    /// Adds tasks, all or none: makes every decision before it writes anything.
    pub fn enqueue(&mut self, now: Now, tasks: &[NewTask]) -> Result<Vec<Enqueued>> {
        let decisions = match self.decide_all(now, tasks) {
            Ok(decisions) => decisions,
            Err(error) => {
                if self.has(Fault::BatchHalfApplied) {
                    self.enqueue_until_bad(now, tasks);
                }
                return Err(error);
            }
        };
        let mut answers: Vec<Enqueued> = Vec::with_capacity(tasks.len());
        for (task, decision) in tasks.iter().zip(decisions) {
            answers.push(match decision {
                Decision::Add => {
                    Enqueued { cancelled: self.is_cancelled(task), ..Enqueued::new(self.add(now, task)) }
                }
                Decision::Existing(id) => Enqueued::existing(id),
                Decision::SameAs(earlier) => {
                    Enqueued::existing(answers.get(earlier).map_or(TaskId::from_raw(0), |answer| answer.id))
                }
            });
        }
        self.give_turns(now);
        Ok(answers)
    }

    /// Whether the job of a new task is cancelled.
    fn is_cancelled(&self, task: &NewTask) -> bool {
        let job = task.job.as_ref().and_then(|job| self.jobs.get(job));
        job.is_some_and(|job| job.state == JobState::Cancelled)
    }

    /// Adds one task, and leases it to a worker that waits, if no task is ready before it.
    pub fn enqueue_for(
        &mut self,
        now: Now,
        task: &NewTask,
        demand: &Demand,
    ) -> Result<(Enqueued, Option<Claimed>)> {
        let enqueued = only(self.enqueue(now, std::slice::from_ref(task))?)?;
        if !task.is_plain() || !self.may_start_straight(now, demand, enqueued.id) {
            return Ok((enqueued, None));
        }
        let claimed = self.take(now, demand, enqueued.id);
        Ok((enqueued, claimed))
    }

    fn may_start_straight(&self, now: Now, demand: &Demand, id: TaskId) -> bool {
        let Some(lane) = self.tasks.get(&id).map(|task| &task.record.lane) else { return false };
        let ready = self.tasks.values().filter(|task| {
            task.record.state == State::Ready && task.record.lane.id == lane.id && task.record.id != id
        });
        let holds_suspect = self.held_by(demand.worker).iter().any(|held| self.is_suspect(*held));
        self.check_claimant(now, demand).is_ok()
            && demand.lanes.contains(&lane.id)
            && !self.paused.contains(&lane.queue)
            && !holds_suspect
            && ready.count() == 0
    }

    fn enqueue_until_bad(&mut self, now: Now, tasks: &[NewTask]) {
        for task in tasks {
            if self.decide_all(now, std::slice::from_ref(task)).is_err() {
                return;
            }
            self.add(now, task);
        }
    }

    fn decide_all(&self, now: Now, tasks: &[NewTask]) -> Result<Vec<Decision>> {
        batch::check(tasks, &self.rules)?;
        self.check_lanes(tasks)?;
        let mut earlier: BTreeMap<(&Name, &str), usize> = BTreeMap::new();
        let mut decisions = Vec::with_capacity(tasks.len());
        for (index, task) in tasks.iter().enumerate() {
            let Some(key) = &task.key else {
                decisions.push(Decision::Add);
                continue;
            };
            if self.has(Fault::KeyIgnored) {
                decisions.push(Decision::Add);
                continue;
            }
            let same_batch = earlier.get(&(&task.queue, key.text.as_str())).copied();
            decisions.push(match (self.key_row(now, &task.queue, &key.text), same_batch) {
                (Some(row), _) => {
                    self.check_key(task, &row.kind, &row.payload, row.task)?;
                    Decision::Existing(row.task)
                }
                (None, Some(first)) => Decision::SameAs(first),
                (None, None) => {
                    earlier.insert((&task.queue, key.text.as_str()), index);
                    Decision::Add
                }
            });
        }
        Ok(decisions)
    }

    /// The task that a remembered key belongs to. A key is remembered while its task exists, and for the
    /// key's time after the task ended.
    pub fn key_holder(&self, now: Now, queue: &Name, key: &str) -> Option<TaskId> {
        self.key_row(now, queue, key).map(|row| row.task)
    }

    fn key_row(&self, now: Now, queue: &Name, key: &str) -> Option<&KeyRow> {
        self.keys.get(&(queue.clone(), key.to_owned())).filter(|row| {
            let exists = self.tasks.contains_key(&row.task) && !self.has(Fault::KeyForgottenAtEnd);
            exists || row.expires_at.is_none_or(|expires_at| now.wall < expires_at)
        })
    }

    fn check_key(&self, task: &NewTask, kind: &Name, payload: &Payload, existing: TaskId) -> Result<()> {
        let Some(key) = &task.key else { return Ok(()) };
        let same = task.kind == *kind && task.payload == *payload;
        if same || key.ignore_conflict || self.has(Fault::KeyConflictSwallowed) {
            return Ok(());
        }
        Err(Error::KeyConflict { key: key.text.clone(), existing })
    }

    fn add(&mut self, now: Now, new: &NewTask) -> TaskId {
        let id = self.last_id.next(now.wall);
        self.last_id = id;
        let due_at = match new.start {
            Start::Now => None,
            Start::In(delay) => Some(now.wall.after(delay)),
            Start::At(at) => Some(at),
        }
        .filter(|due_at| *due_at > now.wall && !self.has(Fault::StartIgnored));
        self.last_ready_seq += 1;
        let record = TaskRecord {
            id,
            state: match (&new.workflow, &new.job, due_at) {
                (Some(_), ..) => State::Waiting,
                (None, _, Some(_)) => State::Scheduled,
                (None, Some(_), None) => State::Held,
                (None, None, None) => State::Ready,
            },
            lane: self.intern(&new.queue, &new.kind),
            priority: new.priority,
            payload: new.payload.clone(),
            job: new.job.clone(),
            workflow: new.workflow.clone(),
            key: new.key.as_ref().map(|key| key.text.clone()),
            lease: 0,
            attempt: 0,
            max_attempts: new.max_attempts.unwrap_or(self.rules.max_attempts),
            crashes: 0,
            timeout: new.timeout,
            due_at,
            started_at: None,
            ended_at: None,
            worker: None,
            progress: None,
            output: None,
            error: None,
            cancel_requested: None,
            attempts: Vec::new(),
        };
        if let Some(key) = &new.key {
            let row =
                KeyRow { task: id, kind: new.kind.clone(), payload: new.payload.clone(), expires_at: None };
            self.keys.insert((new.queue.clone(), key.text.clone()), row);
        }
        let task = Task {
            record,
            retry: new.retry,
            trace: new.trace,
            ready_seq: self.last_ready_seq,
            release: self.last_release,
            claim_no: 0,
            step: 0,
            on_failure: new.on_failure,
            noticed_lease: 0,
            group: Group::default(),
            aside: false,
        };
        self.tasks.insert(id, task);
        self.limit_new_job(now, new);
        // The job of a step decides when the step has its turn.
        match &new.workflow {
            Some(_) => self.append(now, id),
            None => self.touch(id),
        }
        id
    }
}
