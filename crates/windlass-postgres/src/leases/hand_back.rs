//! Leases: hand-back, and what happens to the tasks of a worker that has left or died.
//!
//! A claim holds its worker's row until it commits. A claim that commits late could be missed by a
//! transaction that takes leases away. So such a transaction first locks that row against claims, and reads
//! the worker's tasks in the next statement.

use std::time::Duration;

use windlass_core::{
    Error, LaneId, LeaseRef, Result, WorkerId,
    crash::{self, Fate, Group, Victim},
    source::DutyReport,
    worker::{check_slots, not_live},
};

use crate::{
    connection::{
        error::Failure,
        options::Clock,
        pool::{Pool, Session},
        repeat::repeat,
        sync::Pause,
        values::{Cells, column, ms},
    },
    gates::{admit, job, workflow},
    settle::{self, Ended, HeldLease, ends::end_asked, next_due},
    shared::Shared,
    sql,
    wakeup::doorbell::numbers,
};

/// Leases that one transaction hands back.
pub(crate) const HAND_BACK_MAX: usize = 1_000;
/// How often a sweep looks at tombstones too.
const TOMBSTONES_EVERY: Duration = Duration::from_secs(30);
/// How long a sweep relies on a renewal that found no expired worker.
pub(crate) const NONE_EXPIRED_FOR: Duration = Duration::from_millis(2_500);

/// Sets how many slots a live worker has. Its next renewal tells the worker.
pub(crate) async fn set_slots(shared: &Shared, worker: WorkerId, slots: u32) -> Result<()> {
    check_slots(slots)?;
    let row = shared.pool.row(&sql::SET_WORKER_SLOTS, &[&worker.0, &(slots as i32)]).await?;
    let (is_set, is_known) = row.map_or((false, false), |row| (row.get(0), row.get(1)));
    match (is_set, is_known) {
        (true, _) => {
            // The window of jobs without a limit of their own depends on the number of slots.
            admit::worker_registered(shared).await;
            Ok(())
        }
        (false, true) => Err(Error::Conflict(not_live(worker))),
        (false, false) => Err(Error::NotFound(format!("worker {worker}"))),
    }
}

/// Ends a registration and hands back what it holds.
pub(crate) async fn retire(shared: &Shared, worker: WorkerId) -> Result<u64> {
    shared.offers.forget(worker, u64::MAX);
    shared.comparisons.forget(worker);
    let mut handed_back = 0;
    loop {
        let (n, is_last) = repeat(|| retire_some(shared, worker)).await?;
        handed_back += n;
        if is_last {
            break;
        }
    }
    // Only a hint: enqueues of this process must no longer take this worker for idle.
    let left = async { shared.doorbell.leave(&mut shared.duties.session().await?).await };
    if let Err(error) = left.await {
        tracing::debug!(%error, "the doorbell of a worker that left could not be disarmed");
    }
    job::lanes_became_dead(shared).await;
    Ok(handed_back)
}

async fn retire_some(shared: &Shared, worker: WorkerId) -> Result<(u64, bool), Failure> {
    let Some(mut session) = lock_worker(&shared.duties, worker).await? else { return Ok((0, true)) };
    let limit = HAND_BACK_MAX as i64;
    let rows = session.query(&sql::HELD, &[&worker.0, &0_i64, &i64::MAX, &limit]).await?;
    let leases: Vec<HeldLease> = rows.iter().map(held_lease).collect();
    let is_last = leases.len() < HAND_BACK_MAX;
    let ended = settle::hand_back(shared, &mut session, worker, &leases).await?;
    if is_last {
        session.query(&sql::END_WORKER, &[&worker.0]).await?;
    }
    session.commit().await?;
    tell(shared, &mut session, &ended.lanes_ready).await;
    Ok((ended.tasks.len() as u64, is_last))
}

/// Hands back the leases of one claim, and refuses the claim if it is still on its way.
pub(crate) async fn unclaim(shared: &Shared, worker: WorkerId, claim_no: u64) -> Result<u64> {
    shared.offers.forget(worker, claim_no);
    let claim_no = claim_no as i64;
    // On the pool of the claim, whose connection is closed: a duty that waits for a lock must not delay the
    // next claim.
    take_back(shared, &shared.claims, worker, claim_no, Some(claim_no.saturating_add(1))).await
}

/// Hands back what was leased under one number, by a claim or an offer that has ended.
pub(crate) async fn hand_back_claim(shared: &Shared, worker: WorkerId, claim_no: u64) -> Result<u64> {
    take_back(shared, &shared.duties, worker, claim_no as i64, None).await
}

