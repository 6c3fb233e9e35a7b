//! Admission: decides which tasks pass the gates of jobs and workflows.
//!
//! A transaction that changes something at a gate writes that to `gate_todo`, in the same transaction and
//! without a lock. A transaction that only gives room back needs no lock either. Admission alone hands out
//! room, in short transactions of its own: it locks the workflows, then the jobs, each in order. It reads
//! what it decides on in a statement after the last lock.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::sync::Notify;
use windlass_core::{LaneId, Result, Timestamp, source::DutyReport};

use crate::{
    connection::{conn::Param, error::Failure, pool::Session, repeat::repeat},
    gates::{job, turns::give_turns, workflow},
    leases::hand_back::tell,
    shared::{Shared, Weakly},
    sql::{self, Sql},
};

/// Rows of `gate_todo` that one transaction takes.
const TODO_MAX: i64 = 1_000;
/// Batches of settlements whose freed places one transaction passes on.
const FREED_MAX: i64 = 8;
/// Transactions of one call.
const PASSES_MAX: usize = 1_000;

/// The values of `gate_todo`.
pub(crate) const TODO_JOB: i16 = 0;
pub(crate) const TODO_WORKFLOW: i16 = 1;
const TODO_STARTED: i16 = 2;
// 4: an enqueue gives the limit of a job, which `job_make.sql` reads if the job is new.

/// The admission of one process: one runs at a time, and callers of one moment share it.
#[derive(Debug, Default)]
pub(crate) struct Admission {
    turn: tokio::sync::Mutex<()>,
    asked: AtomicU64,
    done: AtomicU64,
    wanted: Notify,
}

impl Admission {
    /// Has the background loop admit soon; the caller does not wait.
    pub(crate) fn wake(&self) {
        self.wanted.notify_one();
    }
}

/// Admits each time it is woken, until the store is closed.
pub(crate) async fn run(admission: Arc<Admission>, shared: Weakly) {
    loop {
        tokio::select! {
            () = admission.wanted.notified() => {}
            () = shared.closed() => return,
        }
        let Some(shared) = shared.upgrade() else { return };
        admit_after(&shared).await;
    }
}

/// Admits after a commit that needs it. The need is written durably, so a failure here is only a delay.
pub(crate) async fn admit_after(shared: &Shared) -> DutyReport {
    admit(shared).await.unwrap_or_else(|error| {
        tracing::debug!(%error, "admission failed; the next claim tries again");
        DutyReport::default()
    })
}

/// A worker has registered: held tasks of its lanes take part again. The jobs to look at are noted here, so
/// that the next claim sees them. The worker does not wait for the admission itself, because its lease runs
/// already.
pub(crate) async fn worker_registered(shared: &Shared) {
    job::note_held(shared).await;
    shared.admission.wake();
}

/// Admits for everything that `gate_todo` names.
pub(crate) async fn admit(shared: &Shared) -> Result<DutyReport> {
    let admission = &shared.admission;
    let mine = admission.asked.fetch_add(1, Ordering::AcqRel) + 1;
    let _turn = admission.turn.lock().await;
    if admission.done.load(Ordering::Acquire) >= mine {
        // Another caller's admission began after this call, and has ended.
        return Ok(DutyReport::default());
    }
    let upto = admission.asked.load(Ordering::Acquire);
    let report = admit_all(shared).await?;
    admission.done.store(upto, Ordering::Release);
    Ok(report)
}

async fn admit_all(shared: &Shared) -> Result<DutyReport> {
    let mut report = DutyReport::default();
    for _ in 0..PASSES_MAX {
        let Some(admitted) = repeat(|| admit_some(shared)).await? else { break };
        follow_up(shared, &admitted, &mut report).await?;
    }
    tell_of(shared, &mut report).await?;
    Ok(report)
}

/// Does what must follow a transaction that gave turns, once it is committed.
pub(crate) async fn follow_up(shared: &Shared, admitted: &Admitted, report: &mut DutyReport) -> Result<()> {
    report.moved += admitted.moved;
    report.next_due = report.next_due.into_iter().chain(admitted.next_due).min();
    report.lanes_ready.extend(&admitted.lanes_ready);
    admitted.log();
    if admitted.has_parked {
        // A worker may have begun to serve the lane before this was committed.
        unpark(shared).await?;
    }
    for (name, up_to, reason) in &admitted.to_cancel {
        job::cancel_tasks(shared, name, *up_to, reason, &mut report.lanes_ready).await?;
    }
    Ok(())
}

