//! Leases: registration, hand-back, and the tasks of dead workers.

use std::collections::HashSet;

use rusqlite::params;
use windlass_core::{
    Error, LaneId, LeaseRef, Name, NewWorker, State, WorkerId,
    crash::{self, Fate, Group, Victim},
    source::{DutyReport, Reconciled},
    worker::{check_slots, not_live},
};

use crate::{
    connection::tx::{Step, Tx, disagree},
    gates::admit,
    settle::ends::Ending,
    sql,
};

/// Which process a worker runs in.
#[derive(Debug, Clone)]
pub(crate) enum Home {
    /// The process that has the store open.
    Here,
    /// Another process, connected through a server.
    Elsewhere {
        /// The caller that registered it.
        owner: Option<String>,
    },
}

/// Stores a worker. Its lease starts with the commit; the lease of a remote worker outlives this process.
pub(crate) fn register(tx: &mut Tx<'_>, worker: &NewWorker, home: Home) -> Step<WorkerId> {
    let (is_remote, owner) = match home {
        Home::Here => (false, None),
        Home::Elsewhere { owner } => (true, owner),
    };
    tx.sql(sql::INSERT_WORKER)?.execute(params![
        worker.host,
        worker.pid,
        worker.version,
        names_to_stored(&worker.kinds),
        names_to_stored(&worker.queues),
        worker.slots,
        i64::try_from(worker.lease_ttl.as_millis()).unwrap_or(i64::MAX),
        tx.now.as_ms(),
        is_remote,
        owner
    ])?;
    let id = WorkerId(tx.conn.last_insert_rowid());
    admit::change_fleet(tx, |memory| memory.add_worker(id, admit::service(worker)))?;
    admit::give_turns(tx)?;
    tx.effects.workers_started.push((id, worker.clone()));
    Ok(id)
}

/// Ends a registration and hands back its tasks.
pub(crate) fn retire(tx: &mut Tx<'_>, worker: WorkerId) -> Step<u64> {
    let leases = held_by(tx, worker, |_, _| true);
    let handed_back = hand_back(tx, worker, &leases)?;
    end_worker(tx, worker)?;
    admit::give_turns(tx)?;
    Ok(handed_back)
}

/// Sets how many slots a live worker has. Its next renewal tells it.
pub(crate) fn set_slots(tx: &mut Tx<'_>, worker: WorkerId, slots: u32) -> Step<()> {
    check_slots(slots)?;
    if !tx.leases.is_live(worker, tx.mono) {
        let is_known = tx.sql(sql::HAS_WORKER)?.query_row([worker.0], |row| row.get::<_, bool>(0))?;
        let unknown = || Error::NotFound(format!("worker {worker}"));
        return Err(if is_known { Error::Conflict(not_live(worker)) } else { unknown() }.into());
    }
    tx.sql(sql::SET_WORKER_SLOTS)?.execute((worker.0, slots))?;
    admit::change_fleet(tx, |memory| memory.set_slots(worker, slots))?;
    admit::give_turns(tx)?;
    tx.effects.slots_set.push((worker, slots));
    Ok(())
}

/// Hands back the tasks of one claim, and refuses that claim if it arrives later.
pub(crate) fn unclaim(tx: &mut Tx<'_>, worker: WorkerId, claim_no: u64) -> Step<u64> {
    let Some(entry) = tx.memory.worker_mut(worker) else { return Ok(0) };
    entry.min_claim_no = entry.min_claim_no.max(claim_no.saturating_add(1));
    let min_claim_no = entry.min_claim_no as i64;
    tx.sql(sql::RAISE_MIN_CLAIM_NO)?.execute((worker.0, min_claim_no))?;
    let leases = held_by(tx, worker, |_, held_claim_no| held_claim_no == claim_no);
    let handed_back = hand_back(tx, worker, &leases)?;
    admit::give_turns(tx)?;
    Ok(handed_back)
}

/// Hands back tasks of the worker that its list does not contain; returns those of the list that it does not
/// hold.
pub(crate) fn reconcile(
    tx: &mut Tx<'_>,
    worker: WorkerId,
    up_to_claim_no: u64,
    in_flight: &[LeaseRef],
) -> Step<Reconciled> {
    let named: HashSet<LeaseRef> = in_flight.iter().copied().collect();
    let leases = held_by(tx, worker, |lease, claim_no| claim_no <= up_to_claim_no && !named.contains(&lease));
    let held = tx.memory.worker(worker).map(|worker| &worker.held);
    let is_held =
        |lease: LeaseRef| held.and_then(|held| held.get(&lease.id)).is_some_and(|it| it.lease == lease.lease);
    let lost = Reconciled::new(0, in_flight, is_held);
    let handed_back = hand_back(tx, worker, &leases)?;
    admit::give_turns(tx)?;
    Ok(Reconciled { handed_back, ..lost })
}

/// Stores the progress of an attempt.
pub(crate) fn progress(tx: &mut Tx<'_>, worker: WorkerId, lease: LeaseRef, progress: &str) -> Step<()> {
    let held = tx.memory.worker(worker).and_then(|worker| worker.held.get(&lease.id));
    if held.is_none_or(|held| held.lease != lease.lease) {
        return Err(Error::LeaseLost(lease.id).into());
    }
    let changed = tx.sql(sql::PUT_PROGRESS)?.execute((progress, lease.id.raw(), lease.lease, worker.0))?;
    if changed == 1 { Ok(()) } else { Err(disagree("a running task")) }
}

/// Takes the tasks of workers whose leases have expired, at most `limit`.
pub(crate) fn expire_workers(tx: &mut Tx<'_>, limit: u32) -> Step<DutyReport> {
    let expired = tx.leases.expired(tx.mono);
    take_from_dead(tx, &expired, limit)
}

