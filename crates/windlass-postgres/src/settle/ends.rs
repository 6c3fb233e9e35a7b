//! Ends of attempts as the arrays of statements.

use windlass_core::{LeaseRef, SettleItem, Settlement, State, Timestamp, WorkerId};

use crate::{
    connection::{conn::Param, error::Failure, pool::Session},
    settle::Ended,
    shared::Shared,
    sql,
};

/// How an attempt ends whose task goes on or dies; the codes of the attempt log.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    Retry = 1,
    Snooze = 2,
    Release = 3,
    Dead = 6,
}

/// Ends of attempts as the arrays of two statements.
#[derive(Default)]
pub(crate) struct Ends<'a> {
    pub leaving: Leaving<'a>,
    pub staying: Staying<'a>,
}

/// Tasks that leave the table of tasks: done or cancelled.
#[derive(Default)]
pub(crate) struct Leaving<'a> {
    ids: Vec<i64>,
    leases: Vec<i32>,
    states: Vec<i16>,
    errors: Vec<Option<&'a str>>,
    output_encodings: Vec<Option<i16>>,
    outputs: Vec<Option<&'a [u8]>>,
}

/// Tasks that go on, or die.
#[derive(Default)]
pub(crate) struct Staying<'a> {
    ids: Vec<i64>,
    leases: Vec<i32>,
    hows: Vec<i16>,
    dues: Vec<Option<i64>>,
    errors: Vec<Option<&'a str>>,
}

impl<'a> Ends<'a> {
    pub(crate) fn of(items: &[&'a SettleItem]) -> Self {
        let mut ends = Self::default();
        for item in items {
            let lease = item.lease;
            match &item.settlement {
                Settlement::Done { output, note } => {
                    ends.leave(lease, State::Done, note.as_deref(), output.as_ref());
                }
                Settlement::Cancelled { reason } => ends.leave(lease, State::Cancelled, Some(reason), None),
                Settlement::Retry { due_at, error } => {
                    ends.stay(lease, How::Retry, Some(*due_at), Some(error));
                }
                Settlement::Snooze { due_at } => ends.stay(lease, How::Snooze, Some(*due_at), None),
                Settlement::Release => ends.stay(lease, How::Release, None, None),
                Settlement::Dead { error } => ends.stay(lease, How::Dead, None, Some(error)),
            }
        }
        ends
    }

    fn leave(
        &mut self,
        lease: LeaseRef,
        state: State,
        error: Option<&'a str>,
        output: Option<&'a windlass_core::Payload>,
    ) {
        let leaving = &mut self.leaving;
        leaving.ids.push(lease.id.raw());
        leaving.leases.push(lease.lease as i32);
        leaving.states.push(state.code() as i16);
        leaving.errors.push(error);
        leaving.output_encodings.push(output.map(|output| output.encoding().code() as i16));
        leaving.outputs.push(output.map(windlass_core::Payload::as_bytes));
    }

    pub(crate) fn stay(
        &mut self,
        lease: LeaseRef,
        how: How,
        due_at: Option<Timestamp>,
        error: Option<&'a str>,
    ) {
        let staying = &mut self.staying;
        staying.ids.push(lease.id.raw());
        staying.leases.push(lease.lease as i32);
        staying.hows.push(how as i16);
        staying.dues.push(due_at.map(Timestamp::as_ms));
        staying.errors.push(error);
    }

    pub(crate) fn schedules(&self) -> bool {
        self.staying.dues.iter().any(Option::is_some)
    }

    /// A task that was asked to end does so, unless its attempt succeeded.
    pub(crate) async fn write_asked(
        &self,
        shared: &Shared,
        session: &mut Session<'_>,
        worker: WorkerId,
        ended: &mut Ended,
    ) -> Result<(), Failure> {
        let (leaving, staying) = (&self.leaving, &self.staying);
        if ended.tasks.len() < leaving.ids.len() + staying.ids.len() {
            let ids: Vec<i64> = leaving.ids.iter().chain(&staying.ids).copied().collect();
            let leases: Vec<i32> = leaving.leases.iter().chain(&staying.leases).copied().collect();
            let (ttl, keep) = (shared.key_ttl_ms(), shared.keeps_all());
            let rows = session.query(&sql::SETTLE_ASKED, &[&worker.0, &ids, &leases, &ttl, &keep]).await?;
            ended.add(&rows);
        }
        ended.lanes_ready.sort_unstable();
        ended.lanes_ready.dedup();
        Ok(())
    }
}

impl Leaving<'_> {
    /// The parameters of `settle_leave.sql`, if anything leaves.
    pub(crate) fn params<'p>(
        &'p self,
        worker: &'p i64,
        key_ttl: &'p i64,
        keep: &'p bool,
    ) -> Option<[Param<'p>; 9]> {
        (!self.ids.is_empty()).then_some([
            worker,
            &self.ids,
            &self.leases,
            &self.states,
            &self.errors,
            &self.output_encodings,
            &self.outputs,
            key_ttl,
            keep,
        ])
    }
}

impl Staying<'_> {
    /// The parameters of `settle_stay.sql`, if anything stays.
    pub(crate) fn params<'p>(&'p self, worker: &'p i64) -> Option<[Param<'p>; 6]> {
        (!self.ids.is_empty()).then_some([
            worker,
            &self.ids,
            &self.leases,
            &self.hows,
            &self.dues,
            &self.errors,
        ])
    }
}
