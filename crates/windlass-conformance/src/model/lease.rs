//! Workers and their leases, and the two duties that depend on time.

use std::time::Duration;

use windlass_core::{
    Error, Event, LeaseRef, NewWorker, Result, State, TaskId, WorkerId, WorkerReport,
    source::{DutyReport, Renewed},
    worker::{Registration, check_slots, not_live},
};

use super::{Model, Now, Worker};
use crate::fault::Fault;

/// How long after its lease ran out a worker is swept: a renewal may still be on its way.
pub const SWEEP_GRACE: Duration = Duration::from_secs(1);

impl Worker {
    pub(super) fn is_live(&self, now: Now) -> bool {
        self.gone.is_none() && now.monotonic < self.expires
    }
}

impl Model {
    /// Registers a worker under a new id.
    pub fn register(&mut self, now: Now, about: NewWorker, owner: Option<String>) -> WorkerId {
        let before = self.fleet();
        let id = WorkerId(self.workers.last_key_value().map_or(1, |(last, _)| last.0 + 1));
        let clock = self.lease_clock(now);
        let expires = clock.monotonic + about.lease_ttl;
        let report = WorkerReport::of_new(about.slots);
        let (registered_at, renewed_at) = (clock.wall, clock.wall);
        let worker = Worker {
            about,
            owner,
            report,
            registered_at,
            renewed_at,
            expires,
            min_claim_no: 0,
            gone: None,
            crowd: 0,
        };
        self.workers.insert(id, worker);
        self.follow_fleet(&before);
        self.give_turns(now);
        id
    }

    /// What a worker registered with.
    pub fn registration(&self, worker: WorkerId) -> Option<Registration> {
        let Worker { about, owner, .. } = self.workers.get(&worker)?;
        let (kinds, queues) = (about.kinds.clone(), about.queues.clone());
        Some(Registration { owner: owner.clone(), kinds, queues })
    }

    /// Prolongs a lease that is in force.
    pub fn renew(&mut self, now: Now, worker: WorkerId, report: WorkerReport) -> Result<Renewed> {
        let now = self.lease_clock(now);
        let keep = !self.has(Fault::RenewalIgnored);
        let row = self.workers.get_mut(&worker).filter(|row| row.is_live(now)).ok_or(Error::WorkerExpired)?;
        if keep {
            row.expires = now.monotonic + row.about.lease_ttl;
        }
        row.renewed_at = now.wall;
        row.report = report;
        let slots = Some(row.about.slots);
        let held = self.held_by(worker).into_iter().filter_map(|id| {
            let record = &self.tasks.get(&id)?.record;
            Some((LeaseRef { id, lease: record.lease }, record.cancel_requested.clone()?))
        });
        Ok(Renewed { cancels: held.collect(), slots, epoch: Some(self.epoch.0) })
    }

    /// Sets how many slots a live worker has.
    pub fn set_worker_slots(&mut self, now: Now, worker: WorkerId, slots: u32) -> Result<()> {
        check_slots(slots)?;
        let (before, clock) = (self.fleet(), self.lease_clock(now));
        let row = self.workers.get_mut(&worker).ok_or_else(|| Error::NotFound(format!("worker {worker}")))?;
        if !row.is_live(clock) {
            return Err(Error::Conflict(not_live(worker)));
        }
        row.about.slots = slots;
        self.follow_fleet(&before);
        self.give_turns(now);
        Ok(())
    }

    /// Ends a registration and hands back the tasks of the worker.
    pub fn retire(&mut self, now: Now, worker: WorkerId) -> Result<u64> {
        let before = self.fleet();
        let Some(row) = self.workers.get_mut(&worker) else { return Ok(0) };
        row.gone.get_or_insert(now.monotonic);
        self.follow_fleet(&before);
        if self.has(Fault::RetireStrands) {
            return Ok(0);
        }
        let held = self.held_by(worker);
        Ok(self.hand_back_all(now, &held))
    }

    /// Moves on the tasks whose time has come, the earliest due first.
    pub fn promote_due(&mut self, now: Now, limit: u32) -> DutyReport {
        let before = self.last_ready_seq;
        let early = self.has(Fault::DueTooEarly);
        let mut due: Vec<_> = self
            .tasks
            .values()
            .filter(|task| task.record.state == State::Scheduled)
            .filter_map(|task| Some((task.record.due_at?, task.record.id)))
            .filter(|(due_at, _)| *due_at <= now.wall || early)
            .collect();
        due.sort_unstable();
        let more = due.len() > limit as usize;
        let ids: Vec<TaskId> = due.into_iter().take(limit as usize).map(|(_, id)| id).collect();
        for id in &ids {
            let has_job = self.tasks.get(id).is_some_and(|task| task.record.job.is_some());
            self.shift(*id, if has_job { Event::Hold } else { Event::Due });
            self.touch(*id);
        }
        self.give_turns(now);
        DutyReport {
            moved: ids.len() as u64,
            workers: Vec::new(),
            lanes_ready: self.lanes_ready_since(before),
            next_due: self.next_due(),
            more,
        }
    }

    /// Takes the tasks of dead workers. Workers that were swept before are checked again, because `limit` may
    /// have left them tasks.
    pub fn expire_workers(&mut self, now: Now, limit: u32) -> DutyReport {
        let (clock, fleet, before) = (self.lease_clock(now), self.fleet(), self.last_ready_seq);
        let mut found = Vec::new();
        for (id, worker) in &mut self.workers {
            let sweep_at = match self.fault {
                Some(Fault::ExpiryTooEarly) => worker.expires / 2,
                Some(Fault::ExpiryTooLate) => worker.expires + 2 * worker.about.lease_ttl,
                _ => worker.expires + SWEEP_GRACE,
            };
            if worker.gone.is_none() && clock.monotonic >= sweep_at {
                worker.gone = Some(clock.monotonic);
                found.push(*id);
            }
        }
        let held: Vec<TaskId> = self
            .workers
            .iter()
            .filter(|(_, worker)| worker.gone.is_some())
            .flat_map(|(id, _)| self.held_by(*id))
            .collect();
        for id in &found {
            let crowd = self.held_by(*id).len();
            if let Some(worker) = self.workers.get_mut(id) {
                worker.crowd = crowd;
            }
        }
        let ids: Vec<TaskId> = held.iter().copied().take(limit as usize).collect();
        let holder = |id: &TaskId| self.tasks.get(id).and_then(|task| task.record.worker);
        let crashes: Vec<(Option<WorkerId>, Vec<TaskId>)> = ids
            .chunk_by(|one, other| holder(one) == holder(other))
            .map(|of| (of.first().and_then(holder), of.to_vec()))
            .collect();
        for (worker, ids) in crashes {
            let crowd = worker.and_then(|worker| self.workers.get(&worker)).map_or(0, |worker| worker.crowd);
            self.crash_all(&ids, crowd == 1, now);
        }
        self.follow_fleet(&fleet);
        self.give_turns(now);
        DutyReport {
            moved: ids.len() as u64,
            workers: found,
            lanes_ready: self.lanes_ready_since(before),
            next_due: self.next_due(),
            more: held.len() > ids.len(),
        }
    }

    /// The clock of leases: monotonic time.
    pub(super) fn lease_clock(&self, now: Now) -> Now {
        if self.has(Fault::WallClockLeases) {
            return Now { monotonic: Duration::from_millis(now.wall.as_ms().max(0) as u64), ..now };
        }
        now
    }
}
