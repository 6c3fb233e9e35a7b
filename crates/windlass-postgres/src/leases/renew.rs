//! Renewals: those of one moment share a statement, so that a server which relays for a thousand workers does
//! not send a thousand. An idle store renews at once, with a statement that waits for the one row.
//!
//! ```text
//!   callers ──► line ──► fresh, all at once ──► answered
//!                           │ locked by another session, or refused
//!                           ▼
//!                         apart, one group after each fresh group ──► answered
//! ```
//!
//! The row of a worker is locked while the worker claims together with others, or while it is retired. A
//! group does not wait for such a row: its renewal goes apart, alone, and waits. If the server refuses a
//! group for its values, the group is halved until the worker at fault is alone. Callers only wait for an
//! answer, so a caller that is dropped stops no other renewal.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    sync::Arc,
};

use tokio::sync::oneshot;
use tokio_postgres::Row;
use windlass_core::{Error, LeaseRef, Result, TaskId, WorkerId, WorkerReport, source::Renewed};

use crate::{
    connection::{
        calls::Calls,
        conn::Param,
        pool::closed,
        values::{column, ms},
    },
    leases::{epoch, hand_back::NONE_EXPIRED_FOR},
    shared::{Shared, Weakly},
    sql::{self, Sql},
    wakeup::doorbell::ARMED_FOR,
};

/// Workers that one statement renews: it holds their rows until it ends.
const GROUP_MAX: usize = 1_000;

/// Where an answer goes.
type Answer = oneshot::Sender<Result<Renewed>>;

/// What a caller brought.
struct Call {
    worker: WorkerId,
    report: WorkerReport,
    answer: Answer,
}

/// Callers whose leases are renewed together.
pub(crate) struct Renewals(Calls<Call>);

impl Renewals {
    pub(crate) fn new() -> Self {
        Self(Calls::new("renewals"))
    }

    /// Prolongs a lease. A dropped call may still take effect.
    pub(crate) async fn add(&self, worker: WorkerId, report: WorkerReport) -> Result<Renewed> {
        let (answer, answered) = oneshot::channel();
        self.0.add(Call { worker, report, answer })?;
        answered.await.unwrap_or_else(|_| Err(closed()))
    }
}

/// A worker whose renewal was asked for, and the callers that wait for it.
struct Asked {
    /// The report of the last caller.
    report: WorkerReport,
    answers: Vec<Answer>,
}

impl Asked {
    fn is_awaited(&self) -> bool {
        self.answers.iter().any(|answer| !answer.is_closed())
    }

    fn answer(self, renewed: &Result<Renewed>) {
        for answer in self.answers {
            let _ = answer.send(renewed.clone());
        }
    }
}

/// Workers that are renewed together, each of them once.
type Group = BTreeMap<WorkerId, Asked>;

fn group(calls: Vec<Call>) -> Group {
    let mut group = Group::new();
    for Call { worker, report, answer } in calls {
        let asked = group
            .entry(worker)
            .or_insert_with(|| Asked { report: WorkerReport::default(), answers: Vec::new() });
        asked.report = report;
        asked.answers.push(answer);
    }
    group
}

/// Renews the waiting workers until the store is closed.
pub(crate) async fn run(renewals: Arc<Renewals>, shared: Weakly) {
    let calls = &renewals.0;
    let _closes = calls.closes();
    let mut apart: VecDeque<Group> = VecDeque::new();
    loop {
        let fresh = group(calls.take(|calls| calls.len().min(GROUP_MAX)));
        if fresh.is_empty() && apart.is_empty() {
            tokio::select! {
                () = calls.arrived() => {}
                () = shared.closed() => break,
            }
            continue;
        }
        let Some(shared) = shared.upgrade() else { break };
        // A group that goes apart may wait for a lock: so only one of them runs before the next fresh group.
        for group in [Some(fresh), apart.pop_front()].into_iter().flatten() {
            apart.extend(serve(&shared, group).await);
        }
    }
}

/// Renews a group; answers with the groups that must be renewed apart from each other.
async fn serve(shared: &Shared, mut group: Group) -> Vec<Group> {
    group.retain(|_, asked| asked.is_awaited());
    if group.len() < 2 {
        if let Some((worker, asked)) = group.pop_first() {
            alone(shared, worker, asked).await;
        }
        return Vec::new();
    }
    let reports: Vec<_> = group.iter().map(|(worker, asked)| (*worker, &asked.report)).collect();
    match renew(shared, &sql::RENEW_MANY, &reports).await {
        Ok(answers) => answers.tell(group),
        // Nothing was written. A bad report of one worker must fail only that worker.
        Err(Error::Invalid(_)) => {
            let middle = group.keys().nth(group.len() / 2).copied();
            let later = middle.map(|middle| group.split_off(&middle)).unwrap_or_default();
            vec![group, later]
        }
        // Each of them would have failed in the same way alone.
        Err(error) => {
            let error = Err(error);
            for asked in group.into_values() {
                asked.answer(&error);
            }
            Vec::new()
        }
    }
}

