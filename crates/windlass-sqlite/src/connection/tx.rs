//! What a request may access in a write transaction, and what follows from its commit.

use std::{collections::BTreeSet, time::Duration};

use rusqlite::{CachedStatement, Connection};
use windlass_core::{Error, LaneId, LeaseRef, Name, NewWorker, TaskId, Timestamp, WorkerId};

use crate::{
    connection::{disk::Disk, options::Options},
    leases::renew::Leases,
    memory::Memory,
    operate::awaited::Awaited,
    upkeep::retention::Cursor,
};

/// Why a request did not succeed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The request was refused before it wrote; the rest of its transaction is unharmed.
    Refused(Error),
    /// The request failed while it wrote; the transaction must be rolled back.
    Broken(rusqlite::Error),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Broken(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

/// The result of a request inside its transaction.
pub(crate) type Step<T> = Result<T, Failure>;

/// The row and the writer's cache disagree: a bug, or another program changed the file. The transaction is
/// rolled back.
pub(crate) fn disagree(what: &str) -> Failure {
    Failure::Broken(rusqlite::Error::ToSqlConversionFailure(
        format!("the file does not match what this process wrote ({what})").into(),
    ))
}

/// What follows from a transaction after its commit; dropped if it fails.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each says whether one thing happened; they are no states")]
pub(crate) struct Effects {
    /// Tasks became ready.
    pub ready: bool,
    /// A queue was resumed.
    pub resumed: bool,
    /// A lane was created.
    pub lanes: bool,
    /// The earliest due time of a task that the transaction scheduled.
    pub due: Option<Timestamp>,
    /// Running attempts were asked to end.
    pub cancels: Vec<(WorkerId, LeaseRef, String)>,
    /// Attempts that ended after a cancellation was requested of them.
    pub cancels_over: Vec<(WorkerId, LeaseRef)>,
    /// Tasks ended.
    pub ended: Vec<TaskId>,
    /// Registrations began.
    pub workers_started: Vec<(WorkerId, NewWorker)>,
    /// Registrations ended.
    pub workers_ended: Vec<WorkerId>,
    /// Workers whose slots were set.
    pub slots_set: Vec<(WorkerId, u32)>,
    /// Retention found nothing more to do.
    pub tidy: bool,
    /// The stored figures must be written again: the history changed, or rows were removed.
    pub figures: bool,
    /// Jobs that reached their limit with tasks left (true), or no longer do (false).
    pub limits: Vec<(Name, u32, bool)>,
}

impl Effects {
    /// A task was scheduled.
    pub(crate) fn scheduled(&mut self, at: Timestamp) {
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }

    pub(crate) fn clear(&mut self) {
        let mut ended = std::mem::take(&mut self.ended);
        ended.clear();
        *self = Self { ended, ..Self::default() };
    }
}

/// The gates that a request touched, and the results of their turns.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    /// Jobs that get their turn at the end of the request.
    pub jobs: BTreeSet<Name>,
    /// Workflows that are passed on at the end of the request.
    pub workflows: BTreeSet<Name>,
    /// Lanes that have ready tasks because of those turns.
    pub lanes_ready: BTreeSet<LaneId>,
    /// Tasks that were cancelled because their job is being removed.
    pub removed: u64,
    /// Admitted tasks whose rows are not yet written, with their places in the line.
    pub admitted: Vec<(i64, i64)>,
}

impl Touched {
    pub(crate) fn job(&mut self, job: &Name) {
        if !self.jobs.contains(job) {
            self.jobs.insert(job.clone());
        }
    }

    pub(crate) fn workflow(&mut self, workflow: &Name) {
        if !self.workflows.contains(workflow) {
            self.workflows.insert(workflow.clone());
        }
    }
}

/// A write transaction with everything that a request may access.
pub(crate) struct Tx<'a> {
    pub conn: &'a Connection,
    pub memory: &'a mut Memory,
    pub effects: &'a mut Effects,
    pub leases: &'a Leases,
    pub awaited: &'a Awaited,
    pub disk: &'a mut Disk,
    /// The position of retention.
    pub cursor: &'a mut Cursor,
    pub touched: Touched,
    pub options: &'a Options,
    /// The wall clock when the request began.
    pub now: Timestamp,
    /// Monotonic time when the request began.
    pub mono: Duration,
}

impl<'a> Tx<'a> {
    /// A prepared statement, kept for the next time.
    pub(crate) fn sql(&self, text: &str) -> rusqlite::Result<CachedStatement<'a>> {
        let replaced = self.options.replaced.iter().find(|(original, _)| original == text);
        self.conn.prepare_cached(replaced.map_or(text, |(_, other)| other))
    }

    /// When the next scheduled task is due, or the next delayed job needs its turn.
    pub(crate) fn next_due(&self) -> rusqlite::Result<Option<Timestamp>> {
        let task = self.next_scheduled()?;
        let pending = self.memory.rooms.has_pending().then_some(self.now);
        let times = [task, self.memory.rooms.next_turn(), pending];
        Ok(times.into_iter().flatten().min())
    }

    fn next_scheduled(&self) -> rusqlite::Result<Option<Timestamp>> {
        if self.memory.scheduled() == 0 {
            return Ok(None);
        }
        let mut statement = self.sql(crate::sql::NEXT_DUE)?;
        let mut rows = statement.query([])?;
        rows.next()?.map(|row| row.get(0).map(Timestamp::from_ms)).transpose()
    }
}
