//! Suspects of crashes: which group a worker may take, and which suspects stand aside meanwhile. The
//! decisions are in [`windlass_core::crash`].

use std::cmp::Reverse;

use tokio_postgres::Row;
use windlass_core::{
    Demand, Result, Rules, Timestamp,
    crash::{self, Group, HeldGroup, QUIET_PER_CRASH, SUSPECT_CRASHES, Turn},
};

use crate::{
    claim::{
        row::{self, claimed, lane_of},
        take::Took,
        wanted,
    },
    connection::{pool::Session, values::Cells},
    shared::Shared,
    sql,
    wakeup::doorbell::numbers,
};

/// How long a suspect on its last chance has its worker to itself, for each crash.
pub(crate) const ISOLATION_MS: i64 = QUIET_PER_CRASH.as_millis() as i64;

/// Whether suspects that wait are first sorted into those that stand aside and those that do not.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiting {
    Sort,
    /// They have just been sorted.
    Leave,
}

/// The crashes from which on a suspect that is alone in its group is on its last chance.
pub(crate) fn last_chance(rules: &Rules) -> i32 {
    i32::try_from(rules.max_crashes.saturating_sub(1).max(SUSPECT_CRASHES)).unwrap_or(i32::MAX)
}

/// Which suspects a worker may take, from what it holds.
async fn turn_of(shared: &Shared, session: &mut Session<'_>, demand: &Demand) -> Result<Turn> {
    let rows = session.query(&sql::CLAIM_HELD, &[&demand.worker.0]).await?;
    let Some(first) = rows.first() else { return Ok(Turn::Next { is_empty: true }) };
    let (holds, now) = (first.get::<_, i64>(0) as usize, Timestamp::from_ms(first.get(4)));
    let groups: Vec<HeldGroup> = rows.iter().filter_map(held_group).collect();
    Ok(crash::turn(&groups, holds, now, &shared.rules))
}

fn held_group(row: &Row) -> Option<HeldGroup> {
    let group = Group::from_stored(row.get::<_, Option<i64>>(1)?);
    let crashes = row.small(2);
    let claimed_at = row.time(3);
    Some(HeldGroup { group, crashes, quiet_until: crash::quiet_until(claimed_at, crashes) })
}

/// The groups of which a demand may get members, and whether the line of a job lacks a suspect or has one too
/// many.
async fn groups_of(shared: &Shared, session: &mut Session<'_>, demand: &Demand) -> Result<(Vec<i64>, bool)> {
    let rows = session.query(&sql::SUSPECT_GROUPS, &[&numbers(&demand.lanes)]).await?;
    if rows.is_empty() {
        return Ok((Vec::new(), false));
    }
    let group = |row: &Row| Group::from_stored(row.get(0));
    let waiting: Vec<(Group, u32)> = rows.iter().map(|row| (group(row), row.small(1))).collect();
    let chosen = turn_of(shared, session, demand).await?.choose(&waiting, &shared.rules);
    let is_misplaced = |row: &Row| row.get(if chosen.contains(&group(row)) { 3 } else { 2 });
    let is_misplaced = rows.iter().any(is_misplaced);
    Ok((chosen.into_iter().map(Group::to_stored).collect(), is_misplaced))
}

/// Suspects with a job return to its line if their group is next, and leave it if their group has to wait.
/// Answers whether any moved: then admission looks at their jobs before anything is taken.
pub(crate) async fn stand_aside(
    shared: &Shared,
    session: &mut Session<'_>,
    demands: &[Demand],
) -> Result<bool> {
    let (mut next, mut in_lanes, mut is_needed) = (Vec::new(), Vec::new(), false);
    for demand in demands.iter().filter(|demand| demand.n > 0) {
        let (groups, is_misplaced) = groups_of(shared, session, demand).await?;
        is_needed |= is_misplaced;
        next.extend(groups);
        in_lanes.extend(numbers(&demand.lanes));
    }
    if !is_needed {
        return Ok(false);
    }
    in_lanes.sort_unstable();
    in_lanes.dedup();
    let moved = session.row(&sql::SUSPECT_ASIDE, &[&in_lanes, &next]).await?;
    Ok(moved.is_some_and(|row| row.get::<_, i64>(0) > 0))
}

/// Takes suspects of the group that is next for the worker (POISON-CONTAINED).
pub(crate) async fn take_suspects(
    shared: &Shared,
    session: &mut Session<'_>,
    demand: &Demand,
) -> Result<Took> {
    let mut took = Took::default();
    if demand.n == 0 {
        return Ok(took);
    }
    let (groups, _) = groups_of(shared, session, demand).await?;
    if groups.is_empty() {
        return Ok(took);
    }
    let (claim_no, lanes) = (demand.claim_no as i64, numbers(&demand.lanes));
    let rows = session
        .query(&sql::CLAIM_SUSPECT, &[&demand.worker.0, &claim_no, &lanes, &groups, &wanted(demand)])
        .await?;
    let mut tasks = Vec::with_capacity(rows.len());
    for row in &rows {
        let lane = lane_of(shared, row::lane(row)).await?;
        tasks.push((row::ready_seq(row), claimed(demand, lane, row)));
    }
    tasks.sort_unstable_by_key(|(ready_seq, task)| (Reverse(task.priority), *ready_seq));
    took.tasks = tasks.into_iter().map(|(_, task)| task).collect();
    took.has_started = rows.iter().any(row::is_paced);
    Ok(took)
}
