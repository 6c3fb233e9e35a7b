//! Jobs: how many of their tasks are ready, and what operators do with them.

use std::{cmp::Reverse, time::Duration};

use windlass_core::{
    Error, Event, JobChange, JobRecord, JobState, Name, NewTask, Result, State, TaskId, Timestamp,
    gate::{self, COUNT_MAX, JobView, Turn},
    source::DutyReport,
    store::PAGE_MAX,
};

use crate::{
    fault::Fault,
    model::{Model, Now, Task},
};

/// A job.
#[derive(Debug, Clone)]
pub(in crate::model) struct Job {
    pub state: JobState,
    pub concurrency: Option<u32>,
    pub delay: Option<Duration>,
    pub created_at: Timestamp,
    pub last_start: Option<Timestamp>,
    /// When its last turn asked for another one.
    pub again_at: Option<Timestamp>,
    /// The newest task at the time of its removal.
    pub removed_up_to: Option<TaskId>,
    /// Whether more of its tasks ran when its limit fell than it allows now.
    pub over_limit: bool,
    /// Room that a deliberate defect has lost.
    pub leaked: u32,
}

impl Model {
    fn new_job(&self, now: Now) -> Job {
        Job {
            state: JobState::Active,
            concurrency: self.rules.job_default_concurrency,
            delay: None,
            created_at: now.wall,
            last_start: None,
            again_at: None,
            removed_up_to: None,
            over_limit: false,
            leaked: 0,
        }
    }

    /// Makes the job of a new task if it does not exist and the task brings its limit.
    pub(in crate::model) fn limit_new_job(&mut self, now: Now, new: &NewTask) {
        let (Some(name), Some(limit)) = (&new.job, new.job_concurrency) else { return };
        let is_known = self.jobs.contains_key(name) && !self.has(Fault::GivenLimitOverwrites);
        if is_known || self.has(Fault::GivenLimitIgnored) {
            return;
        }
        let job = self.jobs.get(name).cloned().unwrap_or_else(|| self.new_job(now));
        self.jobs.insert(name.clone(), Job { concurrency: Some(limit), ..job });
    }

    /// Gives a job its turn. Makes a job that does not exist, if one of its tasks has come to where a job
    /// decides.
    pub(in crate::model) fn turn(&mut self, now: Now, name: &Name) {
        if !self.jobs.contains_key(name) {
            let awaits = |task: &&Task| !task.record.state.is_ended() && task.record.state != State::Waiting;
            if !self.of_job(name).any(|task| awaits(&task)) {
                return;
            }
            self.jobs.insert(name.clone(), self.new_job(now));
        }
        let Some(job) = self.jobs.get_mut(name) else { return };
        job.again_at = None;
        match (job.state, job.removed_up_to) {
            (JobState::Active | JobState::Paused, _) => self.fill(now, name),
            (JobState::Cancelled, _) => {
                self.cancel_all(now, name, None, &format!("job {name} is cancelled"));
            }
            (JobState::Removing, up_to) => {
                self.cancel_all(now, name, up_to, &format!("job {name} was removed"));
                let awaited = |task: &Task| up_to.is_none_or(|last| task.record.id <= last);
                let left = self.of_job(name).any(|task| !task.record.state.is_ended() && awaited(task));
                if !left {
                    self.jobs.remove(name);
                    self.turn(now, name);
                }
            }
        }
    }

    /// Cancels the tasks of a job, up to one of them, that neither run nor have ended; answers how many.
    fn cancel_all(&mut self, now: Now, name: &Name, up_to: Option<TaskId>, reason: &str) -> u64 {
        let stops = |task: &&Task| {
            let state = task.record.state;
            state != State::Running && !state.is_ended() && up_to.is_none_or(|last| task.record.id <= last)
        };
        let ids: Vec<TaskId> = self.of_job(name).filter(stops).map(|task| task.record.id).collect();
        for id in &ids {
            self.end(*id, Event::Cancel, Some(reason.to_owned()), now);
        }
        ids.len() as u64
    }

