//! Settle: the ends of attempts, all in one durable commit, once per batch number.
//!
//! The usual batch, successes that left nothing behind, is one statement that commits by itself. Any other is a
//! transaction whose statements are sent in a row; what is decided in between is only whether something was lost.

use std::collections::HashSet;

use windlass_core::{
    Error, LaneId, LeaseRef, Result, SettleBatch, SettleItem, Settled, Settlement, State, TaskId, Timestamp,
    WorkerId,
};

use crate::{error::Failure, pool::Session, repeat::repeat, shared::Shared, sql};

/// Applies a batch, or answers from its receipt.
pub(crate) async fn settle(shared: &Shared, batch: &SettleBatch) -> Result<Settled> {
    let mut items: Vec<&SettleItem> = batch.items.iter().collect();
    // In the order of tasks, as every other transaction that locks many.
    items.sort_unstable_by_key(|item| item.lease.id);
    let is_plain =
        items.iter().all(|item| matches!(item.settlement, Settlement::Done { output: None, note: None }));
    let settled = repeat(|| async {
        if is_plain {
            settle_done(shared, batch, &items).await
        } else {
            settle_mixed(shared, batch, &items).await
        }
    })
    .await?;
    shared.awaited.wake(batch.items.iter().map(|item| item.lease.id));
    if !settled.lanes_ready.is_empty() {
        shared.subscribers.tell_ready();
    }
    if let Some(due) = settled.next_due {
        shared.subscribers.tell_due(due);
    }
    Ok(settled)
}

async fn settle_done(
    shared: &Shared,
    batch: &SettleBatch,
    items: &[&SettleItem],
) -> Result<Settled, Failure> {
    let mut session = shared.settles.session().await?;
    let ids: Vec<i64> = items.iter().map(|item| item.lease.id.raw()).collect();
    let leases: Vec<i32> = items.iter().map(|item| item.lease.lease as i32).collect();
    let (settler, number) = (batch.settler_no as i32, batch.batch_no as i64);
    let (ttl, keep) = (shared.key_ttl_ms(), shared.keeps_all());
    let row = session
        .row(&sql::SETTLE_DONE, &[&batch.worker.0, &settler, &number, &ids, &leases, &ttl, &keep])
        .await?;
    match row {
        Some(row) if row.get(0) => {
            let fenced: Vec<i64> = row.get(1);
            Ok(Settled { fenced: fenced.into_iter().map(TaskId::from_raw).collect(), ..Settled::default() })
        }
        _ => replay(&mut session, batch).await,
    }
}

/// The stored answer of a batch that was already applied; of a worker that is gone everything is lost.
async fn replay(session: &mut Session<'_>, batch: &SettleBatch) -> Result<Settled, Failure> {
    let settler = batch.settler_no as i32;
    let row = session.row(&sql::SETTLE_REPLAY, &[&batch.worker.0, &settler]).await?;
    let Some(row) = row.filter(|row| row.get::<_, i64>(0) as u64 >= batch.batch_no) else {
        return Ok(all_fenced(batch));
    };
    let last: i64 = row.get(0);
    if last as u64 > batch.batch_no {
        return Err(Error::Conflict(format!(
            "batch {} of settler {settler} is older than its last, {last}; a settler sends one batch at a time",
            batch.batch_no
        ))
        .into());
    }
    let fenced: Vec<i64> = row.get(1);
    Ok(Settled {
        fenced: fenced.into_iter().map(TaskId::from_raw).collect(),
        replayed: true,
        ..Settled::default()
    })
}

fn all_fenced(batch: &SettleBatch) -> Settled {
    Settled { fenced: batch.items.iter().map(|item| item.lease.id).collect(), ..Settled::default() }
}

async fn settle_mixed(
    shared: &Shared,
    batch: &SettleBatch,
    items: &[&SettleItem],
) -> Result<Settled, Failure> {
    let mut session = shared.settles.session().await?;
    let (settler, number) = (batch.settler_no as i32, batch.batch_no as i64);
    session.begin().await?;
    if session.row(&sql::SETTLE_RECEIPT, &[&batch.worker.0, &settler, &number]).await?.is_none() {
        let settled = replay(&mut session, batch).await;
        session.rollback().await;
        return settled;
    }
    let ends = Ends::of(items);
    let ended = ends.write(shared, &mut session, batch.worker).await?;
    let fenced: Vec<i64> =
        items.iter().map(|item| item.lease.id.raw()).filter(|id| !ended.tasks.contains(id)).collect();
    if !fenced.is_empty() {
        session.query(&sql::SETTLE_FENCED, &[&batch.worker.0, &settler, &number, &fenced]).await?;
    }
    let next_due = if ends.schedules() { next_due(&mut session).await? } else { None };
    session.commit().await?;
    Ok(Settled {
        fenced: fenced.into_iter().map(TaskId::from_raw).collect(),
        lanes_ready: ended.lanes_ready,
        next_due,
        replayed: false,
    })
}

