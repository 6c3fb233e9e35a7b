//! Suspects of crashes: which group a worker may take, and which suspects are set aside meanwhile. The
//! decisions are in [`windlass_core::crash`].

use std::collections::{BTreeMap, HashSet};

use rusqlite::params;
use windlass_core::{
    Demand, LaneId, Name, State, TaskId, Timestamp, WorkerId,
    crash::{self, Group, HeldGroup, Turn, is_suspect},
};

use crate::{
    claim::{Taken, hold, read_rows},
    connection::tx::{Step, Tx, disagree},
    gates::{admit, held_line, job::optional_name},
    memory::{Held, Waiting},
    sql,
};

/// A suspect that waits for a worker.
struct Suspect {
    lane: LaneId,
    state: State,
    group: Group,
    job: Option<Name>,
    task: Waiting,
}

/// Which suspects a worker may take, given those that it holds.
pub(crate) fn turn_of(tx: &Tx<'_>, worker: WorkerId) -> Turn {
    let Some(worker) = tx.memory.worker(worker) else { return Turn::Isolated };
    if worker.suspects == 0 {
        return Turn::Next { is_empty: worker.held.is_empty() };
    }
    // By group, so that a thousand tasks of one group count once.
    let mut groups: BTreeMap<Group, (u32, Timestamp)> = BTreeMap::new();
    for held in worker.held.values().filter(|held| is_suspect(held.crashes)) {
        let until = crash::quiet_until(held.claimed_at, held.crashes);
        let (crashes, quiet_until) = groups.entry(held.group).or_insert((held.crashes, until));
        (*crashes, *quiet_until) = ((*crashes).max(held.crashes), (*quiet_until).max(until));
    }
    let groups: Vec<HeldGroup> = groups
        .into_iter()
        .map(|(group, (crashes, quiet_until))| HeldGroup { group, crashes, quiet_until })
        .collect();
    crash::turn(&groups, worker.held.len(), tx.now, &tx.options.rules)
}

/// Whether suspects of a lane wait for a worker.
pub(crate) fn has_waiting(tx: &Tx<'_>, lane: LaneId) -> bool {
    tx.memory.lane(lane).is_some_and(|entry| entry.suspects + entry.aside > 0)
}

/// Suspects in open lanes of a demand.
fn waiting(tx: &Tx<'_>, demand: &Demand) -> Step<Vec<Suspect>> {
    let mut found = Vec::new();
    for lane in demand.lanes.iter().copied() {
        if !has_waiting(tx, lane) || tx.memory.lane(lane).is_none_or(|entry| entry.paused) {
            continue;
        }
        let mut statement = tx.sql(sql::WAITING_SUSPECTS)?;
        let mut rows = statement.query([lane.0])?;
        while let Some(row) = rows.next()? {
            let (id, crashes) = (TaskId::from_raw(row.get(0)?), row.get(2)?);
            found.push(Suspect {
                lane,
                state: State::from_code(row.get(3)?).unwrap_or(State::Dead),
                group: Group::from_stored(row.get(1)?),
                job: optional_name(row, 4)?,
                task: Waiting { id, priority: row.get(5)?, crashes },
            });
        }
    }
    Ok(found)
}

/// The groups from which a demand may take tasks.
fn groups_of(tx: &Tx<'_>, demand: &Demand, waiting: &[Suspect]) -> Vec<Group> {
    let groups: Vec<_> = waiting.iter().map(|suspect| (suspect.group, suspect.task.crashes)).collect();
    turn_of(tx, demand.worker).choose(&groups, &tx.options.rules)
}

/// Puts suspects with a job back into its line if their group is next, and sets them aside if their group
/// must wait.
pub(crate) fn stand_aside(tx: &mut Tx<'_>, demands: &[Demand]) -> Step<()> {
    let has_some = |demand: &&Demand| demand.n > 0 && demand.lanes.iter().any(|lane| has_waiting(tx, *lane));
    let demands: Vec<&Demand> = demands.iter().filter(has_some).collect();
    let (mut next, mut seen) = (Vec::new(), HashSet::new());
    let mut suspects = Vec::new();
    for demand in demands {
        let waiting = waiting(tx, demand)?;
        next.extend(groups_of(tx, demand, &waiting));
        suspects.extend(
            waiting.into_iter().filter(|suspect| suspect.job.is_some() && seen.insert(suspect.task.id)),
        );
    }
    if suspects.is_empty() {
        return Ok(());
    }
    let running = running_groups(tx);
    suspects.sort_by_key(|suspect| suspect.task.id);
    for suspect in suspects {
        let Some(job) = &suspect.job else { continue };
        let is_next = next.contains(&suspect.group);
        if suspect.state == State::Held && is_next {
            held_line::come_back(tx, job, suspect.lane, suspect.task)?;
        } else if suspect.state == State::Ready && !is_next && !running.contains(&suspect.group) {
            held_line::stand_aside(tx, job, suspect.lane, &suspect.task)?;
        }
    }
    admit::give_turns(tx)
}

/// Groups of which a worker runs a task.
fn running_groups(tx: &Tx<'_>) -> HashSet<Group> {
    let workers = tx.memory.worker_ids().into_iter().filter_map(|worker| tx.memory.worker(worker));
    let held = workers.filter(|worker| worker.suspects > 0).flat_map(|worker| worker.held.values());
    held.filter(|held| is_suspect(held.crashes)).map(|held| held.group).collect()
}

/// Takes at most `wanted` suspects of the group that is next for the worker (POISON-CONTAINED). Returns
/// whether one of them must run alone on the worker.
pub(crate) fn take(tx: &mut Tx<'_>, demand: &Demand, wanted: usize, taken: &mut Vec<Taken>) -> Step<bool> {
    let lanes: Vec<LaneId> = demand.lanes.iter().copied().filter(|lane| has_waiting(tx, *lane)).collect();
    if lanes.is_empty() {
        return Ok(false);
    }
    let groups = groups_of(tx, demand, &waiting(tx, demand)?);
    let mut found: Vec<(Taken, Held)> = Vec::new();
    for lane in lanes {
        if tx.memory.lane(lane).is_none_or(|entry| entry.paused) {
            continue;
        }
        for group in &groups {
            let mut statement = tx.sql(sql::CLAIM_SUSPECT)?;
            let mut rows = statement.query((lane.0, group.to_stored(), wanted as i64))?;
            found.extend(read_rows(tx, demand, lane, &mut rows)?);
        }
    }
    found.sort_by_key(|(taken, _)| (std::cmp::Reverse(taken.priority), taken.ready_seq));
    let rules = &tx.options.rules;
    let is_last = |held: &Held| crash::is_last_chance(held.crashes, held.group, rules);
    let is_alone = found.first().is_some_and(|(_, held)| is_last(held));
    found.truncate(if is_alone { 1 } else { wanted });
    for (suspect, held) in found {
        let (id, lane) = (suspect.task.id, held.lane);
        let changed = tx.sql(sql::CLAIM_TAKE_ONE)?.execute(params![
            demand.worker.0,
            demand.claim_no as i64,
            tx.now.as_ms(),
            id.raw(),
            tx.memory.epoch.0
        ])?;
        if changed != 1 {
            return Err(disagree("a suspect"));
        }
        hold(tx, demand.worker, id, held);
        tx.memory.count_suspects(lane, -1);
        tx.memory.count_move(lane, State::Ready, State::Running, 1);
        taken.push(suspect);
    }
    Ok(is_alone)
}