    /// Makes held tasks ready while the job has room, takes ready tasks back if it has none, and lets a task
    /// of higher priority replace a ready one of lower priority.
    fn fill(&mut self, now: Now, name: &Name) {
        self.notice_starts(now, name);
        let Some(view) = self.view_job(name) else { return };
        let Turn { promote, demote, again_at } = self.decide(&view, now);
        for id in self.held_best_first(name).into_iter().take(promote as usize) {
            self.shift(id, Event::Admit);
        }
        for id in self.ready_least_first(name).into_iter().take(demote as usize) {
            self.shift(id, Event::Demote);
        }
        if view.state == JobState::Active {
            let pairs = self.ready_least_first(name).into_iter().zip(self.held_best_first(name));
            for (least, best) in pairs.collect::<Vec<_>>() {
                if self.priority(best) <= self.priority(least) {
                    break;
                }
                self.shift(least, Event::Demote);
                self.shift(best, Event::Admit);
            }
        }
        let over = self.is_over_limit(name);
        if let Some(job) = self.jobs.get_mut(name) {
            job.again_at = again_at;
            job.over_limit &= over;
        }
    }

    /// The decision of the core, changed if the store has a defect.
    fn decide(&self, view: &JobView, now: Now) -> Turn {
        let mut view = *view;
        if self.has(Fault::LimitCountedTooHigh) {
            view.concurrency = view.concurrency.map(|limit| limit + 1);
        }
        if self.has(Fault::DelayIgnored) {
            view.last_start = None;
        }
        let turn = gate::turn(&view, self.window(), now.wall);
        if self.has(Fault::DemotionSkipped) { Turn { demote: 0, ..turn } } else { turn }
    }

    /// The delay of a job counts from the moment at which the job records a start.
    fn notice_starts(&mut self, now: Now, name: &Name) {
        let Some(job) = self.jobs.get_mut(name).filter(|job| job.delay.is_some()) else { return };
        for task in self.tasks.values_mut().filter(|task| task.record.job.as_ref() == Some(name)) {
            if task.record.state == State::Running && task.noticed_lease != task.record.lease {
                task.noticed_lease = task.record.lease;
                job.last_start = Some(now.wall);
            }
        }
    }

    fn view_job(&self, name: &Name) -> Option<JobView> {
        let job = self.jobs.get(name)?;
        let count = |state| self.of_job(name).filter(|task| task.record.state == state).count() as u32;
        Some(JobView {
            state: job.state,
            concurrency: job.concurrency,
            delay: job.delay,
            last_start: job.last_start,
            ready: count(State::Ready),
            running: count(State::Running) + job.leaked,
        })
    }

    pub(in crate::model) fn is_over_limit(&self, name: &Name) -> bool {
        self.view_job(name)
            .is_some_and(|job| job.concurrency.is_some_and(|limit| job.ready + job.running > limit))
    }

    fn held_best_first(&self, name: &Name) -> Vec<TaskId> {
        let live =
            |task: &&Task| task.record.state == State::Held && !task.aside && self.is_live(&task.record.lane);
        let mut held: Vec<_> = self
            .of_job(name)
            .filter(live)
            .map(|task| (Reverse(task.record.priority), task.record.id))
            .collect();
        held.sort_unstable();
        held.into_iter().map(|(_, id)| id).collect()
    }

    fn ready_least_first(&self, name: &Name) -> Vec<TaskId> {
        let mut ready: Vec<_> = self
            .of_job(name)
            .filter(|task| task.record.state == State::Ready)
            .map(|task| (task.record.priority, Reverse(task.ready_seq), task.record.id))
            .collect();
        ready.sort_unstable();
        ready.into_iter().map(|(.., id)| id).collect()
    }

    fn priority(&self, id: TaskId) -> i32 {
        self.tasks.get(&id).map_or(0, |task| task.record.priority)
    }

    fn of_job(&self, name: &Name) -> impl Iterator<Item = &Task> {
        self.tasks.values().filter(move |task| task.record.job.as_ref() == Some(name))
    }

