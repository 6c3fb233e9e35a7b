//! Claim, and how it is undone: unclaim and reconcile.

mod line;
mod suspect;

use std::cmp::Reverse;

use windlass_core::{
    ClaimAnswer, Claimed, Demand, Error, Event, LeaseRef, Result, State, TaskId, WorkerId,
    affinity::hand_over,
    crash::Turn,
    source::{Reconciled, Rest},
};

use super::{Model, Now, Task};
use crate::fault::Fault;

impl Model {
    /// Takes ready tasks for each demand in turn, or refuses them all.
    pub fn claim(&mut self, now: Now, demands: &[Demand]) -> Result<ClaimAnswer> {
        self.claim_like(now, demands, &[])
    }

    /// The same. Where the rules leave the order open, it takes the tasks that a store took, in their order.
    pub fn claim_like(&mut self, now: Now, demands: &[Demand], taken: &[TaskId]) -> Result<ClaimAnswer> {
        for demand in demands {
            self.check_claimant(now, demand)?;
        }
        self.admit(now, u32::MAX);
        self.stand_aside(now, demands);
        let mut tasks = Vec::new();
        let mut rests = Vec::new();
        for demand in demands {
            let chosen = self.choose(now, demand, taken);
            let met = chosen.len() >= demand.n as usize;
            for id in chosen {
                tasks.extend(self.take(now, demand, id));
            }
            rests.push(match met {
                true => Rest::More,
                false if self.has_ready(demand) => Rest::Blocked,
                false => Rest::Nothing,
            });
        }
        self.exchange(now, demands, &mut tasks);
        self.give_turns(now);
        // Of several demands, the answer says why one of them got less than it asked for.
        let worst = |rest: &Rest| rests.contains(rest);
        let rest = [Rest::Blocked, Rest::Nothing].into_iter().find(worst).unwrap_or(Rest::More);
        Ok(ClaimAnswer { tasks, rest, next_due: self.next_due(), now: now.wall })
    }

    /// Steps go to the worker of the claim that prefers their workflow.
    fn exchange(&mut self, now: Now, demands: &[Demand], tasks: &mut [Claimed]) {
        let may_get = |place: usize| {
            demands.get(place).is_some_and(|demand| self.suspects_turn(demand.worker, now) != Turn::Isolated)
        };
        for change in hand_over(demands, tasks, may_get) {
            let (Some(task), Some(to)) = (tasks.get_mut(change.task), demands.get(change.to)) else {
                continue;
            };
            (task.worker, task.claim_no) = (to.worker, to.claim_no);
            if let Some(known) = self.tasks.get_mut(&task.id) {
                (known.record.worker, known.claim_no) = (Some(to.worker), to.claim_no);
            }
        }
    }

    pub(super) fn check_claimant(&self, now: Now, demand: &Demand) -> Result<()> {
        let worker = self.workers.get(&demand.worker).ok_or(Error::WorkerExpired)?;
        let expired = !worker.is_live(self.lease_clock(now)) && !self.has(Fault::ExpiredWorkerMayClaim);
        let late = demand.claim_no < worker.min_claim_no && !self.has(Fault::LateClaimAccepted);
        if expired || late { Err(Error::WorkerExpired) } else { Ok(()) }
    }

    /// The tasks of a demand, in order: suspects of the next group, so that they are cleared or found soon;
    /// then by priority and place. A suspect on its last chance needs an empty worker.
    fn choose(&self, now: Now, demand: &Demand, taken: &[TaskId]) -> Vec<TaskId> {
        if self.suspects_turn(demand.worker, now) == Turn::Isolated {
            return Vec::new();
        }
        let groups = self.groups_of(demand, now);
        let mut line: Vec<_> = self
            .tasks
            .values()
            .filter(|task| task.record.state == State::Ready && demand.lanes.contains(&task.record.lane.id))
            .filter(|task| !self.paused.contains(&task.record.lane.queue))
            .filter(|task| !self.is_suspect(task.record.id) || groups.contains(&task.group))
            .map(|task| {
                let is_suspect = self.is_suspect(task.record.id);
                (Reverse(is_suspect), Reverse(task.record.priority), task.ready_seq, task.record.id)
            })
            .collect();
        line.sort_unstable();
        let line: Vec<TaskId> = line.into_iter().map(|(.., id)| id).collect();
        let line = line::like(&line, taken, |id| self.stand(id));
        let mut n = demand.n as usize + usize::from(self.has(Fault::ClaimTakesTooMany));
        if line.first().is_some_and(|id| self.is_last_chance(*id)) && !self.has(Fault::GroupsTogether) {
            n = n.min(1);
        }
        line.into_iter().take(n).collect()
    }

