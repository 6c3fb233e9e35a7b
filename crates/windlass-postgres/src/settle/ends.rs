//! Ends of attempts, and the statements that write them.

use std::collections::BTreeSet;

use windlass_core::{LeaseRef, Payload, SettleBatch, SettleItem, Settlement, State, Timestamp, WorkerId};

use crate::{
    connection::{
        conn::Param,
        error::Failure,
        pool::Session,
        values::{Cells, column},
    },
    gates::workflow::Held,
    settle::Ended,
    shared::Shared,
    sql::{self, Sql},
};

/// How an attempt ends whose task goes on or dies; the codes of the attempt log.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    Retry = 1,
    Snooze = 2,
    Release = 3,
    Dead = 6,
}

/// The task leaves the table of tasks: done or cancelled.
struct Leave<'a> {
    lease: LeaseRef,
    state: State,
    error: Option<&'a str>,
    output: Option<&'a Payload>,
}

/// The task goes on, or dies.
struct Stay<'a> {
    lease: LeaseRef,
    how: How,
    due_at: Option<Timestamp>,
    error: Option<&'a str>,
}

/// Ends of attempts by the statement that writes them.
#[derive(Default)]
pub(crate) struct Ends<'a> {
    leaving: Vec<Leave<'a>>,
    staying: Vec<Stay<'a>>,
}

/// What a transaction of a batch has done so far.
pub(crate) struct Begun {
    pub held: Held,
    pub ended: Ended,
    pub next_due: Option<Timestamp>,
}

impl<'a> Ends<'a> {
    pub(crate) fn of(items: &[&'a SettleItem]) -> Self {
        let mut ends = Self::default();
        for item in items {
            let lease = item.lease;
            let mut end = |state, error, output| ends.leaving.push(Leave { lease, state, error, output });
            let mut stay = |how, due_at, error| ends.staying.push(Stay { lease, how, due_at, error });
            match &item.settlement {
                Settlement::Done { output, note } => end(State::Done, note.as_deref(), output.as_ref()),
                Settlement::Cancelled { reason } => end(State::Cancelled, Some(reason), None),
                Settlement::Retry { due_at, error } => stay(How::Retry, Some(*due_at), Some(error)),
                Settlement::Snooze { due_at } => stay(How::Snooze, Some(*due_at), None),
                Settlement::Release => stay(How::Release, None, None),
                Settlement::Dead { error } => stay(How::Dead, None, Some(error)),
            }
        }
        ends
    }

    /// Opens a transaction that notes the batch, locks its workflows and writes the ends, all sent in one go.
    /// Nothing if the batch cannot be noted: it was applied before, or its worker has left.
    pub(crate) async fn begin(
        &self,
        shared: &Shared,
        session: &mut Session<'_>,
        batch: &SettleBatch,
        receipt: &'static Sql,
        workflows: &BTreeSet<String>,
    ) -> Result<Option<Begun>, Failure> {
        let (worker, settler, number) = (batch.worker.0, batch.settler_no as i32, batch.batch_no as i64);
        let (ttl, keep) = (shared.key_ttl_ms(), shared.keeps_all());
        let names: Vec<&str> = workflows.iter().map(String::as_str).collect();
        let (leaving, staying) = (&self.leaving, &self.staying);
        let note: [Param<'_>; 3] = [&worker, &settler, &number];
        let lock: [Param<'_>; 1] = [&names];
        let leave: [Param<'_>; 9] = [
            &worker,
            &column(leaving, |end| end.lease.id.raw()),
            &column(leaving, |end| end.lease.lease as i32),
            &column(leaving, |end| end.state.code() as i16),
            &column(leaving, |end| end.error),
            &column(leaving, |end| end.output.map(|output| output.encoding().code() as i16)),
            &column(leaving, |end| end.output.map(Payload::as_bytes)),
            &ttl,
            &keep,
        ];
        let stay: [Param<'_>; 6] = [
            &worker,
            &column(staying, |end| end.lease.id.raw()),
            &column(staying, |end| end.lease.lease as i32),
            &column(staying, |end| end.how as i16),
            &column(staying, |end| end.due_at.map(Timestamp::as_ms)),
            &column(staying, |end| end.error),
        ];
        let sets_due = staying.iter().any(|end| end.due_at.is_some());
        let all: [(bool, &'static Sql, &[Param<'_>]); 5] = [
            (true, receipt, &note),
            (!names.is_empty(), &sql::WORKFLOW_LOCK, &lock),
            (!leaving.is_empty(), &sql::SETTLE_LEAVE, &leave),
            (!staying.is_empty(), &sql::SETTLE_STAY, &stay),
            (sets_due, &sql::NEXT_DUE, &[]),
        ];
        let sent: Vec<_> =
            all.iter().filter(|(is_sent, ..)| *is_sent).map(|(_, sql, params)| (*sql, *params)).collect();
        let mut answers = session.begin_with(&sent).await?.into_iter();
        let [noted, locked, left, stayed, due] =
            all.map(|(is_sent, ..)| if is_sent { answers.next().unwrap_or_default() } else { Vec::new() });
        if noted.is_empty() {
            return Ok(None);
        }
        let mut ended = Ended::default();
        ended.add(&left);
        ended.add(&stayed);
        let next_due = due.first().map(|row| row.time(0));
        Ok(Some(Begun { held: Held::of(&locked), ended, next_due }))
    }
}

/// Attempts that were asked to end do so, unless they succeeded: those of the leases that have not ended yet.
pub(crate) async fn end_asked(
    shared: &Shared,
    session: &mut Session<'_>,
    worker: WorkerId,
    leases: &[LeaseRef],
    ended: &mut Ended,
) -> Result<(), Failure> {
    if ended.tasks.len() < leases.len() {
        let (ids, numbers) =
            (column(leases, |lease| lease.id.raw()), column(leases, |lease| lease.lease as i32));
        let (ttl, keep) = (shared.key_ttl_ms(), shared.keeps_all());
        ended.add(&session.query(&sql::SETTLE_ASKED, &[&worker.0, &ids, &numbers, &ttl, &keep]).await?);
    }
    ended.lanes_ready.sort_unstable();
    ended.lanes_ready.dedup();
    Ok(())
}
