//! Settle: the ends of attempts, all in one durable commit, once per batch number.
//!
//! The usual batch, successes that left nothing behind, is one statement that commits by itself. Any other
//! batch is a transaction whose statements are sent together; between them only one thing is decided, whether
//! a lease was lost.

pub(crate) mod ends;

use std::collections::{BTreeSet, HashSet};

use tokio_postgres::Row;
use windlass_core::{
    Error, LaneId, LeaseRef, Result, SettleBatch, SettleItem, Settled, Settlement, State, TaskId, Timestamp,
    WorkerId,
};

use crate::{
    connection::{
        error::Failure,
        pool::Session,
        repeat::repeat,
        values::{Cells, column},
    },
    gates::{
        admit,
        workflow::{self, Held, StepEnd},
    },
    settle::ends::{Begun, Ends, How, end_asked},
    shared::Shared,
    sql::{self, Sql},
    upkeep::vacuum,
};

/// Applies a batch, or answers from its receipt.
pub(crate) async fn settle(shared: &Shared, batch: &SettleBatch) -> Result<Settled> {
    let mut items: Vec<&SettleItem> = batch.items.iter().collect();
    // In the order of tasks, as in every other transaction that locks many of them.
    items.sort_unstable_by_key(|item| item.lease.id);
    let are_plain = items.iter().all(|item| is_plain_success(item));
    let settled = repeat(|| async {
        if are_plain {
            let settled = settle_done(shared, batch, &items).await?;
            return settle_missing(shared, batch, &items, settled).await;
        }
        let settled = settle_mixed(shared, batch, &items, &sql::SETTLE_RECEIPT).await?;
        // Some tasks that a receipt notes as lost were perhaps never looked up by id, because the process
        // failed in between.
        if settled.replayed { settle_missing(shared, batch, &items, settled).await } else { Ok(settled) }
    })
    .await?;
    vacuum::settled(shared, items.len());
    shared.awaited.wake(batch.items.iter().map(|item| item.lease.id));
    if !settled.lanes_ready.is_empty() {
        shared.tell_ready();
    }
    if let Some(due) = settled.next_due {
        shared.subscribers.tell_due(due);
    }
    Ok(settled)
}

/// A success that left nothing behind and is no step of a workflow.
fn is_plain_success(item: &SettleItem) -> bool {
    item.gate.workflow.is_none() && matches!(item.settlement, Settlement::Done { output: None, note: None })
}

/// Plain successes, in one statement that commits by itself.
async fn settle_done(
    shared: &Shared,
    batch: &SettleBatch,
    items: &[&SettleItem],
) -> Result<Settled, Failure> {
    let mut session = shared.settles.session().await?;
    let (settler, number) = (batch.settler_no as i32, batch.batch_no as i64);
    let (ttl, keep) = (shared.key_ttl_ms(), shared.keeps_all());
    let ids: Vec<i64> = items.iter().map(|item| item.lease.id.raw()).collect();
    let leases: Vec<i32> = items.iter().map(|item| item.lease.lease as i32).collect();
    let row = session
        .row(&sql::SETTLE_DONE, &[&batch.worker.0, &settler, &number, &ids, &leases, &ttl, &keep])
        .await?;
    // It was applied already, or its worker has left or died.
    let Some(row) = row.filter(|row| row.get(0)) else { return replay(&mut session, batch).await };
    if row.get(2) {
        shared.admission.wake();
    }
    let fenced: Vec<i64> = row.get(1);
    Ok(Settled { fenced: fenced.into_iter().map(TaskId::from_raw).collect(), ..Settled::default() })
}

/// Tasks that the single statement did not find may be lost, asked to end, or steps of a workflow that their
/// worker did not name. They are looked up by id: the row decides, not the worker.
async fn settle_missing(
    shared: &Shared,
    batch: &SettleBatch,
    items: &[&SettleItem],
    mut settled: Settled,
) -> Result<Settled, Failure> {
    if settled.fenced.is_empty() {
        return Ok(settled);
    }
    let items: Vec<_> =
        items.iter().copied().filter(|item| settled.fenced.contains(&item.lease.id)).collect();
    let rest = settle_mixed(shared, batch, &items, &sql::SETTLE_REOPEN).await?;
    settled.fenced = rest.fenced;
    settled.lanes_ready.extend(rest.lanes_ready);
    settled.lanes_ready.sort_unstable();
    settled.lanes_ready.dedup();
    settled.next_due = settled.next_due.into_iter().chain(rest.next_due).min();
    Ok(settled)
}