/// Hands back the leases of one claim, under the worker's lock. The read under it goes by the claim's number,
/// so that its time does not depend on dead rows: renewals wait for that lock.
async fn take_back(
    shared: &Shared,
    pool: &Pool,
    worker: WorkerId,
    claim_no: i64,
    min_claim_no: Option<i64>,
) -> Result<u64> {
    repeat(|| async {
        let Some(mut session) = lock_worker(pool, worker).await? else { return Ok(0) };
        if let Some(number) = min_claim_no {
            session.query(&sql::RAISE_MIN_CLAIM_NO, &[&worker.0, &number]).await?;
        }
        let rows = session.query(&sql::HELD, &[&worker.0, &claim_no, &claim_no, &i64::MAX]).await?;
        let leases: Vec<HeldLease> = rows.iter().map(held_lease).collect();
        hand_back(shared, session, worker, &leases).await
    })
    .await
}

/// Opens a transaction that locks a worker's row; `None` if there is no such worker.
pub(crate) async fn lock_worker(pool: &Pool, worker: WorkerId) -> Result<Option<Session<'_>>, Failure> {
    let mut session = pool.session().await?;
    session.begin().await?;
    if session.row(&sql::LOCK_WORKER, &[&worker.0]).await?.is_none() {
        session.rollback().await;
        return Ok(None);
    }
    Ok(Some(session))
}

/// Hands leases back and ends the transaction that locks their worker's row.
pub(crate) async fn hand_back(
    shared: &Shared,
    mut session: Session<'_>,
    worker: WorkerId,
    leases: &[HeldLease],
) -> Result<u64, Failure> {
    let ended = settle::hand_back(shared, &mut session, worker, leases).await?;
    session.commit().await?;
    tell(shared, &mut session, &ended.lanes_ready).await;
    drop(session);
    if ended.needs_admission {
        admit::admit_after(shared).await;
    }
    Ok(ended.tasks.len() as u64)
}

pub(crate) fn held_lease(row: &tokio_postgres::Row) -> HeldLease {
    HeldLease { lease: lease_of(row), workflow: row.get(2) }
}

pub(crate) fn lease_of(row: &tokio_postgres::Row) -> LeaseRef {
    LeaseRef { id: row.task(0), lease: row.small(1) }
}

pub(crate) fn claim_of(row: &tokio_postgres::Row) -> u64 {
    row.number(3)
}

/// Tells this process that something is ready, and notifies another idle process. These are only hints, so a
/// failure is ignored.
pub(crate) async fn tell(shared: &Shared, session: &mut Session<'_>, lanes: &[LaneId]) {
    if lanes.is_empty() {
        return;
    }
    shared.tell_ready();
    let _ = shared.doorbell.notify_another(session, &numbers(lanes)).await;
}

/// Stores the progress of an attempt.
pub(crate) async fn progress(shared: &Shared, worker: WorkerId, lease: LeaseRef, text: &str) -> Result<()> {
    let number = lease.lease as i32;
    let row = shared.pool.row(&sql::PUT_PROGRESS, &[&lease.id.raw(), &number, &worker.0, &text]).await?;
    row.map(|_| ()).ok_or(Error::LeaseLost(lease.id))
}

/// Until when sweeps need not read.
pub(crate) struct Sweeps {
    /// A renewal found no expired worker. It looks as far ahead as sweeps rely on it.
    pub clean: Pause,
    tombstones: Pause,
}

impl Sweeps {
    pub(crate) fn new(clock: &Clock) -> Self {
        Self { clean: Pause::new(clock), tombstones: Pause::new(clock) }
    }
}

/// Takes the tasks of workers whose leases ran out, at most `limit`; each worker in a transaction of its own.
pub(crate) async fn expire_workers(shared: &Shared, limit: u32) -> Result<DutyReport> {
    let mut report = DutyReport::default();
    if !shared.sweeps.clean.is_over() {
        return Ok(report);
    }
    let tombstones = shared.sweeps.tombstones.turn(TOMBSTONES_EVERY);
    let since_outage = shared.since_outage().map(ms);
    let rows = shared.duties.query(&sql::EXPIRED_WORKERS, &[&tombstones, &since_outage]).await?;
    let workers: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
    let mut needs_admission = false;
    for worker in workers {
        let room = u64::from(limit).saturating_sub(report.moved) as usize;
        if room == 0 {
            report.more = true;
            break;
        }
        match repeat(|| expire_one(shared, WorkerId(worker), room)).await {
            Ok(swept) => {
                report.moved += swept.moved;
                report.more |= !swept.is_over;
                report.lanes_ready.extend(swept.lanes_ready);
                needs_admission |= swept.needs_admission;
                if swept.is_over {
                    shared.comparisons.forget(WorkerId(worker));
                }
                if swept.is_news {
                    report.workers.push(WorkerId(worker));
                }
            }
            // A worker whose tasks cannot be taken back must not stop the sweep of the others.
            Err(error @ Error::Invalid(_)) => {
                tracing::warn!(worker, %error, "the tasks of a dead worker could not be taken back");
            }
            Err(error) => return Err(error),
        }
    }
    if !report.workers.is_empty() {
        report.lanes_ready.extend(job::lanes_became_dead(shared).await.lanes_ready);
    } else if needs_admission {
        report.lanes_ready.extend(admit::admit_after(shared).await.lanes_ready);
    }
    report.lanes_ready.sort_unstable();
    report.lanes_ready.dedup();
    if report.moved > 0 {
        let mut session = shared.duties.session().await?;
        tell(shared, &mut session, &report.lanes_ready).await;
        report.next_due = next_due(&mut session).await?;
    }
    Ok(report)
}

