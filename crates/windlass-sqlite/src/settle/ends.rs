//! How an attempt ends: by its own worker, by a hand-back, or by the death of its worker.
//!
//! Every function takes a lease that the caller has just removed from memory, so the fence has been compared.
//! The statements name (task, lease, worker) and the state once more; a row that does not match is an error.

use rusqlite::{OptionalExtension, params};
use windlass_core::{
    AttemptRecord, Payload, State, TaskId, WorkerId, attempt_log as log,
    crash::{Group, is_suspect},
    task::AttemptResult,
};

use crate::{
    connection::{
        options::History,
        tx::{Step, Tx, disagree},
    },
    enqueue::{ROW_BYTES, keyed},
    gates::{held_line, workflow},
    memory::{Held, Waiting},
    sql,
};

/// A lease that is being ended.
pub(crate) struct Ending {
    pub worker: WorkerId,
    pub id: TaskId,
    pub held: Held,
}

impl Ending {
    /// The task leaves the hot table: it is done or cancelled.
    pub(crate) fn leave(
        &self,
        tx: &mut Tx<'_>,
        state: State,
        error: Option<&str>,
        output: Option<&Payload>,
    ) -> Step<()> {
        if self.held.keyed {
            keyed::expire(tx, self.id)?;
        }
        if must_keep(tx, self.id, output.is_some()) || state == State::Cancelled && self.is_step() {
            let kept = tx.sql(sql::KEEP_ENDED)?.execute(params![
                state.code(),
                tx.now.as_ms(),
                error,
                output.map(|output| output.encoding().code()),
                output.map(Payload::as_bytes),
                self.id.raw(),
                self.held.lease,
                self.worker.0
            ])?;
            check(kept)?;
            let bytes = u64::from(self.held.payload_bytes) + output.map_or(0, |output| output.len() as u64);
            count_kept(tx, self.id, 1, bytes);
        }
        // The last id is stored with the figures, because the row that has it may be removed here.
        tx.effects.figures = true;
        let removed =
            tx.sql(sql::DELETE_RUNNING)?.execute((self.id.raw(), self.held.lease, self.worker.0))?;
        check(removed)?;
        tx.memory.count(self.held.lane, State::Running, -1);
        self.over(tx);
        tx.effects.ended.push(self.id);
        self.tell_gates(tx, state)
    }

    /// The task goes back into the ready line, or to its job, with its attempt unspent. That proves nothing
    /// about the task, so a suspect stays a suspect.
    pub(crate) fn hand_back(&self, tx: &mut Tx<'_>) -> Step<State> {
        self.ready_again(tx, AttemptResult::Released, (self.held.crashes, self.held.group), None)
    }

    /// Its worker died with it: it runs again, in a group if it is now a suspect.
    pub(crate) fn crash(&self, tx: &mut Tx<'_>, group: Group) -> Step<State> {
        let crashes = (self.held.crashes + 1, group);
        self.ready_again(tx, AttemptResult::Crashed, crashes, Some("its process died with it"))
    }

    /// Its worker died with it while it ran alone, and that happened too often.
    pub(crate) fn crash_out(&self, tx: &mut Tx<'_>) -> Step<State> {
        let crashes = self.held.crashes + 1;
        let error = format!("its process died with it {crashes} times");
        self.die(tx, AttemptResult::Crashed, self.held.attempt.saturating_sub(1), crashes, &error)?;
        Ok(State::Dead)
    }

    /// The handler failed for good.
    pub(crate) fn fail(&self, tx: &mut Tx<'_>, error: &str) -> Step<()> {
        self.die(tx, AttemptResult::Dead, self.held.attempt, 0, error)
    }