/// The stored answer of a batch that was already applied. If the worker's registration has ended, everything
/// is lost.
async fn replay(session: &mut Session<'_>, batch: &SettleBatch) -> Result<Settled, Failure> {
    let settler = batch.settler_no as i32;
    let row = session.row(&sql::SETTLE_REPLAY, &[&batch.worker.0, &settler]).await?;
    let Some(row) = row.filter(|row| row.number(0) >= batch.batch_no) else {
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

/// Writes ends under the locks of their workflows. The worker has named the workflows; if the rows name more,
/// it begins again with those.
async fn settle_mixed(
    shared: &Shared,
    batch: &SettleBatch,
    items: &[&SettleItem],
    receipt: &'static Sql,
) -> Result<Settled, Failure> {
    let said = items.iter().filter_map(|item| item.gate.workflow.as_ref());
    let mut workflows: BTreeSet<String> = said.map(|name| name.as_str().to_owned()).collect();
    loop {
        match settle_under(shared, batch, items, receipt, &workflows).await? {
            Under::Settled(settled) => return Ok(settled),
            Under::Others(unsaid) => workflows.extend(unsaid),
        }
    }
}

/// What a batch did under the locks of some workflows.
enum Under {
    Settled(Settled),
    /// Nothing was written: the batch has steps of these workflows, too.
    Others(BTreeSet<String>),
}

async fn settle_under(
    shared: &Shared,
    batch: &SettleBatch,
    items: &[&SettleItem],
    first: &'static Sql,
    workflows: &BTreeSet<String>,
) -> Result<Under, Failure> {
    // A settlement that waits for the lock of a workflow uses another pool, so that other settlements do not
    // wait.
    let pool = if workflows.is_empty() { &shared.settles } else { &shared.gates };
    let mut session = pool.session().await?;
    let Some(begun) = Ends::of(items).begin(shared, &mut session, batch, first, workflows).await? else {
        session.rollback().await;
        return Ok(Under::Settled(replay(&mut session, batch).await?));
    };
    let Begun { held, mut ended, next_due } = begun;
    let leases = column(items, |item| item.lease);
    end_asked(shared, &mut session, batch.worker, &leases, &mut ended).await?;
    let unsaid: BTreeSet<_> = ended.workflows.difference(workflows).cloned().collect();
    if !unsaid.is_empty() {
        session.rollback().await;
        return Ok(Under::Others(unsaid));
    }
    ended.pass_on(shared, &mut session, &held).await?;
    let fenced: Vec<i64> =
        items.iter().map(|item| item.lease.id.raw()).filter(|id| !ended.tasks.contains(id)).collect();
    if !fenced.is_empty() {
        let (settler, number) = (batch.settler_no as i32, batch.batch_no as i64);
        session.query(&sql::SETTLE_FENCED, &[&batch.worker.0, &settler, &number, &fenced]).await?;
    }
    session.commit().await?;
    drop(session);
    if ended.needs_admission {
        shared.admission.wake();
    }
    Ok(Under::Settled(Settled {
        fenced: fenced.into_iter().map(TaskId::from_raw).collect(),
        lanes_ready: ended.lanes_ready,
        next_due,
        replayed: false,
    }))
}

/// When the next scheduled task is due.
pub(crate) async fn next_due(session: &mut Session<'_>) -> Result<Option<Timestamp>, Failure> {
    Ok(session.row(&sql::NEXT_DUE, &[]).await?.map(|row| row.time(0)))
}

/// Hands leases back inside the session's transaction, in the order of the tasks. Answers their lanes.
pub(crate) async fn hand_back(
    shared: &Shared,
    session: &mut Session<'_>,
    worker: WorkerId,
    leases: &[HeldLease],
) -> Result<Ended, Failure> {
    let held = workflow::lock(session, &workflows_of(leases)).await?;
    let leases = column(leases, |held| held.lease);
    let mut ended = Ended::default();
    if !leases.is_empty() {
        let (ids, numbers) =
            (column(&leases, |lease| lease.id.raw()), column(&leases, |lease| lease.lease as i32));
        let (hows, dues) = (vec![How::Release as i16; leases.len()], vec![None::<i64>; leases.len()]);
        let errors = vec![None::<&str>; leases.len()];
        let rows =
            session.query(&sql::SETTLE_STAY, &[&worker.0, &ids, &numbers, &hows, &dues, &errors]).await?;
        ended.add(&rows);
    }
    end_asked(shared, session, worker, &leases, &mut ended).await?;
    ended.pass_on(shared, session, &held).await?;
    Ok(ended)
}

/// A lease as the store has it, with the workflow of its task.
pub(crate) struct HeldLease {
    pub lease: LeaseRef,
    pub workflow: Option<String>,
}

/// The workflows of leases.
pub(crate) fn workflows_of(leases: &[HeldLease]) -> BTreeSet<String> {
    leases.iter().filter_map(|held| held.workflow.clone()).collect()
}

/// What was written.
#[derive(Default)]
pub(crate) struct Ended {
    pub tasks: HashSet<i64>,
    pub lanes_ready: Vec<LaneId>,
    pub needs_admission: bool,
    /// Workflows of all tasks whose attempts were ended.
    workflows: BTreeSet<String>,
    /// Steps that have ended.
    steps: Vec<StepEnd>,
    /// Jobs whose room was given back.
    jobs: BTreeSet<String>,
}

impl Ended {
    /// Notes rows of (task, lane, state, job, workflow, step). All statements that end attempts answer with
    /// them.
    pub(crate) fn add(&mut self, rows: &[Row]) {
        for row in rows {
            let (task, state): (i64, i16) = (row.get(0), row.get(2));
            let state = State::from_code(i64::from(state));
            self.tasks.insert(task);
            if state == Some(State::Ready) {
                self.lanes_ready.push(row.lane(1));
            }
            self.jobs.extend(row.get::<_, Option<String>>(3));
            let Some(workflow) = row.get::<_, Option<String>>(4) else { continue };
            self.workflows.insert(workflow.clone());
            if let Some(state) = state.filter(|state| state.is_ended()) {
                self.steps.push(StepEnd {
                    workflow,
                    task,
                    step: row.get(5),
                    has_failed: state != State::Done,
                });
            }
        }
    }

    /// Passes turns on: to the next steps under the locks of their workflows, and to the tasks that their
    /// jobs will choose.
    pub(crate) async fn pass_on(
        &mut self,
        shared: &Shared,
        session: &mut Session<'_>,
        held: &Held,
    ) -> Result<(), Failure> {
        if !self.steps.is_empty() {
            self.lanes_ready.extend(workflow::advance(shared, session, held, &self.steps).await?);
            self.lanes_ready.sort_unstable();
            self.lanes_ready.dedup();
            self.needs_admission = true;
        }
        if !self.jobs.is_empty() {
            admit::put_jobs(session, self.jobs.iter().map(String::as_str)).await?;
            self.needs_admission = true;
        }
        Ok(())
    }
}
