//! Suspects of a crash: which one a worker may take depends on what it holds.

use windlass_core::{Claimed, Demand, Result, Rules, Timestamp};

use crate::{
    claim::HEAD,
    pool::Session,
    shared::Shared,
    sql,
    taken::{claimed, lane_of},
};

/// The crashes from which on a suspect is on its last chance.
pub(crate) fn last_chance(rules: &Rules) -> i32 {
    i32::try_from(rules.max_crashes).unwrap_or(i32::MAX).saturating_sub(1).max(1)
}

/// Takes the first suspect that this worker may run, if it runs none (POISON-CONTAINED). One on its last chance runs
/// alone, so an empty worker takes it first and another leaves it.
pub(crate) async fn take_suspect(
    shared: &Shared,
    session: &mut Session<'_>,
    demand: &Demand,
) -> Result<Option<Claimed>> {
    if demand.n == 0 {
        return Ok(None);
    }
    let held = session.row(&sql::CLAIM_HELD, &[&demand.worker.0]).await?;
    let (held, suspects) = held.map_or((0, 0), |row| (row.get::<_, i64>(0), row.get::<_, i64>(1)));
    if suspects > 0 {
        return Ok(None);
    }
    let lanes: Vec<i32> = demand.lanes.iter().map(|lane| lane.0 as i32).collect();
    let (claim_no, last_chance) = (demand.claim_no as i64, last_chance(&shared.rules));
    let mut ranges = vec![(1, last_chance - 1)];
    if held == 0 {
        ranges.insert(0, (last_chance, i32::MAX));
    }
    for (fewest, most) in ranges {
        let rows = session
            .query(&sql::CLAIM_SUSPECT, &[&demand.worker.0, &claim_no, &lanes, &fewest, &most])
            .await?;
        if let Some(row) = rows.first() {
            let now = Timestamp::from_ms(row.get(0));
            return Ok(Some(claimed(demand, lane_of(shared, row.get(HEAD + 5)).await?, now, row, HEAD)));
        }
    }
    Ok(None)
}