/// Takes the tasks of dead workers: each counts a crash.
pub(crate) fn take_from_dead(tx: &mut Tx<'_>, workers: &[WorkerId], limit: u32) -> Step<DutyReport> {
    let mut report = DutyReport::default();
    let mut lanes: Vec<LaneId> = Vec::new();
    for worker in workers {
        let room = u64::from(limit).saturating_sub(report.moved) as usize;
        let mut leases = held_by(tx, *worker, |_, _| true);
        report.more |= leases.len() > room;
        let is_last = leases.len() <= room;
        // Recorded once: later calls for the same worker must see the size of the whole crowd, not of the
        // rest.
        let crowd = tx.memory.worker_mut(*worker).map_or(0, |dead| *dead.crowd.get_or_insert(leases.len()));
        leases.truncate(room);
        for (lease, end) in judge(tx, *worker, &leases, crowd == 1) {
            lanes.extend(end_lease(tx, *worker, lease, end)?);
            report.moved += 1;
        }
        if is_last {
            end_worker(tx, *worker)?;
            report.workers.push(*worker);
        }
    }
    admit::give_turns(tx)?;
    lanes.extend(&tx.touched.lanes_ready);
    lanes.sort_unstable();
    lanes.dedup();
    report.lanes_ready = lanes;
    report.next_due = tx.next_due()?;
    Ok(report)
}

/// Decides what the crash means for each task. Group numbers come from the same sequence as places in the
/// ready line.
fn judge(tx: &mut Tx<'_>, worker: WorkerId, leases: &[LeaseRef], was_alone: bool) -> Vec<(LeaseRef, End)> {
    let Some(dead) = tx.memory.worker(worker) else { return Vec::new() };
    let victims: Vec<Victim> = leases
        .iter()
        .filter_map(|lease| dead.held.get(&lease.id).map(|held| (lease.id, held)))
        .map(|(id, held)| Victim { id, crashes: held.crashes, group: held.group })
        .collect();
    let fates = crash::judge(&victims, was_alone, &tx.options.rules);
    let numbers: Vec<i64> = (0..crash::groups(&fates)).map(|_| tx.memory.next_ready_seq()).collect();
    let end = |fate: Fate| match fate {
        Fate::Again => End::Crash(Group::default()),
        Fate::Suspect { place, alone } => {
            End::Crash(Group::new(numbers.get(place).copied().unwrap_or(0), alone))
        }
        Fate::Dead => End::CrashOut,
    };
    leases.iter().copied().zip(fates.into_iter().map(end)).collect()
}

/// Leases of a worker, oldest task first, so that the tasks return to the line in their old order.
pub(crate) fn held_by(
    tx: &Tx<'_>,
    worker: WorkerId,
    wanted: impl Fn(LeaseRef, u64) -> bool,
) -> Vec<LeaseRef> {
    let Some(worker) = tx.memory.worker(worker) else { return Vec::new() };
    let mut leases: Vec<LeaseRef> = worker
        .held
        .iter()
        .map(|(id, held)| (held.lease_of(*id), held.claim_no))
        .filter(|(lease, claim_no)| wanted(*lease, *claim_no))
        .map(|(lease, _)| lease)
        .collect();
    leases.sort_unstable_by_key(|lease| lease.id);
    leases
}

fn hand_back(tx: &mut Tx<'_>, worker: WorkerId, leases: &[LeaseRef]) -> Step<u64> {
    for lease in leases {
        end_lease(tx, worker, *lease, End::HandBack)?;
    }
    Ok(leases.len() as u64)
}

/// Why the store ends a lease without a settlement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    HandBack,
    /// Counts a crash; the task runs again, as a member of a group if it is now a suspect.
    Crash(Group),
    /// The task crashed alone, and too often.
    CrashOut,
}

/// Ends one lease; returns the lane if its task is ready again.
fn end_lease(tx: &mut Tx<'_>, worker: WorkerId, lease: LeaseRef, end: End) -> Step<Option<LaneId>> {
    let Some(held) = tx.memory.take(worker, lease) else { return Ok(None) };
    let ending = Ending { worker, id: lease.id, held };
    if let Some(reason) = &ending.held.cancel {
        // A cancellation was requested, and the attempt has ended without success: cancel the task.
        ending.leave(tx, State::Cancelled, Some(reason), None)?;
        return Ok(None);
    }
    let state = match end {
        End::HandBack => ending.hand_back(tx)?,
        End::Crash(group) => ending.crash(tx, group)?,
        End::CrashOut => ending.crash_out(tx)?,
    };
    Ok((state == State::Ready).then_some(ending.held.lane))
}

/// Marks a registration as ended; its row stays as a tombstone.
fn end_worker(tx: &mut Tx<'_>, worker: WorkerId) -> Step<()> {
    // Empty after a restart: reports are kept in memory only.
    let (renewed_at, report) = tx.leases.last_report(worker).unwrap_or_default();
    let (usage, factor) = (report.memory_usage, report.factor);
    tx.sql(sql::END_WORKER)?.execute(params![
        worker.0,
        tx.now.as_ms(),
        renewed_at.as_ms(),
        usage,
        factor,
        report.reason,
        report.counts.to_stored()
    ])?;
    admit::change_fleet(tx, |memory| memory.end_worker(worker))?;
    tx.effects.workers_ended.push(worker);
    Ok(())
}

fn names_to_stored(names: &[Name]) -> String {
    serde_json::to_string(names).unwrap_or_else(|_| "[]".to_owned())
}

/// The names of a stored list.
pub(crate) fn names_from_stored(text: &str) -> Vec<Name> {
    serde_json::from_str(text).unwrap_or_default()
}