/// When the next scheduled task is due.
pub(crate) async fn next_due(session: &mut Session<'_>) -> Result<Option<Timestamp>, Failure> {
    Ok(session.row(&sql::NEXT_DUE, &[]).await?.map(|row| Timestamp::from_ms(row.get(0))))
}

/// Hands leases back inside the session's transaction, in the order of the tasks; answers their lanes.
pub(crate) async fn hand_back(
    shared: &Shared,
    session: &mut Session<'_>,
    worker: WorkerId,
    leases: &[LeaseRef],
) -> Result<Ended, Failure> {
    let mut ends = Ends::default();
    for lease in leases {
        ends.stay(*lease, How::Release, None, None);
    }
    ends.write(shared, session, worker).await
}

/// What was written.
#[derive(Default)]
pub(crate) struct Ended {
    pub tasks: HashSet<i64>,
    pub lanes_ready: Vec<LaneId>,
}

/// How an attempt ends whose task does not leave; the codes of the attempt log.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    Retry = 1,
    Snooze = 2,
    Release = 3,
    Dead = 6,
}

/// Ends of attempts as the arrays of two statements.
#[derive(Default)]
struct Ends<'a> {
    leaving: Leaving<'a>,
    staying: Staying<'a>,
}

/// Tasks that leave the hot table: done or cancelled.
#[derive(Default)]
struct Leaving<'a> {
    ids: Vec<i64>,
    leases: Vec<i32>,
    states: Vec<i16>,
    errors: Vec<Option<&'a str>>,
    output_encodings: Vec<Option<i16>>,
    outputs: Vec<Option<&'a [u8]>>,
}

/// Tasks that go on, or die.
#[derive(Default)]
struct Staying<'a> {
    ids: Vec<i64>,
    leases: Vec<i32>,
    hows: Vec<i16>,
    dues: Vec<Option<i64>>,
    errors: Vec<Option<&'a str>>,
}

impl<'a> Ends<'a> {
    fn of(items: &[&'a SettleItem]) -> Self {
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

    fn stay(&mut self, lease: LeaseRef, how: How, due_at: Option<Timestamp>, error: Option<&'a str>) {
        let staying = &mut self.staying;
        staying.ids.push(lease.id.raw());
        staying.leases.push(lease.lease as i32);
        staying.hows.push(how as i16);
        staying.dues.push(due_at.map(Timestamp::as_ms));
        staying.errors.push(error);
    }

    fn schedules(&self) -> bool {
        self.staying.dues.iter().any(Option::is_some)
    }

    /// Writes all ends inside the session's transaction, sent in a row.
    async fn write(
        &self,
        shared: &Shared,
        session: &mut Session<'_>,
        worker: WorkerId,
    ) -> Result<Ended, Failure> {
        let (ttl, keep) = (shared.key_ttl_ms(), shared.keeps_all());
        let (leaving, staying) = (&self.leaving, &self.staying);
        // Whoever was asked to end does so, whatever the attempt said but success.
        let asked_ids: Vec<i64> = leaving.ids.iter().chain(&staying.ids).copied().collect();
        let asked_leases: Vec<i32> = leaving.leases.iter().chain(&staying.leases).copied().collect();
        let mut ended = Ended::default();
        if !leaving.ids.is_empty() {
            let rows = session
                .query(
                    &sql::SETTLE_LEAVE,
                    &[
                        &worker.0,
                        &leaving.ids,
                        &leaving.leases,
                        &leaving.states,
                        &leaving.errors,
                        &leaving.output_encodings,
                        &leaving.outputs,
                        &ttl,
                        &keep,
                    ],
                )
                .await?;
            ended.tasks.extend(rows.iter().map(|row| row.get::<_, i64>(0)));
        }
        if !staying.ids.is_empty() {
            let rows = session
                .query(
                    &sql::SETTLE_STAY,
                    &[
                        &worker.0,
                        &staying.ids,
                        &staying.leases,
                        &staying.hows,
                        &staying.dues,
                        &staying.errors,
                    ],
                )
                .await?;
            for row in rows {
                ended.tasks.insert(row.get(0));
                if i64::from(row.get::<_, i16>(2)) == State::Ready.code() {
                    ended.lanes_ready.push(LaneId(i64::from(row.get::<_, i32>(1))));
                }
            }
        }
        if ended.tasks.len() < asked_ids.len() {
            let rows = session
                .query(&sql::SETTLE_ASKED, &[&worker.0, &asked_ids, &asked_leases, &ttl, &keep])
                .await?;
            ended.tasks.extend(rows.iter().map(|row| row.get::<_, i64>(0)));
        }
        ended.lanes_ready.sort_unstable();
        ended.lanes_ready.dedup();
        Ok(ended)
    }
}
