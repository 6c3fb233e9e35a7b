//! Lanes in use: a lane that stands empty is retired, and the next task brings it back.

use windlass_core::{
    LaneId,
    lanes::{LOOK_EVERY, retired},
    store::Retention,
};

use crate::{
    connection::tx::{Step, Tx},
    memory::Use,
    sql,
    upkeep::retention::{CHUNK_ROWS, Swept},
};

/// Retires lanes that have stood empty since the last look, a few at a time.
pub(super) fn retire_empty(tx: &mut Tx<'_>, _: &Retention) -> Step<Swept> {
    let surplus = tx.memory.lane_counts().surplus(&tx.options.rules);
    let is_early = tx.cursor.lanes_seen.is_some_and(|at| tx.mono.saturating_sub(at) < LOOK_EVERY);
    if is_early || surplus == 0 {
        return Ok((0, false));
    }
    let idle = tx.memory.look_at_lanes(tx.mono);
    let retired = retired(idle, surplus);
    for lane in retired.iter().take(CHUNK_ROWS) {
        tx.sql(sql::RETIRE_LANE)?.execute((lane.0, true))?;
        tx.memory.set_use(*lane, Use::Retired);
        tx.effects.lanes = true;
    }
    let has_more = retired.len() > CHUNK_ROWS;
    if !has_more {
        tx.cursor.lanes_seen = Some(tx.mono);
    }
    Ok((0, has_more))
}

/// A task enters a lane: it does not stand empty, and if it was retired it is in use again.
pub(crate) fn take(tx: &mut Tx<'_>, lane: LaneId) -> Step<()> {
    let how_used = tx.memory.lane(lane).map_or(Use::Taken, |entry| entry.how_used);
    if how_used == Use::Taken {
        return Ok(());
    }
    if how_used == Use::Retired {
        tx.sql(sql::RETIRE_LANE)?.execute((lane.0, false))?;
        tx.effects.lanes = true;
    }
    tx.memory.set_use(lane, Use::Taken);
    Ok(())
}
