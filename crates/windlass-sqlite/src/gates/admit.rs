//! The turns of jobs and workflows: given once, at the end of whatever request touched them.
//!
//! ```text
//!  enqueue, settle, cancel, … ──touch──► workflows, by name: the head passes ──touch──► jobs, by name: held ⇄ ready
//!                                              ▲                                              │
//!                                              └───── a job that cancels tasks ends steps ────┘
//! ```
//!
//! One request moves a bounded number of tasks. What is left over is noted in memory, asks for a turn at once (`next_due`),
//! and is found again when the store is opened.

use windlass_core::{Name, source::DutyReport};

use crate::{
    connection::tx::{Step, Tx},
    gates::{job, turns, workflow},
    memory::{Memory, Service},
    sql,
};

/// What the turns of one request may cost: a turn or a move between held and ready is one. Some 50 ms.
const COST_MAX: usize = 4_000;
/// What it costs to cancel a task, which writes it into the history.
const CANCEL_COST: usize = 4;
/// Delayed jobs that get their turn before one claim.
const DUE_PER_CLAIM: usize = 1_000;

/// What may still be spent on the turns of a request.
#[derive(Debug)]
pub(crate) struct Budget(usize);

impl Budget {
    /// As much as one request may spend.
    pub(crate) fn new() -> Self {
        Self(COST_MAX)
    }

    /// So many moves, or as many as can still be made.
    pub(crate) fn moves(&self, wanted: u32) -> usize {
        self.0.min(wanted as usize)
    }

    /// How many tasks can still be cancelled.
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

/// Whether a turn came to its end or has to go on later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    Over,
    More,
}

/// Passes on what was touched and gives jobs their turns.
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
        // Whoever listens gives what is left over its turn.
        tx.effects.scheduled(tx.now);
    }
    Ok(())
}

/// Gives delayed jobs their turn whose time has come, and goes on with what was left over.
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

/// Gives delayed jobs their turn whose time has come, before a claim.
pub(crate) fn admit_due(tx: &mut Tx<'_>) -> Step<()> {
    if tx.memory.rooms.next_turn().is_none_or(|at| at > tx.now) {
        return Ok(());
    }
    let due = tx.memory.rooms.due(tx.now, DUE_PER_CLAIM);
    tx.touched.jobs.extend(due);
    give_turns(tx)
}

/// Touches what may have been left over when the store was last closed. Nobody is registered yet, so no lane is live.
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

/// Changes who is registered or which queues are paused, and touches the jobs that this concerns: those with ready tasks in a
/// lane that nobody takes from any more, those with held tasks in a lane that somebody takes from again, and, if the window
/// is another, those without a limit that have held tasks.
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

/// What a worker takes, as the writer remembers it.
pub(crate) fn service(worker: &windlass_core::NewWorker) -> Service {
    Service { kinds: worker.kinds.clone(), queues: worker.queues.clone(), slots: worker.slots }
}

#[cfg(test)]
mod tests;