    /// Makes a job or changes it.
    pub fn set_job(&mut self, now: Now, name: &Name, change: &JobChange) -> Result<JobRecord> {
        if change.state == Some(JobState::Removing) {
            return Err(Error::invalid("a job is removed by a call of its own"));
        }
        let known = self.jobs.get(name).map(|job| job.state);
        if known == Some(JobState::Removing) && change.state.is_some() {
            return Err(Error::Conflict(format!("job {name} is being removed")));
        }
        let mut job = self.jobs.get(name).cloned().unwrap_or_else(|| self.new_job(now));
        job.concurrency = change.concurrency.unwrap_or(job.concurrency);
        job.delay = change.delay.unwrap_or(job.delay);
        job.state = change.state.unwrap_or(job.state);
        self.jobs.insert(name.clone(), job);
        if change.now && change.state == Some(JobState::Cancelled) {
            self.ask_job_to_end(name, &format!("job {name} is cancelled"));
        }
        self.touched.jobs.insert(name.clone());
        self.give_turns(now);
        let over = self.is_over_limit(name);
        if let Some(job) = self.jobs.get_mut(name) {
            job.over_limit = over;
        }
        self.job(name).ok_or_else(|| not_found(name))
    }

    /// Cancels the tasks that wait, and forgets the job when none of its tasks runs any more; answers how
    /// many were cancelled.
    pub fn remove_job(&mut self, now: Now, name: &Name, ask: bool) -> Result<u64> {
        let up_to = Some(self.last_id);
        let job = self.jobs.get_mut(name).ok_or_else(|| not_found(name))?;
        (job.state, job.removed_up_to) = (JobState::Removing, up_to);
        let reason = format!("job {name} was removed");
        if ask {
            self.ask_job_to_end(name, &reason);
        }
        let cancelled = self.cancel_all(now, name, up_to, &reason);
        self.touched.jobs.insert(name.clone());
        self.give_turns(now);
        Ok(cancelled)
    }

    fn ask_job_to_end(&mut self, name: &Name, reason: &str) {
        for task in self.tasks.values_mut() {
            if task.record.job.as_ref() == Some(name) && task.record.state == State::Running {
                task.record.cancel_requested.get_or_insert_with(|| reason.to_owned());
            }
        }
    }

    /// Gives turns to the delayed jobs whose time has come.
    pub fn admit(&mut self, now: Now, limit: u32) -> DutyReport {
        let before = self.last_ready_seq;
        let mut due: Vec<_> = self
            .jobs
            .iter()
            .filter_map(|(name, job)| Some((job.again_at.filter(|at| *at <= now.wall)?, name.clone())))
            .collect();
        due.sort_unstable();
        let more = due.len() > limit as usize;
        self.touched.jobs.extend(due.into_iter().take(limit as usize).map(|(_, name)| name));
        self.give_turns(now);
        DutyReport {
            moved: self.last_ready_seq - before,
            workers: Vec::new(),
            lanes_ready: self.lanes_ready_since(before),
            next_due: self.next_due(),
            more,
        }
    }

    /// Whether a job with a delay wants a turn at a later time although it holds back no task that could
    /// start then.
    pub fn has_idle_delay(&self) -> bool {
        self.jobs.iter().any(|(name, job)| job.again_at.is_some() && self.held_best_first(name).is_empty())
    }

    /// One job.
    pub fn job(&self, name: &Name) -> Option<JobRecord> {
        let job = self.jobs.get(name)?;
        let count = |state| {
            let n = self.of_job(name).filter(|task| task.record.state == state).count() as u64;
            n.min(COUNT_MAX)
        };
        Some(JobRecord {
            name: name.clone(),
            state: job.state,
            concurrency: job.concurrency,
            delay: job.delay,
            created_at: job.created_at,
            last_start: job.last_start,
            ready: count(State::Ready),
            running: count(State::Running),
            held: count(State::Held),
        })
    }

    /// Jobs by name.
    pub fn jobs(&self, after: Option<&Name>, limit: u32) -> Vec<JobRecord> {
        let later = self.jobs.keys().filter(|name| after.is_none_or(|after| *name > after));
        later.take(limit.clamp(1, PAGE_MAX) as usize).filter_map(|name| self.job(name)).collect()
    }
}

fn not_found(name: &Name) -> Error {
    Error::NotFound(format!("job {name}"))
}
