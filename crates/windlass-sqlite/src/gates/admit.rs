//! The turns of jobs and workflows. A request marks the gates that it touches; each has one turn at the end
//! of the request.
//!
//! ```text
//!  enqueue, settle, cancel, … ─touch─► workflows by name: head passes ─touch─► jobs by name: held ⇄ ready
//!                                           ▲                                     │
//!                                           └─ a job that cancels tasks ends steps┘
//! ```
//!
//! One request moves a bounded number of tasks. The rest stays pending: memory records it, `next_due` asks
//! for another turn at once, and the next opening of the store finds it again.

use windlass_core::{Name, source::DutyReport};

use crate::{
    connection::tx::{Step, Tx},
    gates::{job, turns, workflow},
    memory::{Memory, Service},
    sql,
};

/// The most that the turns of one request may cost: a turn or a move between held and ready counts one. About
/// 50 ms.
const COST_MAX: usize = 4_000;
/// The cost of cancelling a task, which is written into the history.
const CANCEL_COST: usize = 4;
/// Delayed jobs that get their turn before one claim.
const DUE_PER_CLAIM: usize = 1_000;

/// The cost that is left for the turns of a request.
#[derive(Debug)]
pub(crate) struct Budget(usize);

impl Budget {
    /// The whole budget of a request.
    pub(crate) fn new() -> Self {
        Self(COST_MAX)
    }

    /// `wanted` moves, or as many as the budget allows.
    pub(crate) fn moves(&self, wanted: u32) -> usize {
        self.0.min(wanted as usize)
    }

    /// How many tasks the budget allows to cancel.
    pub(crate) fn cancels(&self) -> usize {
        self.0 / CANCEL_COST
    }

    fn is_spent(&self) -> bool {
        self.0 == 0
    }

    pub(crate) fn spend_turn(&mut self) {
        self.0 = self.0.saturating_sub(1);
    }

    pub(crate) fn spend_move(&mut self) {
        self.0 = self.0.saturating_sub(1);
    }

    pub(crate) fn spend_cancel(&mut self) {
        self.0 = self.0.saturating_sub(CANCEL_COST);
    }
}

/// Whether a turn is complete or must continue later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    Over,
    More,
}

/// Passes on the touched workflows and gives the touched jobs their turns.
pub(crate) fn give_turns(tx: &mut Tx<'_>) -> Step<()> {
    let mut budget = Budget::new();
    while !tx.touched.workflows.is_empty() || !tx.touched.jobs.is_empty() {
        for workflow in std::mem::take(&mut tx.touched.workflows) {
            turns::write_admitted(tx)?;
            match workflow::pass_on(tx, &workflow, &mut budget)? {
                Progress::Over => tx.memory.rooms.workflow_done(&workflow),
                Progress::More => tx.memory.rooms.postpone_workflow(workflow),
            }
        }
        for job in std::mem::take(&mut tx.touched.jobs) {
            let is_left = budget.is_spent() || turns::give_turn(tx, &job, &mut budget)? == Progress::More;
            budget.spend_turn();
            if is_left {
                tx.memory.rooms.postpone_job(job);
            } else {
                tx.memory.rooms.job_done(&job);
            }
        }
    }
    turns::write_admitted(tx)?;
    if tx.memory.rooms.has_pending() {
        // The subscriber of this hint runs the pending turns.
        tx.effects.scheduled(tx.now);
    }
    Ok(())
}