    fn ready_again(
        &self,
        tx: &mut Tx<'_>,
        result: AttemptResult,
        (crashes, group): (u32, Group),
        error: Option<&str>,
    ) -> Step<State> {
        let log = self.log(tx, result, error)?;
        let job = self.held.gate.as_ref().and_then(|gate| Some((gate.job.as_ref()?, gate.priority)));
        let state = if job.is_some() { State::Held } else { State::Ready };
        let ready_seq = (state == State::Ready).then(|| tx.memory.next_ready_seq());
        let changed = tx.sql(sql::SETTLE_READY)?.execute(params![
            ready_seq,
            self.held.attempt.saturating_sub(1),
            crashes,
            log,
            self.id.raw(),
            self.held.lease,
            self.worker.0,
            state.code(),
            is_suspect(crashes).then(|| group.to_stored())
        ])?;
        check(changed)?;
        tx.memory.count_move(self.held.lane, State::Running, state, 1);
        if state == State::Ready {
            if is_suspect(crashes) {
                tx.memory.count_suspects(self.held.lane, 1);
            }
            tx.effects.ready = true;
        }
        if let Some((job, priority)) = job {
            held_line::enter(tx, job, self.held.lane, Waiting { id: self.id, priority, crashes })?;
        }
        self.over(tx);
        self.tell_gates(tx, state)?;
        Ok(state)
    }

    fn die(
        &self,
        tx: &mut Tx<'_>,
        result: AttemptResult,
        attempt: u32,
        crashes: u32,
        error: &str,
    ) -> Step<()> {
        let log = self.log(tx, result, Some(error))?;
        let changed = tx.sql(sql::SETTLE_DEAD)?.execute(params![
            tx.now.as_ms(),
            attempt,
            crashes,
            error,
            log,
            self.id.raw(),
            self.held.lease,
            self.worker.0
        ])?;
        check(changed)?;
        tx.memory.count_move(self.held.lane, State::Running, State::Dead, 1);
        self.over(tx);
        tx.effects.ended.push(self.id);
        self.tell_gates(tx, State::Dead)
    }

    /// Tells the gates of the task which state its attempt left it in.
    pub(crate) fn tell_gates(&self, tx: &mut Tx<'_>, state: State) -> Step<()> {
        let Some(gate) = &self.held.gate else { return Ok(()) };
        if let Some(job) = &gate.job {
            tx.memory.rooms.stop(job, gate.start_no);
            tx.touched.job(job);
        }
        match (&gate.workflow, state) {
            (Some(workflow), State::Done) => tx.touched.workflow(workflow),
            (Some(workflow), State::Dead | State::Cancelled) => {
                workflow::step_failed(tx, workflow, self.id, gate.step)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn is_step(&self) -> bool {
        self.held.gate.as_ref().is_some_and(|gate| gate.workflow.is_some())
    }

    /// The task's log with this attempt added.
    pub(crate) fn log(&self, tx: &Tx<'_>, result: AttemptResult, error: Option<&str>) -> Step<String> {
        // The first lease of a task: no attempt has ended yet, so there is no log.
        let before: Option<String> = match self.held.lease {
            1 => None,
            _ => tx.sql(sql::READ_LOG)?.query_row([self.id.raw()], |row| row.get(0)).optional()?.flatten(),
        };
        Ok(log::append(
            before.as_deref(),
            AttemptRecord {
                attempt: self.held.attempt,
                lease: self.held.lease,
                worker: Some(self.worker),
                started_at: Some(self.held.claimed_at),
                ended_at: tx.now,
                result,
                error: error.map(str::to_owned),
            },
        ))
    }

    /// The attempt has ended, so no cancellation needs to be passed on.
    pub(crate) fn over(&self, tx: &mut Tx<'_>) {
        if self.held.cancel.is_some() {
            tx.effects.cancels_over.push((self.worker, self.held.lease_of(self.id)));
        }
    }
}

/// Whether an ended task must be kept, at least for a while.
pub(crate) fn must_keep(tx: &Tx<'_>, id: TaskId, has_output: bool) -> bool {
    tx.options.history == History::Kept || has_output || tx.awaited.contains(id)
}

/// Counts tasks into the history; `first` is the lowest id of them.
pub(crate) fn count_kept(tx: &mut Tx<'_>, first: TaskId, rows: u64, payload_bytes: u64) {
    tx.cursor.kept(first, tx.now);
    tx.memory.count_history(rows as i64, (payload_bytes + rows * ROW_BYTES) as i64);
    tx.effects.figures = true;
}

pub(crate) fn check(changed: usize) -> Step<()> {
    if changed == 1 { Ok(()) } else { Err(disagree("a running task")) }
}