    /// What decides which tasks of the ready line a task may change places with.
    fn stand(&self, id: TaskId) -> Option<line::Stand<'_>> {
        let Task { record, release, .. } = self.tasks.get(&id)?;
        let job = record.job.as_ref()?;
        let (release, priority) = (*release, record.priority);
        Some(line::Stand { release, priority, is_suspect: self.is_suspect(id), job })
    }

    fn has_ready(&self, demand: &Demand) -> bool {
        self.tasks.values().any(|task| {
            (task.record.state == State::Ready || task.record.state == State::Held && task.aside)
                && demand.lanes.contains(&task.record.lane.id)
        })
    }

    pub(super) fn take(&mut self, now: Now, demand: &Demand, id: TaskId) -> Option<Claimed> {
        if !self.has(Fault::ClaimLeavesReady) {
            self.shift(id, Event::Claim);
        }
        let (epoch, is_raised) = (self.epoch, !self.has(Fault::LeaseNotRaised));
        let task = self.tasks.get_mut(&id)?;
        task.claim_no = demand.claim_no;
        // A delay counts from the start, so the job must record it at once.
        if let Some(job) = &task.record.job
            && self.jobs.get(job).is_some_and(|job| job.delay.is_some())
        {
            self.touched.jobs.insert(job.clone());
        }
        let record = &mut task.record;
        if is_raised {
            record.lease = epoch.next_lease(record.lease);
        }
        if epoch.is_used_up_by(record.lease) {
            self.epoch = epoch.after(1);
        }
        record.attempt += 1;
        record.worker = Some(demand.worker);
        record.started_at = Some(now.wall);
        Some(Claimed {
            id,
            lease: record.lease,
            attempt: record.attempt,
            max_attempts: record.max_attempts,
            crashes: record.crashes,
            worker: demand.worker,
            claim_no: demand.claim_no,
            lane: record.lane.clone(),
            priority: record.priority,
            payload: record.payload.clone(),
            job: record.job.clone(),
            workflow: record.workflow.clone(),
            timeout: record.timeout,
            retry: task.retry,
            trace: task.trace,
            claimed_at: now.wall,
        })
    }

    /// Hands back the tasks of one claim, and refuses that claim from now on.
    pub fn unclaim(&mut self, now: Now, worker: WorkerId, claim_no: u64) -> Result<u64> {
        let Some(row) = self.workers.get_mut(&worker) else { return Ok(0) };
        row.min_claim_no = row.min_claim_no.max(claim_no + 1);
        if self.has(Fault::UnclaimStrands) {
            return Ok(0);
        }
        let mut taken = self.held_by(worker);
        taken.retain(|id| self.tasks.get(id).is_some_and(|task| task.claim_no == claim_no));
        Ok(self.hand_back_all(now, &taken))
    }

    /// Hands back the tasks that the store gives to the worker and the worker does not name. Answers which
    /// leases the worker names and does not hold.
    pub fn reconcile(
        &mut self,
        now: Now,
        worker: WorkerId,
        up_to_claim_no: u64,
        in_flight: &[LeaseRef],
    ) -> Result<Reconciled> {
        let lost = if self.has(Fault::LossNotTold) {
            Reconciled::default()
        } else {
            Reconciled::new(0, in_flight, |lease| self.holds(worker, lease))
        };
        if self.has(Fault::ReconcileStrands) {
            return Ok(lost);
        }
        let mut orphans = self.held_by(worker);
        orphans.retain(|id| {
            self.tasks.get(id).is_some_and(|task| {
                let lease = LeaseRef { id: *id, lease: task.record.lease };
                task.claim_no <= up_to_claim_no && !in_flight.contains(&lease)
            })
        });
        Ok(Reconciled { handed_back: self.hand_back_all(now, &orphans), ..lost })
    }

    /// Hands tasks back, in order of their ids.
    pub(super) fn hand_back_all(&mut self, now: Now, ids: &[TaskId]) -> u64 {
        for id in ids {
            self.hand_back(*id, now);
        }
        self.give_turns(now);
        ids.len() as u64
    }
}