/// Tells the workers what became ready and what is due.
pub(crate) async fn tell_of(shared: &Shared, report: &mut DutyReport) -> Result<()> {
    report.lanes_ready.sort_unstable();
    report.lanes_ready.dedup();
    if !report.lanes_ready.is_empty() {
        tell(shared, &mut shared.gates.session().await?, &report.lanes_ready).await;
    }
    if let Some(due) = report.next_due {
        shared.subscribers.tell_due(due);
    }
    Ok(())
}

/// Lets held tasks of lanes that have a worker again take part.
pub(crate) async fn unpark(shared: &Shared) -> Result<(), Failure> {
    let mut session = shared.gates.session().await?;
    while session.row(&sql::UNPARK, &[&TODO_MAX]).await?.is_some_and(|row| row.get::<_, i64>(0) > 0) {}
    Ok(())
}

/// What one transaction did; reported after its commit.
#[derive(Default)]
pub(crate) struct Admitted {
    pub moved: u64,
    pub lanes_ready: Vec<LaneId>,
    pub next_due: Option<Timestamp>,
    /// Jobs whose waiting tasks must be cancelled, up to a task, and why.
    pub to_cancel: Vec<(String, i64, String)>,
    /// Tasks of lanes without a live worker were put aside.
    pub has_parked: bool,
    /// Jobs that reached their limit, or left it.
    pub edges: Vec<(String, bool, u32)>,
}

impl Admitted {
    pub(crate) fn due(&mut self, at: Timestamp) {
        self.next_due = Some(self.next_due.map_or(at, |known| known.min(at)));
    }

    /// Logs one line for each change, not for each look.
    fn log(&self) {
        for (job, is_at_limit, limit) in &self.edges {
            if *is_at_limit {
                tracing::info!(job, limit, "job reached its limit");
            } else {
                tracing::info!(job, limit, "job left its limit");
            }
        }
    }
}

/// One transaction; `None` if `gate_todo` is empty.
async fn admit_some(shared: &Shared) -> Result<Option<Admitted>, Failure> {
    let mut session = shared.gates.session().await?;
    let take: [(&'static Sql, &[Param<'_>]); 2] =
        [(&sql::TODO_TAKE, &[&TODO_MAX]), (&sql::FREED_TAKE, &[&FREED_MAX])];
    let mut taken = session.begin_with(&take).await?.into_iter();
    let (rows, freed) = (taken.next().unwrap_or_default(), taken.next().unwrap_or_default());
    if rows.is_empty() && freed.is_empty() {
        session.rollback().await;
        return Ok(None);
    }
    let mut todo = Todo::default();
    for row in &freed {
        let (jobs, places): (Vec<String>, Vec<i64>) = (row.get(0), row.get(1));
        for (job, n) in jobs.into_iter().zip(places) {
            *todo.freed.entry(job).or_default() += n;
        }
    }
    for row in &rows {
        let name: String = row.get(1);
        match row.get::<_, i16>(0) {
            TODO_WORKFLOW => todo.workflows.insert(name),
            TODO_STARTED => todo.started.insert(name.clone()) | todo.jobs.insert(name),
            _ => todo.jobs.insert(name),
        };
    }
    let mut admitted = Admitted::default();
    if !todo.workflows.is_empty() {
        let names: Vec<&str> = todo.workflows.iter().map(String::as_str).collect();
        let jobs = workflow::admit(&mut session, &names, &mut admitted).await?;
        todo.jobs.extend(jobs);
    }
    give_turns(shared, &mut session, &todo, &mut admitted).await?;
    session.commit().await?;
    Ok(Some(admitted))
}

/// The work of one transaction.
#[derive(Default)]
pub(crate) struct Todo {
    pub jobs: BTreeSet<String>,
    workflows: BTreeSet<String>,
    pub started: BTreeSet<String>,
    /// Places that became free. Each is passed on to one task.
    pub freed: BTreeMap<String, i64>,
}

impl Todo {
    /// The work for one job.
    pub(crate) fn job(name: &str) -> Self {
        Self { jobs: BTreeSet::from([name.to_owned()]), ..Self::default() }
    }
}

/// Notes in `gate_todo` that admission must look at these jobs.
pub(crate) async fn put_jobs<'a>(
    session: &mut Session<'_>,
    names: impl Iterator<Item = &'a str>,
) -> Result<(), Failure> {
    let names: Vec<&str> = names.collect();
    if names.is_empty() {
        return Ok(());
    }
    let kinds = vec![TODO_JOB; names.len()];
    session.query(&sql::TODO_PUT, &[&kinds, &names]).await?;
    Ok(())
}