/// Renews one worker. It may wait for the worker's row. Once every caller has stopped waiting, the renewal is
/// given up with its connection, so that it delays no other renewal.
async fn alone(shared: &Shared, worker: WorkerId, mut asked: Asked) {
    let Asked { report, answers } = &mut asked;
    let abandoned = async {
        for answer in answers {
            answer.closed().await;
        }
    };
    let reports = [(worker, &*report)];
    let answers = tokio::select! {
        answers = renew(shared, &sql::RENEW, &reports) => answers,
        () = abandoned => return,
    };
    let renewed = answers.and_then(|mut all| all.renewed.remove(&worker).ok_or(Error::WorkerExpired));
    asked.answer(&renewed);
}

async fn renew(
    shared: &Shared,
    statement: &'static Sql,
    reports: &[(WorkerId, &WorkerReport)],
) -> Result<Answers> {
    let params: &[Param<'_>] = &[
        &column(reports, |(worker, _)| worker.0),
        &column(reports, |(_, report)| report.available as i32),
        &column(reports, |(_, report)| report.in_flight as i32),
        &column(reports, |(_, report)| report.draining),
        &shared.doorbell.listener,
        &ms(ARMED_FOR),
        &column(reports, |(_, report)| report.memory_usage),
        &column(reports, |(_, report)| report.factor),
        &column(reports, |(_, report)| report.reason.as_str()),
        &column(reports, |(_, report)| report.counts.to_stored()),
    ];
    let row = shared.renewals.row(statement, params).await?;
    let row =
        row.ok_or_else(|| Error::Unknown("the server did not say which worker it renewed".to_owned()))?;
    let answers = Answers::of(&row, epoch_of(shared, row.get(10)).await);
    if !answers.renewed.is_empty() {
        note(shared, row.get(0), row.get(1), row.get(9));
    }
    Ok(answers)
}

/// The epoch of leases. If a crash made the server forget it, the next one begins here. If that fails, the
/// worker compares its leases all the same, because it is not told the epoch that it had.
async fn epoch_of(shared: &Shared, epoch: Option<i32>) -> Option<u32> {
    match epoch {
        Some(epoch) => {
            shared.epoch.set(epoch as u32);
            Some(epoch as u32)
        }
        None => epoch::begin_if_forgotten(shared).await.ok(),
    }
}

/// Keeps what a renewal read besides.
fn note(shared: &Shared, is_armed: bool, one_expires: bool, offer: Option<i64>) {
    shared.doorbell.renewed(is_armed);
    shared.offers.renewed(offer.map(|claim_no| claim_no as u64));
    if one_expires {
        shared.sweeps.clean.end();
    } else {
        shared.sweeps.clean.begin(NONE_EXPIRED_FOR);
    }
}

/// What the server said of a group.
struct Answers {
    renewed: HashMap<WorkerId, Renewed>,
    /// Registered workers whose rows were locked by another session.
    held: HashSet<WorkerId>,
}

impl Answers {
    fn of(row: &Row, epoch: Option<u32>) -> Self {
        let (workers, slots): (Vec<i64>, Vec<i32>) = (row.get(2), row.get(3));
        let renewed = |slots: i32| Renewed { cancels: Vec::new(), slots: Some(slots as u32), epoch };
        let mut renewed: HashMap<WorkerId, Renewed> = workers
            .into_iter()
            .zip(slots)
            .map(|(worker, slots)| (WorkerId(worker), renewed(slots)))
            .collect();
        let held: Vec<i64> = row.get(4);
        let (workers, ids): (Vec<i64>, Vec<i64>) = (row.get(5), row.get(6));
        let (leases, reasons): (Vec<i32>, Vec<String>) = (row.get(7), row.get(8));
        let lease = |(id, lease): (i64, i32)| LeaseRef { id: TaskId::from_raw(id), lease: lease as u32 };
        let leases = ids.into_iter().zip(leases).map(lease);
        for (worker, cancel) in workers.into_iter().zip(leases.zip(reasons)) {
            if let Some(renewed) = renewed.get_mut(&WorkerId(worker)) {
                renewed.cancels.push(cancel);
            }
        }
        Self { renewed, held: held.into_iter().map(WorkerId).collect() }
    }

    /// Answers all callers except those whose workers' rows were locked. Of those workers, one goes alone and
    /// waits; the others go together again after it, because most often one claim locked all of the rows.
    fn tell(mut self, group: Group) -> Vec<Group> {
        let mut held = Group::new();
        for (worker, asked) in group {
            match self.renewed.remove(&worker) {
                Some(renewed) => asked.answer(&Ok(renewed)),
                None if self.held.contains(&worker) => {
                    held.insert(worker, asked);
                }
                None => asked.answer(&Err(Error::WorkerExpired)),
            }
        }
        let Some(first) = held.pop_first() else { return Vec::new() };
        vec![Group::from([first]), held]
    }
}