/// Gives due delayed jobs their turn, and continues pending turns.
pub(crate) fn admit(tx: &mut Tx<'_>, limit: u32) -> Step<DutyReport> {
    let (limit, line) = (limit as usize, tx.memory.ready_seq);
    let due = tx.memory.rooms.due(tx.now, limit);
    let workflows: Vec<Name> = tx.memory.rooms.pending_workflows().iter().take(limit).cloned().collect();
    let jobs: Vec<Name> = tx.memory.rooms.pending_jobs().iter().take(limit).cloned().collect();
    tx.touched.workflows.extend(workflows);
    tx.touched.jobs.extend(due.into_iter().chain(jobs).take(limit));
    give_turns(tx)?;
    Ok(DutyReport {
        moved: tx.memory.ready_seq.saturating_sub(line) as u64,
        workers: Vec::new(),
        lanes_ready: tx.touched.lanes_ready.iter().copied().collect(),
        next_due: tx.next_due()?,
        more: limit > 0
            && (tx.memory.rooms.has_pending() || tx.memory.rooms.next_turn().is_some_and(|at| at <= tx.now)),
    })
}

/// Gives due delayed jobs their turn, before a claim.
pub(crate) fn admit_due(tx: &mut Tx<'_>) -> Step<()> {
    if tx.memory.rooms.next_turn().is_none_or(|at| at > tx.now) {
        return Ok(());
    }
    let due = tx.memory.rooms.due(tx.now, DUE_PER_CLAIM);
    tx.touched.jobs.extend(due);
    give_turns(tx)
}

/// Marks gates whose turns may have been pending when the store was last closed. No worker is registered yet,
/// so no lane is live.
pub(crate) fn find_left_over(tx: &mut Tx<'_>) -> Step<()> {
    let mut statement = tx.sql(sql::LOAD_JOBS)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if row.get(3)? {
            tx.touched.jobs.insert(job::name(row, 0)?);
        }
    }
    let mut statement = tx.sql(sql::LOAD_WORKFLOWS)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        tx.touched.workflows.insert(job::name(row, 0)?);
    }
    let with_ready = tx.memory.rooms.iter().filter(|(_, room)| room.ready() > 0);
    let with_ready: Vec<Name> = with_ready.map(|(job, _)| job.clone()).collect();
    tx.touched.jobs.extend(with_ready);
    Ok(())
}

/// Changes the registered workers or the paused queues, and touches the jobs that this concerns: jobs with
/// ready tasks in a lane that has lost its last worker; jobs with held tasks in a lane that has a worker
/// again; and, if the window changes, jobs without a limit that have held tasks.
pub(crate) fn change_fleet<T>(tx: &mut Tx<'_>, change: impl FnOnce(&mut Memory) -> T) -> Step<T> {
    if tx.memory.rooms.is_empty() {
        return Ok(change(tx.memory));
    }
    let live = |memory: &Memory| memory.lanes().iter().map(crate::memory::LaneEntry::is_live).collect();
    let (before, slots): (Vec<bool>, u32) = (live(tx.memory), tx.memory.slots());
    let answer = change(tx.memory);
    let after: Vec<bool> = live(tx.memory);
    let has_other_window = tx.memory.slots() != slots;
    let was = |lanes: &[bool], lane: windlass_core::LaneId| {
        usize::try_from(lane.0 - 1).ok().and_then(|place| lanes.get(place).copied()).unwrap_or(false)
    };
    let mut touched = Vec::new();
    let mut without_limit = Vec::new();
    for (job, room) in tx.memory.rooms.iter() {
        let is_touched =
            room.shares.iter().any(|share| match (was(&before, share.lane), was(&after, share.lane)) {
                (true, false) => !share.ready.is_empty(),
                (false, true) => share.held > 0,
                _ => false,
            });
        if is_touched {
            touched.push(job.clone());
        } else if has_other_window && room.held() > 0 {
            without_limit.push(job.clone());
        }
    }
    tx.touched.jobs.extend(touched);
    for job in without_limit {
        if job::find(tx, &job)?.is_some_and(|row| row.concurrency.is_none()) {
            tx.touched.jobs.insert(job);
        }
    }
    Ok(answer)
}

/// What a worker takes, as the writer caches it.
pub(crate) fn service(worker: &windlass_core::NewWorker) -> Service {
    Service { kinds: worker.kinds.clone(), queues: worker.queues.clone(), slots: worker.slots }
}

#[cfg(test)]
mod tests;