#[derive(Default)]
struct Swept {
    moved: u64,
    is_over: bool,
    is_news: bool,
    needs_admission: bool,
    lanes_ready: Vec<LaneId>,
}

async fn expire_one(shared: &Shared, worker: WorkerId, room: usize) -> Result<Swept, Failure> {
    let mut session = shared.duties.session().await?;
    session.begin().await?;
    let Some(row) = session.row(&sql::LOCK_EXPIRED, &[&worker.0]).await? else {
        session.rollback().await;
        return Ok(Swept { is_over: true, ..Swept::default() });
    };
    let (was_ended, crowd): (bool, Option<i32>) = (row.get(0), row.get(1));
    let crowd = match crowd {
        Some(crowd) => crowd,
        None => session.row(&sql::COUNT_CROWD, &[&worker.0]).await?.map_or(0, |row| row.get(0)),
    };
    let most = i64::try_from(room).unwrap_or(i64::MAX).saturating_add(1);
    let rows = session.query(&sql::HELD, &[&worker.0, &0_i64, &i64::MAX, &most]).await?;
    let is_over = rows.len() <= room;
    let leases: Vec<HeldLease> = rows.iter().map(held_lease).take(room).collect();
    let ids = column(&leases, |held| held.lease.id.raw());
    let numbers = column(&leases, |held| held.lease.lease as i32);
    let (dead, groups) = judge(shared, rows.get(..leases.len()).unwrap_or_default(), crowd == 1);
    let mut swept = Swept { is_over, is_news: is_over && !was_ended, ..Swept::default() };
    if !leases.is_empty() {
        let held = workflow::lock(&mut session, &settle::workflows_of(&leases)).await?;
        let mut ended = Ended::default();
        ended.add(&session.query(&sql::CRASH, &[&worker.0, &ids, &numbers, &dead, &groups]).await?);
        let leases = column(&leases, |held| held.lease);
        end_asked(shared, &mut session, worker, &leases, &mut ended).await?;
        ended.pass_on(shared, &mut session, &held).await?;
        swept.moved = ended.tasks.len() as u64;
        swept.lanes_ready = ended.lanes_ready;
        swept.needs_admission = ended.needs_admission;
    }
    if is_over && !was_ended {
        session.query(&sql::END_WORKER, &[&worker.0]).await?;
    }
    session.commit().await?;
    Ok(swept)
}

/// What a crash makes of each task, as `crash.sql` takes it: whether it is dead, and the number of its group,
/// counted from one, negative if the task is alone in it.
fn judge(shared: &Shared, rows: &[tokio_postgres::Row], was_alone: bool) -> (Vec<bool>, Vec<Option<i32>>) {
    let victim = |row: &tokio_postgres::Row| Victim {
        id: lease_of(row).id,
        crashes: row.small(4),
        group: Group::from_stored(row.get(5)),
    };
    let victims: Vec<Victim> = rows.iter().map(victim).collect();
    let group = |fate: &Fate| match fate {
        Fate::Suspect { place, alone } => {
            let number = i32::try_from(place + 1).unwrap_or(i32::MAX);
            Some(if *alone { -number } else { number })
        }
        Fate::Again | Fate::Dead => None,
    };
    let fates = crash::judge(&victims, was_alone, &shared.rules);
    (fates.iter().map(|fate| *fate == Fate::Dead).collect(), fates.iter().map(group).collect())
}

/// Makes due tasks ready. On the connection of claims: the coordinator waits for it before it claims.
pub(crate) async fn promote_due(shared: &Shared, limit: u32) -> Result<DutyReport> {
    let rows = shared.claims.query(&sql::PROMOTE_DUE, &[&i64::from(limit)]).await?;
    let (held, ready): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row.get::<_, bool>(1));
    let mut lanes: Vec<LaneId> = ready.iter().map(|row| row.lane(0)).collect();
    let has_room = if held.is_empty() { DutyReport::default() } else { admit::admit(shared).await? };
    lanes.extend(has_room.lanes_ready);
    lanes.sort_unstable();
    lanes.dedup();
    let next = shared.claims.row(&sql::NEXT_DUE, &[]).await?;
    Ok(DutyReport {
        moved: rows.len() as u64,
        lanes_ready: lanes,
        next_due: next.as_ref().map(|row| row.time(0)),
        // Due and not taken: beyond the limit, or another process has locked it.
        more: rows.len() as u64 >= u64::from(limit) && next.is_some_and(|row| row.get(1)),
        ..DutyReport::default()
    })
}
